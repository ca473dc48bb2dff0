"""`planrun logs --follow`: the output of a run while another process executes it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from planrun.executors.logs import Logs, elsewhere
from planrun.logs.attempts import Attempt
from planrun.logs.following import Growing
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]
    Start = Callable[..., subprocess.Popen[str]]

WAIT = "until [ -e {} ]; do sleep 0.02; done"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start planrun in the test's folder; what still runs at the end is killed."""
    monkeypatch.chdir(tmp_path)
    started = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "planrun", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(is_so: Callable[[], object]) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.01)


def running(tmp_path: Path, start: Start, plan: str, step: str) -> subprocess.Popen[str]:
    """Start a plan and return when a step of it runs."""
    (tmp_path / "plan.yml").write_text(plan)
    process = start("execute", "plan.yml", "--auto-approve", "high")
    mark = '"type":"attempt_started"', f'"step":"{step}"'
    until(
        lambda: any(
            all(each in row for each in mark)
            for path in tmp_path.glob(".planrun/runs/*/ledger.jsonl")
            for row in path.read_text().splitlines()
        )
    )
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line on stdout."""
    assert process.stdout is not None
    return process.stdout.readline()


def test_lines_come_as_they_are_written_and_the_run_ends_it(tmp_path: Path, start: Start) -> None:
    """Lines of steps side by side have prefixes and come before the step ends; the verdict ends it with 0."""
    plan = f"""
version: 1
steps:
  - {{id: one, run: 'echo 1; {WAIT.format("go")}; echo 2; exit 3', on_failure: continue}}
  - {{id: second, depends_on: {{one: done}}, run: echo 3}}
"""
    running(tmp_path, start, plan, "one")
    follower = start("logs", "--follow")
    assert line_of(follower) == "one    | 1\n"
    (tmp_path / "go").touch()
    out, err = follower.communicate(timeout=LIMIT)
    assert (out, follower.returncode) == ("one    | 2\nsecond | 3\n", 0)
    assert "planrun: one: failed: exit 3 (" in err
    assert "partial in " in err


def test_every_attempt_of_one_step_is_followed_without_a_prefix(tmp_path: Path, start: Start) -> None:
    """The next attempt of a step, which has a log of its own, follows the one before; other steps are left out."""
    plan = f"""
version: 1
steps:
  - id: one
    run: echo try $PLANRUN_ATTEMPT; {WAIT.format("go$PLANRUN_ATTEMPT")}; test $PLANRUN_ATTEMPT = 2
    retries: {{max: 1, backoff: {{initial: 1ms}}}}
  - {{id: other, run: echo other}}
"""
    running(tmp_path, start, plan, "one")
    follower = start("logs", "one", "-f")
    assert line_of(follower) == "try 1\n"
    (tmp_path / "go1").touch()
    assert line_of(follower) == "try 2\n"
    (tmp_path / "go2").touch()
    out, err = follower.communicate(timeout=LIMIT)
    assert out == ""
    assert "planrun: one: attempt 1 failed: exit 1 (" in err
    assert "completed in" in err


def test_a_killed_run_ends_it(tmp_path: Path, start: Start) -> None:
    """When no process executes the run any more and it has no end, it says so and ends with 0."""
    process = running(
        tmp_path, start, "version: 1\nsteps: [{id: long, run: echo on; exec sleep 60}]\n", "long"
    )
    follower = start("logs", "-f", "long")
    assert line_of(follower) == "on\n"
    process.kill()
    _, err = follower.communicate(timeout=LIMIT)
    assert "was killed: its records have no end; to continue: planrun resume " in err
    assert follower.returncode == 0


def test_it_goes_on_when_a_waiting_run_is_resumed(tmp_path: Path, start: Start) -> None:
    """A run that waits for an approval is not over: after the approval its logs follow."""
    plan = "version: 1\nsteps:\n  - {id: first, run: echo first}\n"
    plan += "  - {id: gated, depends_on: [first], run: echo gated; git push nowhere || true}\n"
    (tmp_path / "plan.yml").write_text(plan)
    assert start("execute", "plan.yml", "--auto-approve", "medium").wait(LIMIT) == 5
    follower = start("logs", "-f")
    assert line_of(follower) == "first | first\n"
    assert follower.stderr is not None
    assert "waits for an answer" in follower.stderr.readline()
    assert start("approve", "last").wait(LIMIT) == 0
    assert start("resume", "last").wait(LIMIT) == 0
    out, err = follower.communicate(timeout=LIMIT)
    assert out.startswith("gated | gated\n")
    assert "completed in" in err


def test_a_finished_run_is_printed_and_ends_at_once(tmp_path: Path, start: Start) -> None:
    """--follow of a finished run prints its logs and its verdict; as JSON the last document is the run's."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: one, run: 'echo 1; echo 2'}]\n")
    start("execute", "plan.yml").wait(LIMIT)
    out, err = start("logs", "-f", "--tail", "1").communicate(timeout=LIMIT)
    assert out == "2\n"
    assert "completed in" in err
    rows = [
        json.loads(row) for row in start("logs", "-f", "--json").communicate(timeout=LIMIT)[0].splitlines()
    ]
    assert [row["type"] for row in rows] == ["log", "line", "line", "end", "run"]
    assert rows[-1]["verdict"] == "completed"


