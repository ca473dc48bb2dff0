"""The files that a tool reaches: those of the workspace, for all paths and links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.tools.calls import call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a file, beside a file outside of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret\n")
    found = tmp_path / "work"
    (found / "sub").mkdir(parents=True)
    (found / "a.txt").write_text("a\n")
    (found / ".git").mkdir()
    (found / ".git/config").write_text("[core]\n")
    (found / ".planrun/runs").mkdir(parents=True)
    (found / ".planrun/runs/ledger").write_text("ledger\n")
    (found / "out").symlink_to(tmp_path / "outside")
    (found / "up").symlink_to("../outside")
    (found / "deep").symlink_to("sub/../../outside")
    (found / "file").symlink_to("../outside/secret.txt")
    (found / "records").symlink_to(".planrun")
    (found / "repo").symlink_to(".git")
    (found / "loop").symlink_to("loop")
    (found / "inner").symlink_to("sub")
    (found / "absolute").symlink_to(found / "sub")
    return found


ESCAPES = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "/etc/hostname",
    "out/secret.txt",
    "up/secret.txt",
    "deep/secret.txt",
    "inner/../../outside/secret.txt",
    "file",
    "records/runs/ledger",
    ".planrun/runs/ledger",
    ".PlanRun/runs/ledger",
    "loop/x",
    "a.txt/x",
    "\u202esecret",
    "sub/new\nline",
    "a\u200b.txt",
    ".",
    "x" * 300,
]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("tool", ["file.read", "file.write", "file.remove", "file.mkdir", "file.copy"])
def test_no_path_leads_out(work: Path, tool: str, path: str) -> None:
    """Words upwards, absolute ones, links and names that cannot be seen are refused by every tool, with a reason."""
    known: dict[str, dict[str, Any]] = {
        "file.read": {"path": path},
        "file.write": {"path": path, "content": "changed\n"},
        "file.remove": {"paths": [path], "recursive": True},
        "file.mkdir": {"paths": path},
        "file.copy": {"path": "a.txt", "to": path, "overwrite": True},
    }
    end = call(work, tool, **known[tool])
    assert (work.parent / "outside/secret.txt").read_text() == "secret\n"
    assert (work / ".planrun/runs/ledger").read_text() == "ledger\n"
    assert "secret" not in end.outputs.get("text", "")
    if tool == "file.remove" and path == "file":  # the link itself, which is in the workspace
        assert not (work / "file").is_symlink()
        return
    assert end.code == 1
    assert end.log.startswith(f"{tool}: ")
    assert end.log.count("\n") == 1


@pytest.mark.parametrize("path", [".git/config", "repo/config", ".GIT/hooks/pre-commit", "sub/.git", ".git"])
def test_the_inside_of_git_is_not_written(work: Path, path: str) -> None:
    """Neither by its name nor through a link, at any depth and in any spelling."""
    for tool, args in (
        ("file.write", {"path": path, "content": "x"}),
        ("file.copy", {"path": "a.txt", "to": path, "overwrite": True}),
        ("file.move", {"path": "a.txt", "to": path, "overwrite": True}),
        ("file.remove", {"paths": path, "recursive": True, "missing_ok": True}),
    ):
        end = call(work, tool, **args)
        assert end.code == 1, (tool, end)
        assert "not for tools" in end.log
    assert (work / ".git/config").read_text() == "[core]\n"
    assert (work / "a.txt").exists()


def test_links_inside_the_workspace_are_followed(work: Path) -> None:
    """A folder may be named by a link, relative or absolute, as long as it stays inside."""
    assert call(work, "file.write", path="inner/x.txt", content="x\n").code == 0
    assert call(work, "file.write", path="absolute/y.txt", content="y\n").code == 0
    assert sorted(os.listdir(work / "sub")) == ["x.txt", "y.txt"]
    (work / "short").symlink_to("sub/x.txt")
    assert call(work, "file.read", path="short").outputs["text"] == "x\n"


def test_a_link_is_not_written_through(work: Path) -> None:
    """A link stays a link, and its target stays unchanged."""
    (work / "short").symlink_to("a.txt")
    end = call(work, "file.write", path="short", content="x\n")
    assert (end.code, end.log) == (
        1,
        "file.write: short: it is a link, which is not written to; name the file that it leads to\n",
    )
    assert (work / "short").is_symlink()
    assert (work / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(work: Path, kind: str) -> None:
    """A pipe does not block."""
    path = work / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert call(work, "file.read", path="odd").code == 1
    assert call(work, "file.write", path="odd", content="x").code == 1


def test_paths_begin_at_the_folder_of_the_step(work: Path) -> None:
    """A step with a `workdir` names files from there, and no more of the workspace than that."""
    assert call(work, "file.write", cwd="sub", path="x.txt", content="x\n").code == 0
    assert (work / "sub/x.txt").exists()
    assert call(work, "file.read", cwd="sub", path="../a.txt").code == 1
    end = call(work, "file.read", cwd="../outside", path="secret.txt")
    assert (end.code, end.outputs) == (1, {})


SWAP = """
import os, shutil, sys

