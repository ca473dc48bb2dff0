"""`planrun approve PLAN` with approvals that people gave on GitHub: in comments, and for a protected environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.github import BOT, REPOSITORY, TOKEN, FakeGitHub, person, serving

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.conftest import Command

MERGE = "e" * 40
PLAN = """\
version: 1
name: release
steps:
  - {id: build, run: touch built}
  - {id: publish, depends_on: [build], run: ./publish.sh}
"""


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """Give a repository whose pull request 7, opened by ann, was merged; bob may write, eve only read, max maintain."""
    fake = FakeGitHub()
    fake.pull(7, head="a" * 40, branch="topic")
    fake.pulls[7] |= {"state": "closed", "merged_at": "2026-01-31T12:00:00Z"}
    fake.merged[MERGE] = [7]
    fake.permissions = {
        "ann": {"permission": "write", "role_name": "write"},
        "bob": {"permission": "write", "role_name": "write"},
        "eve": {"permission": "read", "role_name": "read"},
        "max": {"permission": "write", "role_name": "maintain"},
        "own": {"permission": "write", "role_name": "release-team"},
    }
    with serving(fake):
        yield fake


@pytest.fixture
def digest(planrun: Command) -> str:
    """Lay the plan and return its digest."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    script = planrun.folder / "publish.sh"
    script.write_text("#!/bin/sh\ntouch published\n")
    script.chmod(0o755)
    done = planrun("approve", "plan.yml", "-o", "-")
    found: str = json.loads(done.stdout)["digest"]
    return found


