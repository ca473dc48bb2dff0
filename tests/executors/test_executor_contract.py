"""What every executor promises, shown on each of them; a new one adds itself to MAKERS."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InternalError
from planrun.executors.local import ExecutorOptions, LocalExecutor
from tests.executors.conftest import SHORT, Masks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.executors.conftest import Bench

MASKS = Masks()
MAKERS: dict[str, Callable[[str], LocalExecutor]] = {
    "pidfd": lambda logs: LocalExecutor(logs=logs, options=ExecutorOptions(watch="pidfd", grace=0.5)),
    "pidfd, a file each": lambda _: LocalExecutor(options=ExecutorOptions(watch="pidfd", grace=0.5)),
    "sigchld": lambda logs: LocalExecutor(logs=logs, options=ExecutorOptions(watch="sigchld", grace=0.5)),
    "pidfd, masked": lambda logs: LocalExecutor(
        logs=logs, masks=MASKS, options=ExecutorOptions(watch="pidfd", grace=0.5)
    ),
    "sigchld, masked": lambda _: LocalExecutor(
        masks=MASKS, options=ExecutorOptions(watch="sigchld", grace=0.5)
    ),
}


@pytest.fixture(params=MAKERS)
def contract(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Bench]:
    """Give the test a folder with each executor in turn."""
    if request.param.startswith("pidfd") and not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no pidfds")
    with MAKERS[request.param](str(bench.logs)) as bench.executor:
        yield bench


def test_an_exit_with_zero_is_completed(contract: Bench) -> None:
    """A process that exits with 0 completes without a message."""
    outcome = contract.run(contract.job("a", "true"))
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("completed", "ran", 0)
    assert (outcome.signal, outcome.message, outcome.notes, outcome.log_bytes) == (None, "", (), 0)
    assert outcome.duration > 0


def test_an_agent_is_no_process(contract: Bench) -> None:
    """What stands for its argv is never looked up as a program."""
    outcome = contract.run(contract.job("a", "true").but(agent={"type": "explore"}))
    assert (outcome.status, outcome.reason) == ("failed", "spawn")
    assert outcome.message == "an agent cannot work here: this run has no model for agents"


@pytest.mark.parametrize("code", [1, 3, 75, 255])
def test_another_exit_code_is_failed(contract: Bench, code: int) -> None:
    """The exit code is reported as it is."""
    outcome = contract.run(contract.shell("a", f"exit {code}"))
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("failed", "exit", code)
    assert outcome.message == f"exit code {code}"


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL", "TERM"])
def test_a_death_by_signal_names_the_signal(contract: Bench, name: str) -> None:
    """A process that a signal ended has code 128 + n, the number and the name."""
    number = signal.Signals[f"SIG{name}"]
    outcome = contract.run(contract.shell("a", f"ulimit -c 0; kill -{name} $$"))
    assert (outcome.status, outcome.reason) == ("failed", "exit")
    assert (outcome.exit_code, outcome.signal) == (128 + number, number)
    assert outcome.message == f"killed by SIG{name}"


def test_output_and_errors_are_in_the_log_in_their_order(contract: Bench) -> None:
    """Standard output and standard error go to the one log as they come."""
    outcome = contract.run(contract.shell("a", "echo one; echo two >&2; echo three"))
    assert contract.log("a") == "one\ntwo\nthree\n"
    assert outcome.log_bytes == len("one\ntwo\nthree\n")


def test_silence_leaves_no_log(contract: Bench) -> None:
    """An attempt that writes nothing leaves no file."""
    contract.run(contract.job("a", "true"))
    contract.executor.close()
    assert not [path for path in contract.folder.rglob("*") if path.is_file()]


def test_many_run_at_once(contract: Bench) -> None:
    """Twenty processes that run at the same time all end."""
    script = "touch here-$0; until test -e go; do sleep 0.05; done; echo $0"
    for n in range(20):
        contract.executor.start(contract.job(f"s{n}", "sh", "-c", script, f"s{n}"))
    contract.until(lambda: len(list(contract.folder.glob("here-*"))) == 20)
    (contract.folder / "go").touch()
    outcomes = contract.outcomes(20)
    assert {outcome.status for outcome in outcomes.values()} == {"completed"}
    assert [contract.log(f"s{n}") for n in range(20)] == [f"s{n}\n" for n in range(20)]


def test_a_timeout_ends_the_attempt(contract: Bench) -> None:
    """What takes longer than it may is ended and has reason `timeout`."""
    outcome = contract.run(contract.job("a", "sleep", "60", timeout=0.2))
    assert (outcome.status, outcome.reason, outcome.signal) == ("failed", "timeout", signal.SIGTERM)
    assert outcome.message == "timed out after 200ms"


def test_a_timeout_is_final(contract: Bench) -> None:
    """A process that exits with 0 when it is asked to end has still timed out."""
    script = "trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done"
    outcome = contract.in_time(
        lambda timeout: contract.shell("a", script, timeout=timeout), (contract.folder / "ready").exists
    )
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("failed", "timeout", 0)


def test_a_process_that_ignores_the_request_is_killed(contract: Bench) -> None:
    """A process that ignores SIGTERM is killed after the grace time."""
    script = "trap '' TERM; touch ready; while :; do sleep 0.05; done"
    outcome = contract.in_time(
        lambda timeout: contract.shell("a", script, timeout=timeout), (contract.folder / "ready").exists
    )
    assert (outcome.status, outcome.reason, outcome.signal) == ("failed", "timeout", signal.SIGKILL)


def test_a_silent_attempt_ends_by_its_idle_timeout(contract: Bench) -> None:
    """Without output for the idle timeout an attempt is ended."""
    outcome = contract.in_time(
        lambda silence: contract.shell("a", "echo started; sleep 60", idle_timeout=silence),
        lambda: contract.log("a") == "started\n",
    )
    assert (outcome.status, outcome.reason) == ("failed", "idle_timeout")
    assert outcome.message.startswith("no output for ")


def test_output_puts_the_idle_timeout_off(contract: Bench) -> None:
    """An attempt that keeps writing outlives its idle timeout."""
    found: list[str] = []
    for silence in SHORT:  # on a busy machine even a `sleep` comes late: once must be enough
        script = f"for i in 1 2 3 4 5 6 7 8; do sleep {silence / 5}; echo $i; done"
        log = str(contract.logs / "a" / f"{silence}.log")
        outcome = contract.run(contract.shell("a", script, idle_timeout=silence, log=log))
        found.append(outcome.status)
        if outcome.status == "completed":
            assert outcome.duration > silence
            break
    assert found[-1] == "completed"


def test_a_missing_program_is_an_outcome(contract: Bench) -> None:
    """What cannot be started fails by an outcome, not by an exception, and leaves no log."""
    outcome = contract.run(contract.job("a", "no-such-program-anywhere"))
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("failed", "spawn", None)
    assert outcome.message == 'no program named "no-such-program-anywhere" on PATH'
    assert not (contract.logs / "a" / "1.log").exists()


def test_a_stopped_step_is_cancelled(contract: Bench) -> None:
    """A step that is stopped because of the run ends `cancelled`, whatever its exit code."""
    contract.executor.start(contract.shell("a", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
    contract.until(lambda: contract.executor.wait(0.2) == [])
    contract.executor.stop("a", "cancelled")
    outcome = contract.outcomes(1)["a"]
    assert (outcome.status, outcome.reason, outcome.message) == ("cancelled", "cancelled", "cancelled")


def test_the_runs_deadline_is_a_timeout(contract: Bench) -> None:
    """A step that is stopped because of the run's deadline has timed out."""
    contract.executor.start(contract.job("a", "sleep", "60"))
    contract.executor.stop("a", "timeout")
    outcome = contract.outcomes(1)["a"]
    assert (outcome.status, outcome.reason) == ("failed", "timeout")
    assert outcome.message == "stopped by the deadline of the run"


