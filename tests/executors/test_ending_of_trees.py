"""Nothing survives a step: background children, sessions of their own, processes that ignore requests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from planrun.executors import attempt, scan, tree
from planrun.executors.mark import Marks
from planrun.executors.tree import ProcessTree
from tests.executors.conftest import LIMIT, alive

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.executors.conftest import Bench

    Pids = Callable[[], list[int]]

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to find processes outside the group")
NOTED = "echo $! >> pids"
# The colon keeps the shell from becoming `env`: setsid forks when it leads a group, and then no process waits for it.
TRACELESS = "env -i setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep 60 & echo $! >> pids'; :"
UNTIL_NOTED = "until test -s pids; do sleep 0.02; done"


@pytest.fixture
def bench(both: Bench) -> Bench:
    """Have every test of this file run both ways."""
    return both


def test_a_background_child_is_ended_and_noted(bench: Bench, pids: Pids) -> None:
    """A child that outlives the main process is ended, and the outcome says so; the step itself is fine."""
    outcome = bench.run(bench.shell("a", f"sleep 60 & {NOTED}; sleep 60 & {NOTED}; echo done"))
    assert (outcome.status, outcome.exit_code) == ("completed", 0)
    assert outcome.notes == ("2 background processes ended",)
    assert [alive(pid) for pid in pids()] == [False, False]


def test_a_child_that_holds_the_log_delays_nothing(bench: Bench, pids: Pids) -> None:
    """The step ends with its main process even when a child keeps the output open, and others go on meanwhile."""
    bench.executor.start(bench.shell("a", f"sleep 60 & {NOTED}"))
    bench.executor.start(bench.shell("b", "true"))
    assert set(bench.outcomes(1)) == {"b"}
    assert set(bench.outcomes(1)) == {"a"}
    assert not alive(pids()[0])


def test_a_child_that_ends_by_itself_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still writing the last lines when the main process ends may finish, and is not called a leftover."""
    monkeypatch.setattr(attempt, "LINGER", LIMIT)
    outcome = bench.run(bench.shell("a", "(sleep 0.1; echo late) & echo early"))
    assert (outcome.status, outcome.notes) == ("completed", ())
    assert bench.log("a") == "early\nlate\n"


def test_a_background_child_that_ignores_requests_is_killed(bench: Bench, pids: Pids) -> None:
    """SIGKILL follows for a background child that ignores SIGTERM."""
    outcome = bench.run(bench.shell("a", f"(trap '' TERM; while :; do sleep 0.05; done) & {NOTED}"))
    assert outcome.notes[0].endswith("ended")  # the child and a `sleep` of the moment or two
    assert not alive(pids()[0])


@LINUX
def test_a_child_in_a_session_of_its_own_is_found_by_its_log(bench: Bench, pids: Pids) -> None:
    """A child that left the session but holds the log open is found, also with an environment of its own."""
    script = f"env -i setsid sh -c 'echo $$ >> {bench.folder}/pids; exec sleep 60' & {UNTIL_NOTED}"
    outcome = bench.run(bench.shell("a", script))
    assert outcome.notes == ("1 background process ended",)
    assert not alive(pids()[0])


@LINUX
def test_a_stopped_step_takes_its_sessions_along(bench: Bench, pids: Pids) -> None:
    """When a step is stopped, its children in other sessions end too, whatever they did with their output."""
    script = "setsid sh -c 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 & sleep 60"
    bench.executor.start(bench.shell("a", script))
    bench.until(lambda: len(pids()) == 1)
    bench.executor.stop("a", "cancelled")
    assert bench.outcomes(1)["a"].status == "cancelled"
    assert not alive(pids()[0])


@LINUX
def test_a_timeout_finds_daemons_by_their_environment(bench: Bench, pids: Pids) -> None:
    """A daemon whose parents are gone is found by the variables that name the attempt."""
    script = "(setsid sh -c 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 &); sleep 60"
    outcome = bench.in_time(lambda timeout: bench.shell("a", script, timeout=timeout), lambda: bool(pids()))
    assert outcome.reason == "timeout"
    assert not alive(pids()[0])


