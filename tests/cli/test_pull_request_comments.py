"""`planrun comment`: one comment of a pull request, from an artifact that a stranger may have made."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from planrun.errors import InvalidInput
from planrun.pullrequests.artifact import comment, read_review
from planrun.pullrequests.target import Target
from tests.action.pulls import git
from tests.conftest import Command
from tests.fakes.github import BOT, REPOSITORY, TOKEN, FakeGitHub, person, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = "a" * 40
PLAN = "version: 1\nname: release\nsteps:\n  - {id: build, run: touch built}\n"
PUBLISH = "  - {id: publish, depends_on: [build], run: 'git push origin HEAD:released'}\n"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """Give a repository with the pull requests 1 to 40; 7 is that of a fork."""
    fake = FakeGitHub()
    for number in range(1, 41):
        fake.pull(number, head=f"{number:040x}", branch=f"topic-{number}")
    fake.pull(7, head=HEAD, branch="topic", source="mallory/app", opener="mallory")
    with serving(fake):
        yield fake


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Give a folder in which a review of a new publish step was written, for all tests."""
    folder = tmp_path_factory.mktemp("project")
    planrun = Command(folder)
    (folder / "plan.yml").write_text(PLAN)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A plan")
    (folder / "plan.yml").write_text(PLAN + PUBLISH)
    (folder / "policy.yml").write_text("auto_approve: low\n")
    done = planrun("review", "plan.yml", "--base", "HEAD", "--policy", "policy.yml")
    assert done.returncode == 0, done.stderr
    return planrun


@pytest.fixture
def reviewed(planrun: Command, project: Command) -> Command:
    """Give a folder with the artifact of that review and the event of its workflow."""
    folder = planrun.folder
    (folder / "planrun-out").mkdir()
    shutil.copy(project.folder / "planrun-out" / "review.json", folder / "planrun-out")
    event = {
        "workflow_run": {
            "event": "pull_request",
            "head_sha": HEAD,
            "head_branch": "topic",
            "head_repository": {"full_name": "mallory/app"},
            "pull_requests": [],  # as GitHub sends it for a fork
        }
    }
    (folder / "event.json").write_text(json.dumps(event))
    return planrun


def post(planrun: Command, github: FakeGitHub, *words: str) -> tuple[int, str]:
    """Run `planrun comment` as the job does; returns its exit code and what it printed."""
    env = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_EVENT_PATH": str(planrun.folder / "event.json"),
        "GITHUB_TOKEN": TOKEN,
    }
    done = planrun("comment", *(words or ("planrun-out/review.json",)), env=env)
    return done.returncode, done.stdout + done.stderr


def bodies(github: FakeGitHub, number: int = 7) -> list[str]:
    """Return the comments of a pull request."""
    return [comment["body"] for comment in github.comments[number]]


def test_the_comment_is_made_once_then_updated_and_never_repeated(
    reviewed: Command, github: FakeGitHub
) -> None:
    """It is found behind pages of others, and nobody else's comment is touched, though it begins with the same line."""
    for number in range(130):
        github.say(7, f"remark {number}", person("ann"))
    assert post(reviewed, github) == (0, "comment on pull request 7: created\n")
    made = bodies(github)[-1]
    marker = made.partition("\n")[0]
    assert marker == "<!-- planrun-diff plan.yml -->"
    github.comments[7].insert(
        0, {**github.comments[7][0], "id": 1, "body": f"{marker}\nforged", "user": person("mallory")}
    )
    assert post(reviewed, github) == (0, "comment on pull request 7: unchanged\n")
    artifact = reviewed.folder / "planrun-out" / "review.json"
    artifact.write_text(artifact.read_text().replace("HEAD:released", "HEAD:elsewhere"))
    github.say(7, made, BOT)  # two jobs at once made two
    assert post(reviewed, github) == (0, "comment on pull request 7: updated\n")
    ours = [body for body in bodies(github) if body.startswith(marker) and "forged" not in body]
    assert (len(ours), "HEAD:elsewhere" in ours[0], len(github.comments[7])) == (1, True, 132)


def test_what_the_comment_says(reviewed: Command, github: FakeGitHub) -> None:
    """Difference, risk, the approvals needed, the digest, and where it comes from."""
    assert post(reviewed, github)[0] == 0
    (text,) = bodies(github)
    digest = json.loads((reviewed.folder / "planrun-out" / "review.json").read_bytes())["diff"]["approvals"][
        "digest"
    ]
    for part in (
        f"> Review of commit `{HEAD[:12]}`",
        "It was made by a job of the fork `mallory/app`",
        "Highest risk of the changes: **high**",
        "- `publish`: approval needed: its risk is high",
        f"Digest to approve: `{digest}`",
        "| `publish` | added",
        "`git push origin HEAD:released`",
    ):
        assert part in text


def test_a_review_of_an_older_commit_is_not_posted(reviewed: Command, github: FakeGitHub) -> None:
    """The branch has moved on, or the pull request is closed: nothing is written."""
    github.pulls[7]["head"]["sha"] = "b" * 40
    code, said = post(reviewed, github)
    assert (code, "has moved on" in said, bodies(github)) == (0, True, [])