def test_stop_leaves_others_alone(contract: Bench) -> None:
    """Stopping one step ends that step only; an unknown one is no error."""
    contract.executor.start(contract.job("a", "sleep", "60"))
    contract.executor.start(contract.shell("b", "sleep 0.3; echo done"))
    contract.executor.stop("a", "cancelled")
    contract.executor.stop("unknown", "cancelled")
    outcomes = contract.outcomes(2)
    assert (outcomes["a"].status, outcomes["b"].status) == ("cancelled", "completed")


def test_all_can_be_killed_at_once(contract: Bench) -> None:
    """kill_all ends processes that would not end by themselves; all are `cancelled`."""
    for name in "abc":
        contract.executor.start(contract.shell(name, "trap '' TERM INT; while :; do sleep 0.05; done"))
    contract.executor.kill_all()
    outcomes = contract.outcomes(3)
    assert [(outcome.status, outcome.signal) for outcome in outcomes.values()] == [("cancelled", 9)] * 3


def test_waiting_has_an_end(contract: Bench) -> None:
    """wait() returns nothing after its timeout, and at once when there is nothing to wait for."""
    assert contract.executor.wait() == []
    assert contract.executor.wait(0) == []
    contract.executor.start(contract.job("a", "sleep", "60"))
    assert contract.executor.wait(0.05) == []
    assert contract.executor.running == ("a",)


def test_a_step_runs_once_at_a_time(contract: Bench) -> None:
    """Starting a step that is running is a bug of the caller."""
    contract.executor.start(contract.job("a", "sleep", "60"))
    with pytest.raises(InternalError):
        contract.executor.start(contract.job("a", "true"))


def test_attempts_follow_each_other(contract: Bench) -> None:
    """A second attempt of a step has its own log."""
    contract.run(contract.shell("a", "echo first"))
    contract.run(contract.shell("a", "echo second", attempt=2, log=str(contract.logs / "a" / "2.log")))
    assert contract.log("a") == "first\n"
    assert (contract.logs / "a" / "2.log").read_text("utf-8") == "second\n"


def test_output_can_be_read_while_a_step_runs(contract: Bench) -> None:
    """From any byte, at most as much as asked for; of a step that does not run nothing is read."""
    executor = contract.executor
    assert executor.output("a", 0, 100) is None
    executor.start(contract.shell("a", "echo one; echo two; until test -e go; do sleep 0.01; done"))
    for _ in range(500):
        executor.wait(0.01)
        if len(executor.output("a", 0, 100) or b"") == 8:
            break
    assert executor.output("a", 0, 100) == b"one\ntwo\n"
    assert executor.output("a", 4, 2) == b"tw"
    assert executor.output("a", 8, 100) == b""
    (contract.folder / "go").touch()
    assert contract.outcomes(1)["a"].log_bytes == 8
    assert executor.output("a", 0, 100) is None
