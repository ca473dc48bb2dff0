"""git.status, git.diff, git.commit and git.apply_patch on real repositories, hostile ones included."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from planrun.actions.tool import process_of
from tests.conftest import LIMIT
from tests.tools.calls import call, git, repository

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = (
    *(
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
    ),
    *("applypatch-msg", "pre-applypatch", "post-checkout"),
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one commit."""
    return repository(tmp_path / "work")


@pytest.fixture
def hostile(work: Path, tmp_path: Path) -> Path:
    """A repository that configures a program wherever git takes one; each leaves a mark in the folder `marks`."""
    (work / ".gitattributes").write_text("*.txt filter=evil diff=evil merge=evil\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "attributes")
    marks = tmp_path / "marks"
    marks.mkdir()

    def program(name: str, then: str = "cat") -> str:
        return f"touch {marks}/{name}; {then}"

    for name, value in {
        "filter.evil.clean": program("clean"),
        "filter.evil.smudge": program("smudge"),
        "filter.a=b.process": program("process"),
        "diff.evil.textconv": program("textconv"),
        "diff.evil.command": program("command", "true"),
        "diff.external": program("external", "true"),
        "merge.evil.driver": program("driver", "false"),
        "core.fsmonitor": program("fsmonitor", "true"),
        "core.pager": program("pager"),
        "core.editor": program("editor", "true"),
        "core.sshCommand": program("ssh", "false"),
        "core.alternateRefsCommand": program("refs", "true"),
        "sequence.editor": program("sequence", "true"),
        "credential.helper": "!" + program("credential", "true"),
        "alias.status": "!" + program("alias", "true"),
        "alias.diff": "!" + program("alias", "true"),
        "gpg.program": str(tmp_path / "gpg"),
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "diff.submodule": "log",
    }.items():
        git(work, "config", name, value)
    for hook in HOOKS:
        path = work / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {marks}/hook-{hook}\n")
        path.chmod(0o755)
    (tmp_path / "gpg").write_text(f"#!/bin/sh\ntouch {marks}/gpg\nexit 1\n")
    (tmp_path / "gpg").chmod(0o755)
    (work / "a.txt").write_text("ONE\ntwo\nthree\n")
    return work


def test_what_only_reads_runs_nothing_of_the_repository(hostile: Path) -> None:
    """Status and difference of a changed file come about without a program, hook or filter that it configures."""
    marks = hostile.parent / "marks"
    status = call(hostile, "git.status")
    assert (status.code, json.loads(status.outputs["files"])) == (0, ["a.txt"])
    for args in ({}, {"staged": True}, {"base": "HEAD"}, {"base": "HEAD~1", "paths": ["a.txt"]}):
        end = call(hostile, "git.diff", **args)
        assert end.code == 0
        assert ("+ONE" in end.log) is ("staged" not in args)
    assert os.listdir(marks) == []
    git(hostile, "-c", "core.fsmonitor=false", "diff")
    assert os.listdir(marks) != [], "the programs of this repository are no programs"


def test_a_commit_runs_hooks_only_on_request(hostile: Path) -> None:
    """Without `hooks` nothing but the filters of its files runs; with it the hooks do, and it is never signed."""
    marks = hostile.parent / "marks"
    end = call(hostile, "git.commit", message="# not a comment\n\nbody", all=True)
    assert end.code == 0, end.log
    assert set(os.listdir(marks)) <= {"clean"}
    assert git(hostile, "cat-file", "-p", "HEAD").endswith("\n\n# not a comment\n\nbody\n")
    assert call(hostile, "git.commit", message="x", allow_empty=True, hooks=True).code == 0
    assert {"hook-pre-commit", "hook-commit-msg"} <= set(os.listdir(marks))
    assert "gpg" not in os.listdir(marks)


def test_a_commit_holds_what_it_names(work: Path) -> None:
    """Paths commit only these files, new ones too; without paths, staged changes; nothing staged is an error."""
    (work / "a.txt").write_text("changed\n")
    (work / "new.txt").write_text("new\n")
    (work / "other.txt").write_text("other\n")
    git(work, "add", "other.txt")
    end = call(work, "git.commit", message="some", paths=["a.txt", "new.txt"], author="A <a@example.org>")
    assert json.loads(end.outputs["files"]) == ["a.txt", "new.txt"]
    assert end.outputs["branch"] == "main"
    assert end.outputs["sha"] == git(work, "rev-parse", "HEAD").strip()
    assert git(work, "log", "-1", "--format=%an %ae") == "A a@example.org\n"
    assert git(work, "status", "--porcelain") == "A  other.txt\n"
    assert json.loads(call(work, "git.commit", message="rest").outputs["files"]) == ["other.txt"]
    end = call(work, "git.commit", message="nothing")
    assert (end.code, end.log) == (1, "git.commit: nothing is staged\n")
    assert call(work, "git.commit", message="nothing", all=True).code == 1
    (work / "a.txt").unlink()
    assert json.loads(call(work, "git.commit", message="gone", paths="a.txt").outputs["files"]) == ["a.txt"]


@pytest.mark.parametrize("name", ["--output=pwned", "--exec=touch pwned", "-Opwned", ":(top)a.txt", "*"])
def test_words_for_git_are_names_and_never_options(work: Path, name: str) -> None:
    """Paths stand behind `--` and are no patterns; a revision that begins like an option is refused."""
    (work / name).write_text("x\n")
    (work / "a.txt").write_text("changed\n")
    end = call(work, "git.commit", message="--amend", paths=[name], author="--amend <a>")
    assert json.loads(end.outputs["files"]) == [name]
    assert git(work, "rev-list", "--count", "HEAD") == "2\n"
    assert call(work, "git.diff", base=name).code == 1
    assert not (work / "pwned").exists()


def test_a_repository_that_works_elsewhere_is_refused(work: Path, tmp_path: Path) -> None:
    """`core.worktree` leads no tool out of the workspace."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.txt").write_text("theirs\n")
    git(work, "config", "core.worktree", str(tmp_path / "elsewhere"))
    for tool, args in (
        ("git.status", {}),
        ("git.diff", {}),
        ("git.commit", {"message": "x", "all": True}),
        ("git.apply_patch", {"patch": PATCH}),
    ):
        end = call(work, tool, **args)
        assert end.code == 1
        assert "not in the workspace" in end.log
    assert (tmp_path / "elsewhere/a.txt").read_text() == "theirs\n"


def test_variables_of_git_have_no_effect(work: Path, tmp_path: Path) -> None:
    """Variables for folders and programs of git do not reach it."""
    other = repository(tmp_path / "other")
    env = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_EXTERNAL_DIFF": f"touch {tmp_path}/pwned",
        "GIT_TRACE": str(tmp_path / "pwned"),
        "GIT_SSH_COMMAND": f"touch {tmp_path}/pwned",
    }
    (work / "a.txt").write_text("changed\n")
    assert json.loads(call(work, "git.diff", env=env).outputs["files"]) == ["a.txt"]
    assert call(work, "git.commit", env=env, message="x", all=True).code == 0
    assert git(other, "rev-list", "--count", "HEAD") == "1\n"
    assert not (tmp_path / "pwned").exists()


def test_odd_names_are_kept(work: Path) -> None:
    """Names with line ends, quotes and blanks are one entry each, and the log has one line for each."""
    names = ["two\nlines", 'a "quote"', " blank ", "-dash", "ünï", "\x1b[31mred"]
    for name in names:
        (work / name).write_text("x\n")
    end = call(work, "git.status")
    assert sorted(json.loads(end.outputs["files"])) == sorted(names)
    assert len(end.log.splitlines()) == len(names) + 1
    assert "\x1b" not in end.log


PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
-one
+eins
 two
 three
"""
NEW = "--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n"


def test_a_patch_is_applied_and_reverted(work: Path) -> None:
    """It is applied from a text or a file, and taken back by `reverse`."""
    assert json.loads(call(work, "git.apply_patch", patch=PATCH).outputs["files"]) == ["a.txt"]
    assert (work / "a.txt").read_text() == "eins\ntwo\nthree\n"
    (work / "x.patch").write_text(PATCH)
    assert call(work, "git.apply_patch", file="x.patch", reverse=True).code == 0
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("threeway", [False, True])
def test_a_patch_that_does_not_fit_leaves_everything(work: Path, *, threeway: bool) -> None:
    """One file that does not fit keeps the others from being changed, in the tree as in the index."""
    (work / "b.txt").write_text("1\n2\n3\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "b")
    (work / "a.txt").write_text("ours\ntwo\nthree\n")
    git(work, "commit", "-qam", "ours")
    blob = git(work, "rev-parse", "HEAD~1:a.txt").strip()
    patch = PATCH.replace(
        "--- a/a.txt", f"diff --git a/a.txt b/a.txt\nindex {blob}..{'1' * 40} 100644\n--- a/a.txt"
    )
    patch += "--- a/b.txt\n+++ b/b.txt\n@@ -1,3 +1,3 @@\n-1\n+one\n 2\n 3\n"
    end = call(work, "git.apply_patch", patch=patch, threeway=threeway)
    assert end.code == 1
    assert "nothing was changed" in end.log
    assert git(work, "status", "--porcelain") == ""
    assert (work / "a.txt").read_text() == "ours\ntwo\nthree\n"


def test_a_merge_without_conflict_is_applied(work: Path) -> None:
    """If the lines around a change were changed meanwhile, `threeway` merges by the version that the patch names."""
    lines = [f"line {number}\n" for number in range(20)]
    (work / "a.txt").write_text("".join(lines))
    git(work, "commit", "-qam", "long")
    theirs = [*lines[:10], "theirs\n", *lines[11:]]
    (work / "a.txt").write_text("".join(theirs))
    patch = git(work, "diff", "--full-index")
    ours = [*lines[:7], "ours\n", *lines[8:]]
    (work / "a.txt").write_text("".join(ours))
    git(work, "commit", "-qam", "ours")
    assert call(work, "git.apply_patch", patch=patch).code == 1
    assert call(work, "git.apply_patch", patch=patch, threeway=True).code == 0
    assert (work / "a.txt").read_text() == "".join([*ours[:10], "theirs\n", *ours[11:]])


@pytest.mark.parametrize(
    "name",
    [
        "b/../x", "b/.git/hooks/x", "b/sub/.GIT/x", "b/.planrun/x", '"b/\\056planrun/x"', "b/link/x",
        "b//etc/x/../../../x",
    ],
)  # fmt: skip
def test_a_patch_stays_in_the_workspace(work: Path, tmp_path: Path, name: str) -> None:
    """Names upwards, through links, into git or the records are refused, however they are quoted."""
    (tmp_path / "elsewhere").mkdir()
    (work / "link").symlink_to(tmp_path / "elsewhere")
    end = call(work, "git.apply_patch", patch=NEW.format(name=name))
    assert end.code == 1, end
    assert os.listdir(tmp_path / "elsewhere") == []
    assert not (work / ".planrun").exists()
    assert not (tmp_path / "x").exists()


def test_a_patch_of_the_repository_above_stays_in_the_workspace(work: Path) -> None:
    """A workspace inside a larger repository is all that a patch reaches."""
    (work / "sub").mkdir()
    end = call(work / "sub", "git.apply_patch", patch=PATCH)
    assert (end.code, end.log.splitlines()[-1]) == (
        1,
        "git.apply_patch: a.txt: it lies outside of the workspace",
    )
    inside = NEW.format(name="b/sub/x.txt")
    assert call(work / "sub", "git.apply_patch", patch=inside).code == 0
    assert (work / "sub/x.txt").read_text() == "x\n"


def test_a_killed_write_leaves_the_old_file_or_the_new_one(work: Path) -> None:
    """Whenever a write is killed, the file under the name is whole."""
    old, new = "old\n" * 100_000, "new\n" * 900_000
    target = work / "big.txt"
    args = {"name": "file.write", "args": {"path": "big.txt", "content": new}}
    seen: set[str] = set()
    for number in range(12):
        target.write_text(old)
        process = subprocess.Popen(
            process_of(args, str(work.parent / "args")), cwd=work, stdout=subprocess.DEVNULL
        )
        limit = time.monotonic() + LIMIT
        while process.poll() is None and time.monotonic() < limit:
            if number and time.monotonic() > limit - LIMIT + number * 0.012:
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        text = target.read_text()
        assert text in (old, new)
        seen.add(text)
    assert new in seen
    assert [name for name in os.listdir(work) if name.endswith(".tmp")] == []