def approve(planrun: Command, github: FakeGitHub, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `planrun approve` as a job on the merged commit does."""
    env = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "77",
        "GITHUB_SHA": MERGE,
        "GITHUB_TOKEN": TOKEN,
    }
    return planrun("approve", "plan.yml", "-o", "approval.json", *words, env=env)


def test_a_comment_approves_exactly_the_plan_that_it_names(
    planrun: Command, github: FakeGitHub, digest: str
) -> None:
    """The file names the commenter; the run under a policy uses it, and another script is not approved by it."""
    (planrun.folder / "policy.yml").write_text("auto_approve: none\nask_for: plan\n")
    github.say(7, f"Looks good.\r\n\r\n/planrun approve {digest}\r\n", person("bob"))
    done = approve(planrun, github, "--pull-request", "auto")
    assert done.returncode == 0, done.stderr
    written = json.loads((planrun.folder / "approval.json").read_bytes())
    assert (written["approver"], written["digest"], written["steps"]) == ("bob", digest, ["*"])
    again = approve(planrun, github, "--pull-request", "7", "-o", "again.json")
    assert again.returncode == 0
    assert (
        json.loads((planrun.folder / "again.json").read_bytes())["id"] == written["id"]
    )  # uses count together
    ran = planrun("execute", "plan.yml", "--policy", "policy.yml", "--approval", "approval.json")
    assert ran.returncode == 0
    assert "approved by bob" in ran.stdout + ran.stderr
    (planrun.folder / "publish.sh").write_text("#!/bin/sh\ntouch other\n")
    changed = approve(planrun, github, "--pull-request", "auto", "-o", "changed.json")
    assert changed.returncode == 5
    assert f"it names {digest}, and this plan is" in changed.stderr
    assert not (planrun.folder / "changed.json").exists()


HIDDEN = (
    "> WORDS",
    "> as said before\nWORDS",  # still the quote
    "- an entry\nWORDS",
    "    WORDS",
    "not WORDS",
    "`code\nWORDS\n`",
    "[a]: /url 'title\nWORDS\n'",
    "```\nWORDS\n```",
    "~~~\n```\n\nWORDS\n\n```\n~~~",
    "- a\n  ```\n\n```\n\nWORDS\n\n```",
    "````\n```\n\nWORDS\n````",
    "<!--\n\nWORDS\n\n-->",
    "text <!-- x\nWORDS\n-->",
    "<pre>\n\nWORDS\n\n</pre>",
    "<details><summary>more</summary>\n\nWORDS\n\n</details>",
    "<a title='\nWORDS\n'>x</a>",
)


def test_comments_that_do_not_count(planrun: Command, github: FakeGitHub, digest: str) -> None:
    """Each is named with its reason: cut, edited, of a bot, of the opener, of a reader, of a stranger, hidden."""
    words = f"/planrun approve {digest}"
    github.say(7, f"/planrun approve {digest[:12]}", person("bob"))
    github.say(7, f"/planrun approve {digest[:63]}", person("bob"))
    github.say(7, f"/planrun approve {digest[:63]}{'0' if digest[63] != '0' else '1'}", person("bob"))
    github.say(7, words, person("bob"), edited=True)
    github.say(7, words, BOT)
    github.say(7, words, person("ann"))
    github.say(7, words, person("eve"))
    github.say(7, words, person("stranger"))
    for text in HIDDEN:
        github.say(7, text.replace("WORDS", words), person("bob"))
    done = approve(planrun, github, "--pull-request", "auto")
    assert done.returncode == 5
    for why in (
        f"it names 12 characters of the digest, and all 64 are needed: {words}",
        f"it names 63 characters of the digest, and all 64 are needed: {words}",
        f"and this plan is {digest}",
        "code or HTML stands above it: write it as the first line",
        "it stands in another paragraph: leave a line empty before it",
        "it was edited; write a new comment",
        "it was not written by a person",
        "its author opened the pull request",
        "eve has the permission read, and write is needed",
        "stranger has the permission none, and write is needed",
        f"pull request 7 has no approval of this plan; a comment gives it: {words}",
    ):
        assert why in done.stderr
    assert approve(planrun, github, "--pull-request", "auto", "--allow-author").returncode == 0


def test_the_last_word_counts(planrun: Command, github: FakeGitHub, digest: str) -> None:
    """A later rejection ends an approval, a later approval on a line of the diff gives it again, for its steps only."""
    github.say(7, f"/planrun approve {digest}", person("bob"), at="2026-01-31T10:00:00Z")
    github.say(7, f"/planrun reject {digest}", person("max"), at="2026-01-31T11:00:00Z")
    rejected = approve(planrun, github, "--pull-request", "7")
    assert (rejected.returncode, "rejected by max" in rejected.stderr) == (5, True)
    github.say(7, f"/planrun approve {digest} publish", person("own"), at="2026-01-31T12:00:00Z", line=True)
    assert approve(planrun, github, "--pull-request", "7").returncode == 0
    assert json.loads((planrun.folder / "approval.json").read_bytes())["steps"] == ["publish"]
    higher = approve(planrun, github, "--pull-request", "7", "--permission", "maintain")
    assert "own has the permission write, and maintain is needed" in higher.stderr


def test_who_approved_an_environment_approves_the_reviewed_digest(
    planrun: Command, github: FakeGitHub, digest: str
) -> None:
    """Without required reviewers, for another environment or with another digest there is no approval."""
    wanted = ("--environment", "release", "--digest", digest)
    assert approve(planrun, github, *wanted).returncode == 5
    review = {"state": "approved", "user": person("max"), "environments": [{"name": "release"}]}
    github.deployments["77"] = [{**review, "environments": [{"name": "staging"}]}]
    assert approve(planrun, github, *wanted).returncode == 5
    github.deployments["77"] = [review]
    assert approve(planrun, github, *wanted).returncode == 0
    assert json.loads((planrun.folder / "approval.json").read_bytes())["approver"] == "max"
    other = approve(planrun, github, "--environment", "release", "--digest", "0" * 64)
    assert (other.returncode, f"what was reviewed is {'0' * 64}" in other.stderr) == (3, True)


COMMIT = {"author": None, "committer": None}
PARTS: dict[str, tuple[str, Any, str]] = {
    "author": ("commits", [COMMIT, {**COMMIT, "author": person("bob")}], "has part in the commits"),
    "committer": ("commits", [{**COMMIT, "committer": person("bob")}], "has part in the commits"),
    "forced": (
        "events",
        [{"event": "head_ref_force_pushed", "actor": person("bob")}],
        "pushed to the branch",
    ),
    "pushed": ("activity", [{"activity_type": "push", "actor": person("bob")}], "pushed to the branch"),
}


@pytest.mark.parametrize("part", PARTS)
def test_who_has_part_in_a_pull_request_does_not_approve_it(
    planrun: Command, github: FakeGitHub, digest: str, part: str
) -> None:
    """Not only the opener: authors and committers, and who pushed; a rejection of theirs counts."""
    where, entries, why = PARTS[part]
    getattr(github, where)["topic" if where == "activity" else 7] = entries
    github.say(7, f"/planrun approve {digest}", person("bob"))
    done = approve(planrun, github, "--pull-request", "auto")
    assert done.returncode == 5
    assert why in done.stderr
    github.say(7, f"/planrun approve {digest}", person("max"))
    assert approve(planrun, github, "--pull-request", "auto").returncode == 0
    assert json.loads((planrun.folder / "approval.json").read_bytes())["approver"] == "max"
    assert approve(planrun, github, "--pull-request", "auto", "--allow-author", "-o", "-").returncode == 0
    github.say(7, f"/planrun reject {digest}", person("bob"))
    assert approve(planrun, github, "--pull-request", "auto", "-o", "-").returncode == 5


def test_other_events_and_other_servers(planrun: Command, github: FakeGitHub, digest: str) -> None:
    """Who set a label has no part in the commits; a server that knows no pushes is asked for the rest."""
    github.events[7] = [{"event": "labeled", "actor": person("bob")}]
    github.activity = None
    github.say(7, f"/planrun approve {digest}", person("bob"))
    assert approve(planrun, github, "--pull-request", "auto").returncode == 0


def test_a_pull_request_with_more_commits_than_github_lists(
    planrun: Command, github: FakeGitHub, digest: str
) -> None:
    """Its authors are not all known, so no comment approves it, and the message says why."""
    github.commits[7] = [COMMIT] * 250
    github.say(7, f"/planrun approve {digest}", person("bob"))
    done = approve(planrun, github, "--pull-request", "auto")
    assert done.returncode not in (0, 5)
    assert "250 commits or more" in done.stderr


REFUSED = (
    (("--pull-request", "x"), '--pull-request takes a number or auto, not "x"'),
    (("--pull-request", "7", "--approver", "me"), "the comment names the steps and the approver"),
    (("--environment", "release"), "--environment needs --digest"),
    (("--permission", "admin"), "--permission and --allow-author belong to --pull-request"),
    (("--digest", "abc"), "--digest takes all 64 characters of a digest, 0-9 and a-f, not 3"),
    (("--digest", "a" * 63), "--digest takes all 64 characters of a digest, 0-9 and a-f, not 63"),
    (("--digest", "A" * 64), "--digest takes all 64 characters of a digest"),
)


def test_options_that_do_not_fit(planrun: Command, github: FakeGitHub) -> None:
    """Exit code 2 with the reason, and nothing is written."""
    (planrun.folder / "plan.yml").write_text(PLAN.replace("./publish.sh", "make publish"))
    for words, why in REFUSED:
        done = approve(planrun, github, *words)
        assert (done.returncode, why in done.stderr) == (2, True)
    assert not (planrun.folder / "approval.json").exists()
