"""A reader that takes the output slowly, or not at all, costs no time limit, no signal and no line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_live_output import WORDS, environment

if TYPE_CHECKING:
    from pathlib import Path

FLOOD = "for i in $(seq 40000); do echo line $i of a flood; done"  # more than every pipe holds


def started(folder: Path, plan: str, out: int) -> subprocess.Popen[bytes]:
    """Start a run whose steps print into a pipe."""
    (folder / "plan.yml").write_text(plan, "utf-8")
    with (folder / "err").open("wb") as err:
        return subprocess.Popen(WORDS, cwd=folder, env=environment(), stdout=out, stderr=err)


def until(folder: Path, name: str) -> None:
    """Wait for a file that a step makes."""
    limit = time.monotonic() + 60
    while not (folder / name).exists():
        assert time.monotonic() < limit, (folder / "err").read_text()
        time.sleep(0.02)


def ledger(folder: Path) -> dict[str, Any]:
    """Return the steps of the last run by id."""
    document = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return {step["id"]: step for step in document["steps"]}


def test_a_slow_reader_gets_every_line(tmp_path: Path) -> None:
    """Nothing is left out while the run is not interrupted, whenever the reader begins."""
    plan = f"version: 1\nsteps:\n  - {{id: a, run: '{FLOOD}; touch printed'}}\n"
    process = started(tmp_path, plan, subprocess.PIPE)
    until(tmp_path, "printed")
    time.sleep(0.5)
    assert process.poll() is None  # it waits for its reader
    assert process.stdout is not None
    with process.stdout as stdout:
        lines = stdout.read().decode().splitlines()
    assert process.wait(60) == 0
    assert lines == [f"line {number} of a flood" for number in range(1, 40001)]


@pytest.mark.parametrize("secret", [False, True], ids=["plain", "masked"])
def test_time_limits_hold_while_nobody_reads(tmp_path: Path, *, secret: bool) -> None:
    """A step ends at its time limit, and SIGTERM ends the run with its reports."""
    more = "secrets: [A_TOKEN]\n" if secret else ""
    plan = (
        f"version: 1\n{more}limits: {{max_parallel: 2}}\nsteps:\n"
        f"  - {{id: flood, run: '{FLOOD}; touch printed; exec sleep 60'}}\n"
        "  - {id: late, run: 'touch begun; exec sleep 60', timeout: 2s}\n"
    )
    reading, writing = os.pipe()
    os.environ["A_TOKEN"] = "wQ8rT2uY6zX1cV5b"
    try:
        process = started(tmp_path, plan, writing)
    finally:
        del os.environ["A_TOKEN"]
        os.close(writing)
    until(tmp_path, "begun")
    if not secret:  # a masked step waits for planrun, which waits for the reader
        until(tmp_path, "printed")
    time.sleep(5)
    process.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    assert process.wait(60) == 143
    took = time.monotonic() - sent
    os.close(reading)
    steps = ledger(tmp_path)
    assert (steps["late"]["status"], steps["late"]["reason"]) == ("failed", "timeout")
    (attempt,) = steps["late"]["attempts"]
    assert 2 <= attempt["duration_s"] < 4
    assert steps["flood"]["status"] == "cancelled"
    assert took < 7


def test_a_second_signal_ends_the_run_at_once(tmp_path: Path) -> None:
    """Also while a step ignores the first one and nobody reads."""
    plan = f"version: 1\nsteps:\n  - {{id: a, run: 'trap \"\" TERM; {FLOOD}; touch printed; sleep 60; sleep 60'}}\n"
    reading, writing = os.pipe()
    process = started(tmp_path, plan, writing)
    os.close(writing)
    until(tmp_path, "printed")
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    assert process.wait(60) == 143
    assert time.monotonic() - sent < 3
    os.close(reading)


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_run_is_paused_without_a_reader(tmp_path: Path, when: str) -> None:
    """`pause` waits for running steps, not for someone who reads what they print."""
    work = f"touch begun; sleep 1; {FLOOD}" if when == "before" else f"{FLOOD}; touch begun; sleep 1"
    reading, writing = os.pipe()
    process = started(
        tmp_path,
        f"version: 1\nsteps:\n  - {{id: a, run: '{work}'}}\n  - {{id: b, depends_on: [a], run: exit 1}}\n",
        writing,
    )
    os.close(writing)
    until(tmp_path, "begun")
    words = [*WORDS[: WORDS.index("planrun") + 1], "pause", "last"]
    paused = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=30, check=False
    )
    assert (paused.returncode, ": paused; to continue: " in paused.stdout) == (0, True), paused.stderr
    assert process.wait(30) == 5
    assert [step["status"] for step in ledger(tmp_path).values()] == ["completed", "pending"]
    os.close(reading)
