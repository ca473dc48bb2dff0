"""`--policy COMMIT:PATH` and `--approval COMMIT:PATTERN`: what a commit holds counts, and never what is checked out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planrun.approval.policies import all_given, not_committed, read_given
from planrun.errors import InvalidInput, InvalidPlan

PLANRUN = str(Path(sys.executable).with_name("planrun"))
STRICT = "rules:\n  - require: {step: publish}\n"
PLAN = "version: 1\nsteps:\n  - {id: build, run: touch built}\n"
PLAN += "  - {id: publish, run: touch published, depends_on: [build]}\n"


def git(folder: Path, *words: str) -> str:
    """Run git in a repository and return what it says."""
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def planrun(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run planrun in a folder."""
    return subprocess.run([PLANRUN, *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository whose only commit has a plan, a strict policy and no approval, and stand in it."""
    for name, text in (("ci/policy.yml", STRICT), ("plan.yml", PLAN), ("approvals/README", "None yet.\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ledger(folder: Path) -> dict[str, Any]:
    """Return the ledger.json of the last run."""
    data: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    return data


def approve(folder: Path, out: str = "approvals/release.json") -> None:
    """Write an approval of the plan as it stands."""
    done = planrun(
        folder, "approve", "plan.yml", "--step", "publish", "--approver", "Ann Reviewer", "-o", out
    )
    assert done.returncode == 0, done.stderr


def test_a_policy_of_a_commit_holds_whatever_is_checked_out(repository: Path) -> None:
    """The committed policy counts if the checkout edits or deletes it; the ledger has commit and hash."""
    sha = git(repository, "rev-parse", "HEAD")
    for text in ("auto_approve: high\n", ""):
        file = repository / "ci" / "policy.yml"
        file.write_text(text)
        if not text:
            file.unlink()
        done = planrun(repository, "execute", "plan.yml", "--policy", "main:ci/policy.yml")
        output = done.stdout + done.stderr
        assert done.returncode == 5, output
        assert not (repository / "published").exists()
        (ceiling,) = ledger(repository)["policy"]["ceilings"]
        assert (ceiling["file"], ceiling["commit"]) == ("main:ci/policy.yml", sha)
        assert f"(ci/policy.yml of main, commit {sha[:12]})" in output
        what = "is missing in this checkout, and is in force nevertheless"
        assert f"ci/policy.yml {'of this checkout differs' if text else what}" in output


def test_a_resumed_run_stays_under_the_policy_of_that_commit(repository: Path) -> None:
    """A resume uses the run's own copy of the policy, with the commit that it came from."""
    sha = git(repository, "rev-parse", "HEAD")
    assert planrun(repository, "execute", "plan.yml", "--policy", "main:ci/policy.yml").returncode == 5
    (repository / "ci" / "policy.yml").write_text("auto_approve: high\n")
    git(repository, "commit", "-qam", "weaker")
    assert planrun(repository, "resume", "last").returncode == 5
    assert [ceiling["commit"] for ceiling in ledger(repository)["policy"]["ceilings"]] == [sha]


def test_an_approval_counts_once_it_is_committed(repository: Path) -> None:
    """One that is only in the checkout is named as without effect; once merged the same file lets the step run."""
    words = ("execute", "plan.yml", "--policy", "main:ci/policy.yml", "--approval", "main:approvals/*.json")
    approve(repository)
    done = planrun(repository, *words)
    assert done.returncode == 5
    assert "approvals/release.json is not in main, and has no effect" in done.stdout + done.stderr
    git(repository, "add", "approvals")
    git(repository, "commit", "-qm", "approve")
    assert planrun(repository, *words).returncode == 0
    (used,) = ledger(repository)["approvals"]
    assert used["by"] == "Ann Reviewer"
    assert planrun(repository, *words).returncode == 5  # one use is one run


def test_an_approval_that_was_edited_here_counts_as_committed(repository: Path) -> None:
    """More uses in the checkout are none in the commit."""
    approve(repository)
    git(repository, "add", "approvals")
    git(repository, "commit", "-qm", "approve")
    file = repository / "approvals" / "release.json"
    file.write_text(file.read_text().replace('"uses": 1', '"uses": 99'))
    words = ("execute", "plan.yml", "--policy", "main:ci/policy.yml", "--approval", "main:approvals/*.json")
    assert [planrun(repository, *words).returncode for _ in range(2)] == [0, 5]
    assert "approvals/release.json of this checkout differs, and has no effect" in json.dumps(
        ledger(repository)["gates"]
    )


def test_patterns_name_files_of_a_folder(repository: Path) -> None:
    """`*` stands for a part of a name, in sorted order; it is no path, hidden files are left out, none is no error."""
    for name in ("b.json", "a.json", ".hidden.json", "c.txt", "sub/d.json", "odd:name.json", "[x].json"):
        (repository / "approvals" / name).parent.mkdir(exist_ok=True)
        (repository / "approvals" / name).write_text("{}")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "more")
    names = ["[x].json", "a.json", "b.json", "odd:name.json"]
    given_names = [Path(given.name).name for given in all_given("approvals/*.json", "approval")]
    assert given_names == names
    assert [given.name for given in all_given("HEAD:approvals/*.json", "approval")] == [
        f"HEAD:approvals/{name}" for name in names
    ]
    assert all_given("nowhere/*.json", "approval") == all_given("HEAD:nowhere/*.json", "approval") == []
    assert [given.name for given in all_given("approvals/[x].json", "approval")] == ["approvals/[x].json"]
    for pattern in ("*/a.json", "HEAD:*/a.json"):
        with pytest.raises(InvalidInput, match="only the last part of a path may be a pattern"):
            all_given(pattern, "approval")


def test_paths_count_from_the_root_or_with_a_dot_from_here(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of the repository both forms name the same file, and compare it with the same of the checkout."""
    monkeypatch.chdir(repository / "approvals")
    for name in ("HEAD:ci/policy.yml", "HEAD:../ci/policy.yml"):
        assert read_given(name, "policy").ignored == ""
    (repository / "ci" / "policy.yml").write_text("auto_approve: high\n")
    for name in ("HEAD:ci/policy.yml", "HEAD:../ci/policy.yml"):
        assert (
            read_given(name, "policy").ignored
            == "../ci/policy.yml of this checkout differs, and has no effect"
        )
    (repository / "approvals" / "new.json").write_text("{}")
    for pattern in ("HEAD:./*.json", "HEAD:approvals/*.json"):
        assert list(not_committed(pattern)) == ["new.json is not in HEAD, and has no effect"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("main:ci/other.yml", "there is no policy at main:ci/other.yml"),
        ("gone:ci/policy.yml", 'unknown commit "gone"'),
        ("main:ci", "must be a regular file, got a directory"),
        ("main:", "expected COMMIT:path/to/plan.yml"),
        ("--upload-pack=touch sprung:x", "invalid commit name"),
        ("main:../outside.yml", "outside"),
    ],
)
def test_what_is_not_in_the_commit_is_an_error(repository: Path, name: str, reason: str) -> None:
    """A policy that cannot be read is never taken for none: exit code 2, and nothing runs."""
    with pytest.raises((InvalidInput, InvalidPlan), match=reason.replace("(", r"\(")):
        read_given(name, "policy")
    assert planrun(repository, "execute", "plan.yml", "--policy", name).returncode == 2
    assert not (repository / "built").exists()


def test_a_tag_with_the_name_of_a_branch_is_not_taken_for_it(repository: Path) -> None:
    """Git would take the tag, which many may push; a name that is both is refused, and its full form is not."""
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert read_given("origin/main:ci/policy.yml", "policy").data == STRICT.encode()
    (repository / "ci" / "policy.yml").write_text("auto_approve: high\n")
    git(repository, "commit", "-qam", "weaker")
    git(repository, "tag", "origin/main")
    git(repository, "config", "core.warnAmbiguousRefs", "false")
    with pytest.raises(InvalidInput, match='ambiguous name "origin/main"'):
        read_given("origin/main:ci/policy.yml", "policy")
    assert read_given("refs/remotes/origin/main:ci/policy.yml", "policy").data == STRICT.encode()


def test_a_lock_names_a_policy_of_a_commit_like_one_of_the_workspace(repository: Path) -> None:
    """A lock that was made with a file holds for a run under the same bytes in a commit."""
    assert planrun(repository, "lock", "plan.yml", "--policy", "ci/policy.yml").returncode == 0
    done = planrun(repository, "execute", "plan.yml", "--locked", "--policy", "HEAD:ci/policy.yml")
    assert done.returncode == 5, done.stderr
