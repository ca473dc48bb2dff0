"""Marks identify whose a process is, and the spawned pids."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.executors import mark, tree
from planrun.executors.mark import Marks, is_any_marked, mark_of, marked_pids
from planrun.executors.tree import SpawnedPids

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no marks")


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """Give the test the marks of a planrun in its folder."""
    return Marks(str(tmp_path))


@pytest.fixture
def spawned_pids() -> Iterator[SpawnedPids]:
    """Count the pids spawned in the test."""
    counted = SpawnedPids()
    yield counted
    counted.close()


def start_marked(marks: Marks, number: int, *words: str) -> subprocess.Popen[bytes]:
    """Start a process with a mark."""
    marks.apply(number)
    try:
        return subprocess.Popen(words, stdout=subprocess.PIPE)
    finally:
        marks.apply(0)


def test_a_mark_outlives_session_environment_and_program(marks: Marks) -> None:
    """A process has the mark of its ancestors whatever it changed, and it is found by it."""
    before = mark_of(os.getpid())
    number = marks.new()
    with start_marked(
        marks, number, "env", "-i", "setsid", "-f", "sh", "-c", "echo $$; exec sleep 60"
    ) as process:
        assert process.stdout is not None
        daemon = int(process.stdout.readline())
        process.wait()
        assert mark_of(daemon) == mark._written_mark(daemon) == number
        assert marked_pids(marks.planrun) == [daemon]
        os.kill(daemon, 9)
    assert mark_of(os.getpid()) == before


def test_what_is_gone_or_was_never_marked_has_no_mark(marks: Marks) -> None:
    """A process that ended and a process of another program have no mark."""
    with start_marked(marks, marks.new(), "true") as process:
        process.wait()
    assert mark_of(process.pid) not in marks.workspace
    assert mark._written_mark(process.pid) == 0
    assert os.getpid() not in marked_pids(marks.workspace)


def test_a_workspace_is_known_by_the_folder_and_a_planrun_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two planruns in one folder, however it is spelled, share the workspace's marks and no other."""
    first = Marks(str(tmp_path))
    (tmp_path / "inside").mkdir()
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    second = Marks(f"{tmp_path}/inside/..")
    assert first.workspace == second.workspace
    assert not {first.new(), first.new()} & {second.new()}
    assert first.new() in first.planrun
    assert first.new() not in second.planrun
    assert str(first.new()).startswith(first.prefix)
    assert second.new() < 2**63
    assert Marks(str(tmp_path / "inside")).workspace != first.workspace


def test_marks_that_are_refused_or_do_not_arrive_are_not_used(
    marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox that refuses the limit, or a kernel that loses it, leaves a planrun without marks."""
    assert marks.works
    marks.check(os.getpid(), marks.new())  # this process was not started with it
    assert (marks.works, marks.new(), marks.prefix) == (False, 0, "")

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("resource.setrlimit", refuse)
    assert not Marks().works


def test_many_pids_are_checked_by_listing_processes(marks: Marks) -> None:
    """Whether a bearer is looked for among a few ids, many or all, the answer is the same."""
    with start_marked(marks, marks.new(), "sleep", "60") as process:
        for spawned in (None, range(process.pid - 1, process.pid + 1), range(2, process.pid + 1000)):
            assert is_any_marked(marks.planrun, spawned)
        assert not is_any_marked(marks.planrun, range(process.pid + 1, process.pid + 3))
        process.kill()


def test_a_grandchild_is_a_spawned_pid(spawned_pids: SpawnedPids) -> None:
    """The ids that went to our own children do not count, those of their children do."""
    ids = [os.posix_spawn("/bin/sh", ("sh", "-c", "/bin/true; /bin/true"), {}) for _ in range(2)]
    numbers = [spawned_pids.ours(pid) for pid in ids]
    for pid in ids:
        os.waitpid(pid, 0)
    for pid, number in zip(ids, numbers, strict=True):
        spawned = spawned_pids.since(pid, number)
        assert spawned is None or len(spawned) >= 2  # None: the ids began anew just now


def test_spawned_pids_are_unknown_where_the_file_is_not_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of the kernel's, or a missing one, gives no result."""
    monkeypatch.setattr(tree, "_FILE", str(tmp_path / "loadavg"))
    assert SpawnedPids().since(1, 0) is None
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 1/2 3\n", "ascii")
    assert SpawnedPids().since(1, 0) is None


def test_spawned_pids_are_unknown_after_ids_wrapped_around(spawned_pids: SpawnedPids) -> None:
    """After an id that is higher than the last one given nothing is known, and a first child like that ends it."""
    assert spawned_pids.since(2**22, 0) is None
    spawned_pids.ours(2**22)
    assert spawned_pids._fd == -1


def test_a_process_that_is_reaped_while_it_is_looked_at_has_no_mark() -> None:
    """Its limits, opened before, read as nothing, as when another process ends beside a run."""
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still to be reaped
    with open(f"/proc/{process.pid}/limits", "rb", buffering=0) as file:
        process.wait()
        try:
            text = file.read()
        except ProcessLookupError:
            text = b""
    assert mark.soft_limit(text) == 0
    assert (
        mark.soft_limit(b"Limit\nMax file locks            77                   unlimited            locks\n")
        == 77
    )