@pytest.mark.parametrize("trouble", ["secondary", "primary", "lost", "error"])
def test_limits_and_lost_answers_make_no_second_comment(
    reviewed: Command, github: FakeGitHub, trouble: str
) -> None:
    """A limit is waited for; where the answer to a POST is lost, the comment is looked for before it is made again."""
    github.script = [trouble]
    assert post(reviewed, github) == (0, "comment on pull request 7: created\n")
    assert len(bodies(github)) == 1


def test_a_token_without_the_permission(reviewed: Command, github: FakeGitHub) -> None:
    """Exit code 1, what GitHub says, and which permission is missing; the token is in no message."""
    github.writes = False
    code, said = post(reviewed, github)
    assert code == 1
    assert (
        "HTTP 403: Resource not accessible by integration; the token of the job needs `pull-requests: write`"
        in said
    )
    assert TOKEN not in said


def test_a_text_of_the_job_itself(reviewed: Command, github: FakeGitHub) -> None:
    """--markdown posts a text with a hidden line of planrun, and refuses one without and one that is too long."""
    (reviewed.folder / "own.md").write_text("<!-- planrun-diff own -->\ntext\n")
    assert post(reviewed, github, "--markdown", "own.md") == (0, "comment on pull request 7: created\n")
    (reviewed.folder / "own.md").write_text("text\n")
    assert post(reviewed, github, "--markdown", "own.md")[0] == 2
    (reviewed.folder / "own.md").write_text("<!-- planrun-diff own -->\n" + "x" * 65_536)
    code, said = post(reviewed, github, "--markdown", "own.md")
    assert (code, "GitHub takes 65536" in said) == (2, True)


EVIL = "</details><img src=x> @ann #1 [x](https://evil.example) ```\n::error::x ##vso[x] `` | a\u202eb"


def review_with(**fields: Any) -> dict[str, Any]:
    """Return a review in which every text is hostile."""
    gate = {"step": EVIL, "answer": "ask", "reason": EVIL, "approved": None}
    side = {"digest": "c" * 64}
    change = {"key": EVIL, "old": EVIL, "new": EVIL}
    step = {
        "id": EVIL,
        "change": EVIL,
        "risk": {"old": None, "new": {"class": "high", "reason": EVIL}},
        "changes": [change] * 7,
    }
    approvals = {
        "policy": EVIL,
        "whole_plan": True,
        "needed": [gate],
        "digest": "d" * 64,
        "command": f"rm -rf / # {EVIL}",
    }
    diff = {
        "summary": EVIL,
        "old": side,
        "new": side,
        "risk": {"old": "low", "new": "high", "highest_changed": "high"},
        "policy": {"allows_more": [EVIL]},
        "steps": [step] * 900,
        "scripts": [{"path": EVIL}],
        "approvals": approvals,
    }
    return {"plan": EVIL, "valid": True, "base": "b" * 40, "problems": [], "diff": diff, **fields}


def test_a_hostile_artifact_stays_data(tmp_path: Path) -> None:
    """No markup, mention, link or command of the artifact is in the comment, and it fits."""
    path = tmp_path / "review.json"
    path.write_text(json.dumps(review_with()))
    text = comment(read_review(str(path)), Target(number=7, head=HEAD, fork="mallory/app"))
    assert len(text) < 65_536
    assert "rm -rf" not in text
    html = MarkdownIt("commonmark").enable("table").render(text.partition("\n")[2])
    outside = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"<(?!/?(h3|p|strong|ul|li|blockquote|table|thead|tbody|tr|th|td)\b)", outside)
    assert not re.search(r"@\w|https://|#\d", outside)
    assert "::error" not in text
    assert "##vso[" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    "broken",
    [
        {"plan": 5},
        {"base": "main; rm -rf /"},
        {"valid": "yes"},
        {"diff": []},
        {"diff": {}},
        {"problems": [{"code": "E1", "file": "x", "line": "1", "col": 1, "message": "m"}]},
        {"problems": [{}] * 2000},
    ],
)
def test_what_planrun_would_not_write_is_refused(tmp_path: Path, broken: dict[str, Any]) -> None:
    """A wrong type, a value out of bounds, a list that is too long: nothing of it is posted."""
    path = tmp_path / "review.json"
    path.write_text(json.dumps(review_with(**broken)))
    with pytest.raises(InvalidInput, match="is no review of planrun"):
        read_review(str(path))


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    """An artifact may hold links and huge files."""
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (tmp_path / "review.json").symlink_to(secret)
    (tmp_path / "huge.json").write_bytes(b" " * ((4 << 20) + 1))
    for name in ("review.json", "huge.json", "gone.json"):
        with pytest.raises(InvalidInput):
            read_review(str(tmp_path / name))


def test_an_invalid_plan_is_told_with_its_places(project: Command) -> None:
    """What review.json says of an invalid plan is what the comment lists."""
    (project.folder / "bad.yml").write_text("version: 1\nsteps:\n  - {id: a, rum: x}\n")
    project("review", "bad.yml", "--base", "HEAD", "--report-dir", "bad")
    done = project("comment", "bad/review.json", "--dry-run")
    assert done.returncode == 0
    assert "### Plan `bad.yml` is not valid" in done.stdout
    assert "- `bad.yml:3:13` E104 unknown key" in done.stdout
