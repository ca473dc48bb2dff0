"""Runs that are paused and cancelled from another shell, as whole processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT
from tests.gated import PLAN, Going, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Command


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Going]]:
    """Start runs; what is left of them at the end is killed."""
    runs: list[Going] = []

    def going(plan: str = PLAN) -> Going:
        runs.append(Going(tmp_path, plan))
        return runs[-1]

    yield going
    (tmp_path / "go").touch()
    for run in runs:
        run.process.kill()
        run.process.communicate()


@pytest.mark.shows("V-03", "GP-10", "GP-05", "V-04")
def test_pause_waits_for_what_runs(start: Callable[..., Going], planrun: Command) -> None:
    """The step that runs ends by itself, nothing else starts, not even cleanup, and `resume` does the rest."""
    going = start()
    with going.start("pause", "last") as pause:
        until(lambda: going.asked("pause"))
        assert pause.poll() is None
        assert "[Running]" in planrun("status").stdout
        going.open()
        out, _ = pause.communicate(timeout=LIMIT)
    assert pause.returncode == 0
    assert ": paused; to continue: planrun resume " in out
    code, said = going.end()
    assert (code, going.ran()) == (5, ["before", "gate"])
    assert "pausing: no more steps start" in said
    ledger = json.loads((going.folder / "planrun-out" / "ledger.json").read_text())
    assert (ledger["status"], ledger["verdict"]) == ("paused", None)
    assert [step["status"] for step in ledger["steps"]] == ["completed", "completed", "pending", "pending"]
    assert planrun("resume", "last").returncode == 0
    assert going.ran() == ["before", "gate", "after", "tidy"]


@pytest.mark.shows("V-05", "D-32", "GP-08")
def test_cancel_ends_a_run_from_elsewhere(start: Callable[..., Going], planrun: Command) -> None:
    """As Ctrl-C: what runs ends, cleanup runs, reports are written; `cancel` returns when all that is done."""
    going = start()
    cancelled = planrun("cancel", "last")
    assert (cancelled.returncode, cancelled.stderr.count("is cancelling")) == (0, 1)
    assert going.end()[0] == 143
    assert going.ran() == ["before", "gate", "tidy"]
    assert json.loads((going.folder / "planrun-out" / "ledger.json").read_text())["verdict"] == "cancelled"
    for words in (("resume", "last"), ("retry", "last", "gate")):
        refused = planrun(*words)
        assert refused.returncode == 2, words
        assert "was cancelled by planrun cancel; it stays cancelled" in refused.stderr
        assert "planrun execute plan.yml" in refused.stderr
    assert going.ran() == ["before", "gate", "tidy"]
    assert not list((going.folder / ".planrun" / "runs").glob("*/cancel"))


@pytest.mark.shows("GP-08")
def test_what_a_signal_cancelled_goes_on(start: Callable[..., Going], planrun: Command) -> None:
    """A CI system ends jobs by SIGTERM: that is no decision of a user, and `resume` continues the run."""
    going = start()
    going.process.send_signal(signal.SIGTERM)
    assert going.end()[0] == 143
    (going.folder / "go").touch()
    assert planrun("resume", "last").returncode == 0
    assert going.ran() == ["before", "gate", "tidy", "gate", "after", "tidy"]


def test_cancel_now_waits_for_no_step(start: Callable[..., Going], planrun: Command) -> None:
    """A step that heeds no signal is killed at once, and cleanup does not start."""
    going = start(PLAN.replace("echo gate >> ran;", "trap '' TERM; echo gate >> ran;"))
    assert planrun("cancel", "last", "--now").returncode == 0
    assert going.end()[0] == 143
    assert going.ran() == ["before", "gate"]
    assert going.ledger().count('"type":"run_ending"') == 1


def test_a_pausing_run_can_still_be_cancelled(start: Callable[..., Going], planrun: Command) -> None:
    """A signal has priority over a pause request; `pause` then reports how the run ended, and fails."""
    going = start()
    with going.start("pause", "last") as pause:
        until(lambda: going.asked("pause"))
        assert planrun("cancel", "last").returncode == 0
        out, _ = pause.communicate(timeout=LIMIT)
    assert (pause.returncode, out.endswith(": cancelled\n")) == (1, True)
    assert going.end()[0] == 143
    assert going.ran() == ["before", "gate", "tidy"]


def test_a_pause_is_no_second_signal(start: Callable[..., Going], planrun: Command) -> None:
    """While a run is being cancelled, pausing it changes nothing: cleanup still runs."""
    plan = PLAN.replace(
        "run: echo tidy >> ran", 'run: "until test -e go; do sleep 0.02; done; echo tidy >> ran"'
    )
    going = start(plan)
    going.process.send_signal(signal.SIGTERM)
    until(lambda: '"step":"tidy"' in going.ledger())
    going.process.send_signal(signal.SIGUSR1)
    going.open()
    assert going.end()[0] == 143
    assert going.ran() == ["before", "gate", "tidy"]
    assert not going.asked("pause")
    assert planrun("pause", "last").returncode == 2


def test_a_killed_run_is_neither_paused_nor_cancelled(start: Callable[..., Going], planrun: Command) -> None:
    """It has no process to signal; the message names the next command."""
    going = start()
    going.process.kill()
    going.process.wait()
    for verb in ("pause", "cancel"):
        done = planrun(verb, "last")
        assert done.returncode == 2
        assert "is not running: it was killed; to continue: planrun resume " in done.stderr


def test_another_run_is_left_alone(start: Callable[..., Going], planrun: Command) -> None:
    """The id of an ended run does not affect the active one."""
    (going := start()).open()
    assert going.end()[0] == 0
    (first,) = os.listdir(going.folder / ".planrun" / "runs")
    (going.folder / "go").unlink()
    (going.folder / "ran").unlink()
    second = start()
    for verb in ("pause", "cancel"):
        assert planrun(verb, first).returncode == 2
    second.open()
    assert second.end()[0] == 0


def test_a_run_on_another_host_is_controlled_there(start: Callable[..., Going], planrun: Command) -> None:
    """While the lock is held the answer names process and machine; a free lock means no run."""
    (going := start()).open()
    going.end()
    (run,) = os.listdir(going.folder / ".planrun" / "runs")
    lock = going.folder / ".planrun" / "lock"
    lock.write_text(f"run {run}, process 4711 on elsewhere.example, since 2026-01-01T00:00:00.000Z")
    assert "it ended completed" in planrun("cancel", run).stderr
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for verb in ("pause", "cancel"):
            done = planrun(verb, run)
            assert done.returncode == 2
            expected = f"process 4711 on elsewhere.example executes the run {run}: use this command there"
            assert expected in done.stderr
