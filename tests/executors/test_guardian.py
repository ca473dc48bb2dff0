"""What happens to the steps of a killed planrun, and to its remaining files and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.executors import owners
from planrun.executors.local import Guardian, LocalExecutor
from planrun.executors.mark import Marks, Owner
from tests.executors.conftest import LIMIT, alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.executors.conftest import Bench

    Pids = Callable[[], list[int]]

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PLANRUN = """
import os, sys
from planrun.executors.local import LocalExecutor
from planrun.executors.mark import Marks, Owner
from planrun.model.job import Job
run, marked, script = sys.argv[1:]
if not marked:
    Marks._try = lambda marks: False
here = os.getcwd()
env = {"PATH": os.environ["PATH"], "PLANRUN_RUN": run, "PLANRUN_WORKSPACE": here}
executor = LocalExecutor(logs=here + "/logs", owner=Owner(run=run, workspace=here))
executor.start(Job(step="a", attempt=1, argv=("sh", "-c", script), env=env, cwd=here, log=here + "/logs/a/1.log",
                   timeout=60.0))
while executor.running:
    executor.wait(1.0)
executor.close()
"""
TRACELESS = (
    'env -i setsid sh -c "exec </dev/null >/dev/null 2>&1; sleep 60 & echo \\$! >> ../pids"; '
    "echo $$ >> ../pids; trap : TERM; sleep 60; sleep 60"
)
DAEMON = (
    "setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep 60 & echo $! >> pids'; echo $$ >> pids; sleep 60"
)


@pytest.fixture
def planrun(bench: Bench) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a small planrun with one step, in its own process group."""
    started: list[subprocess.Popen[bytes]] = []

    def start(script: str, marked: str = "marked") -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        (bench.folder / "driver.py").write_text(PLANRUN, "utf-8")
        words = [sys.executable, "driver.py", bench.run_id, marked, script]
        process = subprocess.Popen(words, cwd=bench.folder, env=environment, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def guardians(run: str) -> list[int]:
    """The ids of the processes that guard a run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 2 and words[1].endswith(b"/guardian.sh") and words[2] == run.encode():
            found.append(int(entry.name))
    return found


def until(fact: Callable[[], bool]) -> None:
    """Wait until something is true."""
    pause = threading.Event()
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        if fact():
            return
        pause.wait(0.02)
    pytest.fail("it never came true")


@LINUX
@pytest.mark.parametrize(("marked", "wiped"), [("marked", "env -i "), ("", "")], ids=["marks", "environment"])
def test_a_killed_planrun_leaves_no_process(
    planrun: Callable[..., subprocess.Popen[bytes]], bench: Bench, pids: Pids, marked: str, wiped: str
) -> None:
    """After SIGKILL for planrun's whole group, steps and their daemons end, and so does the guardian."""
    killed = planrun(wiped + DAEMON, marked)
    until(lambda: len(pids()) == 2)
    os.killpg(killed.pid, signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in pids()))
    until(lambda: not guardians(bench.run_id))


@LINUX
def test_a_planrun_within_a_planrun_leaves_no_process(
    planrun: Callable[..., subprocess.Popen[bytes]], bench: Bench, pids: Pids
) -> None:
    """When the outer one is killed its guardian kills the inner one, whose own guardian does the rest."""
    inner = (
        f"PYTHONPATH={os.pathsep.join(sys.path)} exec {sys.executable} ../driver.py {bench.run_id}-in marked"
    )
    (bench.folder / "inner").mkdir()
    killed = planrun(f"cd inner; {inner} '{TRACELESS}'")
    until(lambda: len(pids()) == 2)
    killed.kill()
    until(lambda: not any(alive(pid) for pid in pids()))
    until(lambda: not guardians(bench.run_id) and not guardians(f"{bench.run_id}-in"))