@LINUX
def test_a_daemon_without_a_trace_is_ended_with_its_step(bench: Bench, pids: Pids) -> None:
    """A daemon that has neither parent nor session, environment or descriptor of its step ends with it."""
    outcome = bench.run(bench.shell("a", TRACELESS))
    assert (outcome.status, outcome.notes) == ("completed", ("1 background process ended",))
    assert not alive(pids()[0])


@LINUX
def test_daemons_of_steps_that_run_together_are_distinguished(bench: Bench, pids: Pids) -> None:
    """The end of a step is none for the daemon of another step that is still running."""
    bench.executor.start(bench.shell("b", f"{TRACELESS}; until test -e go; do sleep 0.02; done"))
    bench.until(lambda: len(pids()) == 1)
    bench.executor.start(bench.shell("a", TRACELESS))
    assert set(bench.outcomes(1)) == {"a"}
    assert [alive(pid) for pid in pids()] == [True, False]
    (bench.folder / "go").touch()
    assert bench.outcomes(1)["b"].notes == ("1 background process ended",)
    assert not alive(pids()[0])


@LINUX
def test_without_marks_the_environment_tells(
    bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel allows no marks, a daemon is found by the variables that name its attempt."""
    with subprocess.Popen(["sleep", "60"], env={"NAME": "value", "PATH": os.defpath}) as other:
        limit = time.monotonic() + 10
        while not (is_readable := b"NAME=value" in scan.environment(other.pid)) and time.monotonic() < limit:
            time.sleep(0.01)  # right after its start it has none yet
        other.kill()
    if not is_readable:
        pytest.skip("this process may not read the environment of its children")
    monkeypatch.setattr(Marks, "_try", lambda _marks: False)
    with type(bench.executor)(logs=str(bench.logs)) as bench.executor:
        outcome = bench.run(bench.shell("a", TRACELESS.replace("env -i ", "")))
    assert outcome.notes == ("1 background process ended",)
    assert not alive(pids()[0])


def test_the_whole_tree_has_the_grace_time(bench: Bench) -> None:
    """A child that needs a moment to clean up after SIGTERM has it, though its shell is gone at once."""
    child = "trap 'sleep 0.2; echo cleaned; exit 0' TERM; touch ready; while :; do sleep 0.02; done"
    with bench.make(grace=LIMIT) as bench.executor:
        outcome = bench.in_time(
            lambda timeout: bench.shell("a", f"({child}); true", timeout=timeout),
            (bench.folder / "ready").exists,
        )
    assert (outcome.reason, outcome.signal) == ("timeout", signal.SIGTERM)
    assert "cleaned\n" in bench.log("a")


def test_a_suspended_step_can_be_stopped(bench: Bench) -> None:
    """A process that is stopped by SIGSTOP is continued, so that it hears the request."""
    script = "trap 'echo caught; exit 0' TERM; touch ready; kill -STOP $$"
    with bench.make(grace=LIMIT) as bench.executor:
        outcome = bench.in_time(
            lambda timeout: bench.shell("a", script, timeout=timeout), (bench.folder / "ready").exists
        )
    assert outcome.reason == "timeout"
    assert bench.log("a") == "caught\n"


def test_the_second_stop_kills(bench: Bench) -> None:
    """A second stop() does not wait for the grace time."""
    with bench.make(grace=3600) as bench.executor:
        bench.executor.start(bench.shell("a", "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done"))
        bench.until((bench.folder / "pids").exists)
        bench.executor.stop("a", "cancelled")
        assert bench.executor.wait(0.1) == []
        bench.executor.stop("a", "cancelled")
        assert bench.outcomes(1)["a"].signal == signal.SIGKILL


def test_a_forwarded_signal_arrives_once_in_the_whole_group(bench: Bench, pids: Pids) -> None:
    """Each process of a step gets the signal that planrun got, one time; the step ends `cancelled`."""
    program = (
        "import os, signal, time\n"
        "got = os.open('got', os.O_WRONLY | os.O_CREAT)\n"
        "signal.signal(signal.SIGINT, lambda *_: os.write(got, b'INT '))\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os.write(got, b'USR1 '))\n"
        "with open('pids', 'w') as file: print(os.getpid(), file=file)\n"
        "time.sleep(60)"
    )
    got = bench.folder / "got"
    with bench.make(grace=3600) as bench.executor:
        bench.executor.start(bench.python("a", program))
        bench.until(lambda: len(pids()) == 1)
        bench.executor.signal_all(signal.SIGINT)
        bench.until(lambda: got.read_text("ascii") == "INT ")
        bench.executor.signal_all(signal.SIGINT)
        os.kill(pids()[0], signal.SIGUSR1)  # of two that wait, the lower number comes first
        bench.until(lambda: got.read_text("ascii").endswith("USR1 "))
        bench.executor.kill_all()
        outcome = bench.outcomes(1)["a"]
    assert (outcome.status, outcome.signal) == ("cancelled", signal.SIGKILL)
    assert got.read_text("ascii") == "INT USR1 "


def test_closing_leaves_nothing(bench: Bench, pids: Pids) -> None:
    """close() ends main processes and background children alike."""
    for step in "abc":
        bench.executor.start(bench.shell(step, f"trap '' TERM; sleep 60 & {NOTED}; echo $$ >> pids; wait"))
    bench.until(lambda: len(pids()) == 6)
    bench.executor.close()
    assert [pid for pid in pids() if alive(pid)] == []


def test_without_proc_the_group_is_ended(bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes cannot be listed, the group is signalled as a whole, and the note has no number."""
    monkeypatch.setattr(tree, "HAS_PROC", False)
    outcome = bench.run(bench.shell("a", f"sleep 60 & {NOTED}"))
    assert (outcome.status, outcome.notes) == ("completed", ("background processes ended",))
    assert not alive(pids()[0])


@LINUX
def test_a_reused_number_is_left_alone(bench: Bench) -> None:
    """When another process got the main process's number, neither it nor its session counts as the step's."""
    bench.executor.start(bench.shell("other", "sleep 60 & echo $$ >> pids; wait"))
    pids = bench.folder / "pids"
    bench.until(lambda: pids.exists() and pids.read_text("ascii").endswith("\n"))
    number = int(pids.read_text("ascii"))
    ended = ProcessTree(number, bench.job("ended", "true"))
    assert ended.search() == 1  # as long as it leads, the child is its own
    ended = ProcessTree(number, bench.job("ended", "true"))
    ended.leading = False
    assert ended.search() == 0
    ended.signal(signal.SIGKILL)
    assert alive(number)


@LINUX
def test_a_process_that_got_an_old_number_is_not_signalled(bench: Bench) -> None:
    """A member is signalled only while number and start time are those that were found."""
    bench.executor.start(bench.job("a", "sleep", "60"))
    number = bench.executor._by_pid.copy().popitem()[0]
    scan.signal_exactly(number, -2, signal.SIGKILL)
    assert alive(number)
    scan.signal_exactly(number, scan.start_time(number), signal.SIGKILL)
    assert bench.outcomes(1)["a"].signal == signal.SIGKILL


@LINUX
def test_readers_of_the_log_are_no_members(bench: Bench) -> None:
    """A process that follows the log is left alone."""
    log = bench.logs / "a" / "1.log"
    bench.executor.start(bench.shell("a", "echo x; until test -e go; do sleep 0.02; done; sleep 60 &"))
    bench.until(log.exists)
    bench.executor.start(bench.shell("tail", f"exec <{log}; touch go; exec sleep 60"))
    assert bench.outcomes(1)["a"].notes == ("1 background process ended",)
    assert bench.executor.running == ("tail",)


def test_a_process_that_nothing_ends_is_given_up_and_named(
    bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When even SIGKILL has no effect the run continues, and a later end of the process has no effect."""
    monkeypatch.setattr(ProcessTree, "signal", lambda _tree, _signum: None)
    monkeypatch.setattr(attempt, "UNKILLABLE", 1.0)
    bench.executor.start(bench.shell("a", "echo $$ >> pids; until test -e go; do sleep 0.02; done"))
    bench.until(lambda: len(pids()) == 1)
    bench.executor.kill_all()
    outcome = bench.outcomes(1)["a"]
    assert (outcome.status, outcome.exit_code) == ("cancelled", None)
    assert outcome.notes[0].startswith(f"not ended even by SIGKILL: process {pids()[0]}")
    (bench.folder / "go").touch()
    bench.executor.start(bench.job("b", "sleep", "0.3"))
    assert set(bench.outcomes(1)) == {"b"}
