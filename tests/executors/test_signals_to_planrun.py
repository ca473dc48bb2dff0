"""Signals to planrun: caught in their order, passed on once, and everything ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.executors.wait import SignalInbox
from tests.executors.conftest import LIMIT, alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.executors.conftest import Bench

DRIVER = """
import os, sys
from planrun.executors.local import LocalExecutor, ExecutorOptions
from planrun.executors.wait import SignalInbox
from planrun.model.job import Job
watch, script = sys.argv[1:]
here = os.getcwd()
options = ExecutorOptions(watch=watch, grace=3600.0)
with SignalInbox() as inbox, LocalExecutor(inbox=inbox, logs=here + "/logs", options=options) as executor:
    for step in ("a", "b"):
        executor.start(Job(step=step, attempt=1, argv=("sh", "-c", script), env=dict(os.environ), cwd=here,
                           log=f"{here}/logs/{step}/1.log", timeout=60.0))
    print("ready", flush=True)
    seen = 0
    while executor.running:
        for job, outcome in executor.wait():
            print(job.step, outcome.status, outcome.signal, flush=True)
        for signum in inbox.take():
            print("got", signum, flush=True)
            seen += 1
            executor.signal_all(signum) if seen == 1 else executor.kill_all()
"""
STEP = "echo $$ >> pids; sleep 60 & echo $! >> pids; wait"


@pytest.fixture(params=["pidfd", "sigchld"])
def driver(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a small planrun that runs a script as two steps; it is ready when it says so."""
    if request.param == "pidfd" and not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no pidfds")
    started: list[subprocess.Popen[str]] = []

    def start(script: str) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        words = [sys.executable, "-c", DRIVER, request.param, script]
        process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for_lines(path: Path, count: int) -> list[int]:
    """Wait until a file has so many lines; return them as numbers."""
    pause = threading.Event()
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit and not (path.exists() and path.read_text("ascii").count("\n") == count):
        pause.wait(0.02)
    return [int(line) for line in path.read_text("ascii").split()]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_cancels_every_step(
    driver: Callable[[str], subprocess.Popen[str]], tmp_path: Path, name: str
) -> None:
    """The same signal reaches every step, all end `cancelled`, and no process is left."""
    planrun = driver(STEP)
    noted = wait_for_lines(tmp_path / "pids", 4)
    signum = signal.Signals[name].value
    planrun.send_signal(signum)
    said, _ = planrun.communicate(timeout=LIMIT)
    assert said.splitlines()[0] == f"got {signum}"
    assert sorted(said.splitlines()[1:]) == [f"a cancelled {signum}", f"b cancelled {signum}"]
    assert planrun.returncode == 0
    assert [pid for pid in noted if alive(pid)] == []


def test_the_second_signal_kills(driver: Callable[[str], subprocess.Popen[str]], tmp_path: Path) -> None:
    """Steps that ignore the first signal are killed at the second; the grace time of an hour is not waited for."""
    planrun = driver("trap '' INT TERM; echo $$ >> pids; while :; do sleep 0.05; done")
    wait_for_lines(tmp_path / "pids", 2)
    planrun.send_signal(signal.SIGINT)
    assert planrun.stdout is not None
    assert planrun.stdout.readline() == "got 2\n"
    planrun.send_signal(signal.SIGTERM)
    said, _ = planrun.communicate(timeout=LIMIT)
    assert said.splitlines()[0] == "got 15"
    assert sorted(said.splitlines()[1:]) == ["a cancelled 9", "b cancelled 9"]


def test_signals_keep_their_order() -> None:
    """take() returns received signals, oldest first, and none twice."""
    with SignalInbox() as inbox:
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), signum)
        assert inbox.take() == [15, 2, 15, 1]
        assert inbox.take() == []


def test_a_signal_ends_a_wait(bench: Bench) -> None:
    """wait() returns without an outcome when a signal comes, and does not lose it."""
    with SignalInbox() as inbox, LocalExecutor(inbox=inbox) as executor:
        executor.start(bench.job("a", "sleep", "60"))
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        assert executor.wait() == []
        assert inbox.take() == [signal.SIGTERM]
        timer.join()


def test_handlers_are_put_back() -> None:
    """After the inbox is closed the signals do what they did before."""
    before = [
        signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    ]
    with SignalInbox() as inbox:
        assert inbox.catch_children()
        assert signal.getsignal(signal.SIGTERM) != before[1]
    after = [
        signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    ]
    assert after == before
    assert signal.set_wakeup_fd(-1) == -1


def test_what_nohup_ignores_stays_ignored() -> None:
    """A signal that was ignored when planrun started does not end it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SignalInbox() as inbox:
            os.kill(os.getpid(), signal.SIGHUP)
            assert inbox.take() == []
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("watch", ["best", "sigchld"])
def test_it_works_outside_the_main_thread(bench: Bench, watch: str) -> None:
    """In another thread there are no handlers, but processes run and end."""
    found: list[str] = []

    def work() -> None:
        options = ExecutorOptions(watch=watch)  # type: ignore[arg-type]
        with SignalInbox() as inbox, LocalExecutor(inbox=inbox, options=options) as executor:
            executor.start(bench.job("a", "true"))
            while not found:
                found.extend(outcome.status for _, outcome in executor.wait())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(LIMIT)
    assert found == ["completed"]


def test_exit_codes_are_kept_when_sigchld_was_ignored(bench: Bench) -> None:
    """A parent that ignores SIGCHLD hands that on; planrun learns how its steps end all the same."""
    program = f"""
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from planrun.executors.local import LocalExecutor, ExecutorOptions
from planrun.model.job import Job
with LocalExecutor() as executor:
    executor.start(Job(step="a", attempt=1, argv=("sh", "-c", "exit 7"), env=dict(os.environ), cwd=os.getcwd(),
                       log={str(bench.logs)!r} + "/1.log", timeout=60.0))
    print(executor.wait()[0][1].exit_code)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", program], check=True, env=environment, capture_output=True)
    assert said.stdout == b"7\n"