@LINUX
def test_the_guardian_has_its_own_session(
    planrun: Callable[..., subprocess.Popen[bytes]], bench: Bench, pids: Pids
) -> None:
    """It has neither planrun's group, session and parent nor its environment, and gets no request to end."""
    running = planrun(DAEMON)
    until(lambda: len(pids()) == 2 and len(guardians(bench.run_id)) == 1)
    (guardian,) = guardians(bench.run_id)
    stat = Path(f"/proc/{guardian}/stat").read_text("ascii").rpartition(")")[2].split()
    assert str(running.pid) not in stat[1:4]
    assert b"PYTHONPATH" not in Path(f"/proc/{guardian}/environ").read_bytes()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(guardian, signum)
    running.kill()
    until(lambda: not any(alive(pid) for pid in pids()))


@LINUX
def test_a_dismissed_guardian_kills_no_process(bench: Bench, pids: Pids) -> None:
    """At the end of a run it goes, and a process with the run in its environment lives on."""
    bench.executor.start(bench.shell("a", "echo $$ >> pids; exec sleep 60"))
    bench.until(lambda: len(pids()) == 1)
    guardian = Guardian(bench.run_id, "")
    until(lambda: bool(guardians(bench.run_id)))
    guardian.dismiss()
    until(lambda: not guardians(bench.run_id))
    assert alive(pids()[0])


@LINUX
@pytest.mark.parametrize("marked", ["marked", ""], ids=["marks", "environment"])
def test_the_next_planrun_ends_what_was_left(
    planrun: Callable[..., subprocess.Popen[bytes]],
    bench: Bench,
    pids: Pids,
    monkeypatch: pytest.MonkeyPatch,
    marked: str,
) -> None:
    """When planrun and its guardian are killed together, the next one in the workspace clears it."""
    killed = planrun(DAEMON, marked)
    until(lambda: len(pids()) == 2 and len(guardians(bench.run_id)) == 1)
    os.kill(guardians(bench.run_id)[0], signal.SIGKILL)
    killed.kill()
    killed.wait()
    assert [alive(pid) for pid in pids()] == [True, True]
    if not marked:
        monkeypatch.setattr(Marks, "_try", lambda _marks: False)
    elsewhere = Owner(run="another", workspace=str(bench.folder.parent))
    for owner, left in ((elsewhere, True), (Owner(run="next", workspace=str(bench.folder)), False)):
        with LocalExecutor(owner=owner) as executor:
            executor.clear()
        assert [alive(pid) for pid in pids()] == [left, left]


@LINUX
def test_what_no_step_was_charged_with_ends_with_the_run(
    bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """close() ends what was overlooked at the end of its step."""
    monkeypatch.setattr("planrun.executors.attempt.Attempt._may_have_left_processes", lambda _attempt: False)
    with LocalExecutor(owner=Owner(run=bench.run_id, workspace=str(bench.folder))) as bench.executor:
        bench.run(bench.shell("a", f"env -i {DAEMON.rpartition(';')[0]}"))
        assert alive(pids()[0])
    assert not any(alive(pid) for pid in pids())


def test_without_proc_groups_are_found_by_their_environment(
    bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing of macOS's ps names the groups whose members carry the run; they are killed whole."""
    bench.executor.start(bench.shell("a", "sleep 60 & echo $$ $! >> pids; wait"))
    bench.until(lambda: len(pids()) == 2)
    ps = bench.folder / "ps"
    ps.write_text(
        f"#!/bin/sh\necho '    1 /sbin/launchd'\necho '{os.getpgrp()} me PLANRUN_RUN={bench.run_id}'\n"
        f"echo '{pids()[0]} sh -c x PATH=/bin PLANRUN_RUN={bench.run_id} A=b'\n",
        "utf-8",
    )
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bench.folder}:{os.environ['PATH']}")
    monkeypatch.setattr(owners, "HAS_PROC", False)
    owner = Owner(run=bench.run_id, workspace=str(bench.folder))
    assert owners.kill_leftovers(Marks(), owner, earlier=False) == 1
    assert bench.outcomes(1)["a"].signal == signal.SIGKILL
    assert not any(alive(pid) for pid in pids())