def attempt(do, *words):
    try:
        do(*words)
    except OSError:
        pass

os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    attempt(os.symlink, "../outside", "swap")
    attempt(os.unlink, "swap")
    attempt(os.mkdir, "swap")
    shutil.rmtree("swap", ignore_errors=True)
"""


def test_a_folder_that_is_replaced_by_a_link_is_not_followed(work: Path) -> None:
    """While another process swaps a folder for a link to the outside, nothing is ever written or read there."""
    with subprocess.Popen([sys.executable, "-c", SWAP, str(work)], stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        try:
            for _ in range(40):
                call(work, "file.write", path="swap/new.txt", content="x\n")
                assert call(work, "file.read", path="swap/secret.txt").code == 1
            assert swapper.poll() is None
        finally:
            swapper.kill()
    assert os.listdir(work.parent / "outside") == ["secret.txt"]


def test_folders_with_a_repository_or_records_stay(work: Path) -> None:
    """Neither is removed or moved with its parent folder, however deep."""
    (work / "sub/vendor/.git").mkdir(parents=True)
    for tool, args in (
        ("file.remove", {"paths": "sub", "recursive": True}),
        ("file.move", {"path": "sub", "to": "other"}),
    ):
        end = call(work, tool, **args)
        assert (end.code, end.log) == (
            1,
            f"{tool}: sub/vendor/.git: it would go, too, and is not for tools\n",
        )
    assert (work / "sub/vendor/.git").is_dir()


def test_removing_a_folder_does_not_follow_links(work: Path) -> None:
    """Links inside go, and what they lead to stays."""
    (work / "sub/link").symlink_to("../../outside")
    (work / "sub/file").write_text("x")
    assert call(work, "file.remove", path="sub", recursive=True).code == 1  # the catalogue's name is `paths`
    assert call(work, "file.remove", paths="sub", recursive=True).outputs == {"removed": "1"}
    assert not (work / "sub").exists()
    assert (work.parent / "outside/secret.txt").exists()


def test_words_that_look_like_options_are_names(work: Path) -> None:
    """Files may be called like options; no tool takes them for such."""
    for name in ("--exec=touch pwned", "-rf", "--", "-"):
        assert call(work, "file.write", path=name, content="x\n").code == 0
        assert call(work, "file.read", path=name).outputs["text"] == "x\n"
        assert call(work, "file.remove", paths=[name]).code == 0
    assert not (work / "pwned").exists()


def test_permissions_stay(work: Path) -> None:
    """A rewritten file keeps its mode; a new one gets the mode of the umask."""
    (work / "a.txt").chmod(0o640)
    call(work, "file.write", path="a.txt", content="b\n")
    assert stat.S_IMODE((work / "a.txt").stat().st_mode) == 0o640
    call(work, "file.write", path="x.sh", content="true\n", executable=True)
    assert os.access(work / "x.sh", os.X_OK)
