"""Locks of a host: tickets are served in their order, never more than there are slots, and die with their process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from planrun.errors import RecordsLost
from planrun.records.hostlocks import HostLocks
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

# Notes what it does in lines that are appended whole: it waits in line, it has the lock, it gives it back.
CLIENT = """
import os, sys, time
from planrun.records.hostlocks import HostLocks
folder, log, name, slots, holds = sys.argv[1:]
locks = HostLocks("r" + name, {"db": int(slots)}, folder)
fd = os.open(log, os.O_WRONLY | os.O_APPEND)
blockers = locks.claim("s", ("db",))
number = locks._tickets["s"].number
os.write(fd, f"wait {number} {os.getpid()}\\n".encode())
while blockers:
    time.sleep(locks.retry_after)
    blockers = locks.claim("s", ("db",))
os.write(fd, f"have {number} {os.getpid()}\\n".encode())
time.sleep(float(holds))
os.write(fd, f"give {number} {os.getpid()}\\n".encode())
locks.release("s")
"""


def claim_within(locks: HostLocks, step: str, names: tuple[str, ...]) -> None:
    """Wait until a step has its locks."""
    limit = time.monotonic() + LIMIT
    while locks.claim(step, names):
        assert time.monotonic() < limit
        time.sleep(locks.retry_after)


def start(folder: Path, name: str, slots: int, holds: float) -> subprocess.Popen[bytes]:
    """Start a process that wants the lock."""
    words = [sys.executable, "-c", CLIENT, str(folder), str(folder / "log"), name, str(slots), str(holds)]
    return subprocess.Popen(words)


def rows(folder: Path) -> list[tuple[str, int, int]]:
    """Return the notes of the processes: event, number of the ticket, process."""
    found = [line.split() for line in (folder / "log").read_text("ascii").splitlines()]
    return [(what, int(number), int(pid)) for what, number, pid in found]


@pytest.mark.parametrize("killed", [False, True])
def test_fifty_processes_share_two_slots(tmp_path: Path, *, killed: bool) -> None:
    """Never more than two have it, in the order of their tickets, and a killed process does not block the others."""
    (tmp_path / "log").touch()
    chance = random.Random(7)
    holds = [chance.uniform(0.0, 0.05) for _ in range(50)]
    clients = [start(tmp_path, str(n), 2, 3600.0 if killed and n % 10 == 0 else holds[n]) for n in range(50)]
    victims = {client.pid for n, client in enumerate(clients) if killed and n % 10 == 0}
    limit = time.monotonic() + LIMIT
    dead: set[int] = set()
    while any(client.poll() is None for client in clients):
        assert time.monotonic() < limit
        for what, _, pid in rows(tmp_path):
            if what == "have" and pid in victims - dead:
                os.kill(pid, signal.SIGKILL)
                dead.add(pid)
        time.sleep(0.02)
    found = rows(tmp_path)
    having: set[int] = set()
    gone: set[int] = set()  # numbers whose processes gave it back, or were killed while they had it
    for what, number, pid in found:
        if what == "have":
            having = {other for other in having if other not in gone}
            having.add(number)
            assert len(having) <= 2
            assert len(set(range(1, number)) - gone) <= 1, "a later ticket came first"
        if what == "give" or pid in dead:
            gone.add(number)
    assert [what for what, _, _ in found].count("have") == 50
    assert len(dead) == len(victims)
    assert not list(tmp_path.glob("*.ticket")) or killed


def test_the_order_of_tickets_is_kept(tmp_path: Path) -> None:
    """Who waits for two locks keeps his place in the line of both, and gets both at once."""
    first, second, third = (HostLocks(name, {}, str(tmp_path)) for name in "abc")
    assert first.claim("s", ("x",)) == ""
    assert 'waiting for lock "x", held by run a, process' in second.claim("s", ("x", "y"))
    assert 'waiting for lock "y", held by run b, process' in third.claim("s", ("y",))
    first.release("s")
    claim_within(second, "s", ("x", "y"))
    assert third.claim("s", ("y",))
    second.close()
    claim_within(third, "s", ("y",))


def test_plans_that_disagree_get_the_smaller_number(tmp_path: Path) -> None:
    """When one run has a lock with one slot, another that allows two slots does not get it."""
    alone, wide = HostLocks("a", {}, str(tmp_path)), HostLocks("b", {"x": 2}, str(tmp_path))
    assert alone.claim("s", ("x",)) == ""
    assert wide.claim("s", ("x",))
    alone.close()
    claim_within(wide, "s", ("x",))
    assert alone.claim("s", ("x",))


def test_steps_runs_and_names_do_not_mix(tmp_path: Path) -> None:
    """A concurrency group and a lock of the same name are separate."""
    one, other = HostLocks("a", {}, str(tmp_path)), HostLocks("b", {}, str(tmp_path))
    assert one.claim("s", ("x",)) == ""
    assert other.claim("", ("x",), kind="plan") == ""


def test_a_process_that_was_started_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    """The descriptor of a ticket belongs to one process: when it gives it back, or dies, the ticket is free."""
    locks, other = HostLocks("a", {}, str(tmp_path)), HostLocks("b", {}, str(tmp_path))
    assert locks.claim("s", ("x",)) == ""
    child = subprocess.Popen(["sleep", "3600"], close_fds=False)
    try:
        os.close(locks._tickets["s"].fd)  # as the kernel does when the process dies
        assert other.claim("s", ("x",)) == ""
    finally:
        child.kill()
        child.wait()


def test_a_folder_that_others_may_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks are for this user alone: another writer there would decide the order."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path))
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks").chmod(0o777)
    with pytest.raises(RecordsLost, match="others may write there"):
        HostLocks("a", {})


def test_a_full_disk_is_reported_and_blocks_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket that cannot be written is none; the next try makes a new one."""
    locks = HostLocks("a", {}, str(tmp_path))
    monkeypatch.setattr(os, "write", lambda _fd, _data: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert locks.claim("s", ("x",)) == 'the lock "x" cannot be had: No space left'
    monkeypatch.undo()
    assert locks.claim("s", ("x",)) == ""
    assert HostLocks("b", {}, str(tmp_path)).claim("s", ("x",))