def test_a_gone_reader_ends_it_also_while_nothing_is_printed(tmp_path: Path, start: Start) -> None:
    """When the reader of its pipe is gone it ends, although the run goes on in silence."""
    running(tmp_path, start, f"version: 1\nsteps: [{{id: one, run: 'echo 1; {WAIT.format('go')}'}}]\n", "one")
    follower = start("logs", "-f")
    assert line_of(follower) == "1\n"
    assert follower.stdout is not None
    follower.stdout.close()
    assert follower.wait(LIMIT) == 141
    (tmp_path / "go").touch()


def test_on_a_terminal_a_line_without_an_end_is_shown(tmp_path: Path, start: Start) -> None:
    """The dots of a test runner appear as they are printed, before their line has an end."""
    plan = f"version: 1\nsteps: [{{id: dots, run: 'printf ...; {WAIT.format('go')}; echo .'}}]\n"
    running(tmp_path, start, plan, "dots")
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "planrun", "logs", "-f"], stdout=theirs) as follower:
        os.close(theirs)
        assert os.read(ours, 100) == b"..."
        (tmp_path / "go").touch()
        assert os.read(ours, 100) == b".\r\n"
        assert follower.wait(LIMIT) == 0
    os.close(ours)


def test_what_cannot_be_followed_is_refused(tmp_path: Path, start: Start) -> None:
    """An unknown step and options that exclude each other are errors of the command line."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: one, run: echo 1}]\n")
    start("execute", "plan.yml").wait(LIMIT)
    unknown = start("logs", "-f", "on")
    assert 'no step "on" in run ' in unknown.communicate(timeout=LIMIT)[1]
    assert unknown.returncode == 2
    refused = start("logs", "-f", "--failed")
    assert "--follow and --failed exclude each other" in refused.communicate(timeout=LIMIT)[1]
    assert refused.returncode == 2


def test_ctrl_c_ends_it(tmp_path: Path, start: Start) -> None:
    """SIGINT ends the follower alone, with 130; the run goes on."""
    run = running(
        tmp_path, start, f"version: 1\nsteps: [{{id: one, run: 'echo 1; {WAIT.format('go')}'}}]\n", "one"
    )
    follower = start("logs", "-f")
    assert line_of(follower) == "1\n"
    follower.send_signal(signal.SIGINT)
    assert follower.wait(LIMIT) == 130
    assert run.poll() is None
    (tmp_path / "go").touch()
    assert run.wait(LIMIT) == 0


class Kept:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.got = b""

    def begin(self, _attempt: Attempt, _part: str, /) -> None:
        """Do nothing."""

    def write(self, _attempt: Attempt, _part: str, piece: bytes, /) -> None:
        """Keep it."""
        self.got += piece

    def end(self, _attempt: Attempt, _part: str, /) -> None:
        """Do nothing."""


def test_a_log_is_read_from_its_slot_and_no_other_attempt_is(tmp_path: Path) -> None:
    """Output is found in its slot before the log is in its place; a slot that went to another attempt is not read."""
    folder = tmp_path / "logs"
    logs = Logs(str(folder))
    log = logs.open(str(folder / "one" / "1.log"))
    if log.shown:
        pytest.skip("this file system has no leases, so no log has a slot")
    attempt = Attempt(step="one", n=1, log="logs/one/1.log", is_active=True)
    kept = Kept()
    growing = Growing(str(tmp_path), attempt, kept, None)
    assert not growing.move(elsewhere(str(folder)))
    slot = elsewhere(str(folder))[str(folder / "one" / "1.log")]
    stale = elsewhere(str(folder))
    log.settle()  # it printed nothing: the slot goes to the next attempt
    other = logs.open(str(folder / "other" / "1.log"))
    with open(slot, "ab") as file:
        file.write(b"of the other\n")
    assert not growing.move(stale)
    assert kept.got == b""
    mine = Growing(str(tmp_path), attempt.but(step="other", log="logs/other/1.log"), kept, None)
    assert mine.move(elsewhere(str(folder)))
    other.settle()  # moves it into its place
    with open(folder / "other" / "1.log", "ab") as file:
        file.write(b"more\n")
    assert mine.move({})
    assert kept.got == b"of the other\nmore\n"
