"""Locks of steps and turns of runs, between runs of the installed command in folders of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOLDS = """\
version: 1
defaults: {shell: sh, timeout: 5m}
%s
steps:
  - {id: first%s, run: "touch began; until test -e go; do sleep 0.02; done"}
"""
WAITS = """\
version: 1
defaults: {shell: sh, timeout: 2s}
steps:
  - {id: other, run: "touch passed"}
  - {id: first, lock: [host-a, host-b], run: "touch began"}
"""


def folder(above: Path, name: str, plan: str) -> Path:
    """Make a folder with a plan."""
    (above / name).mkdir()
    (above / name / "plan.yml").write_text(plan, "utf-8")
    return above / name


def begin(where: Path, *words: str) -> subprocess.Popen[str]:
    """Execute the plan of a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "planrun", *(words or ("execute", "plan.yml", "--jobs", "1"))],
        cwd=where,
        env=os.environ | {"PLANRUN_CACHE_DIR": str(where.parent / "cache")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(fact: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    limit = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < limit
        time.sleep(0.02)


def held(where: Path) -> bool:
    """Whether a step of the run there is on record as waiting for a lock."""
    return any(b'"step_held"' in path.read_bytes() for path in where.glob(".planrun/runs/*/ledger.jsonl"))


def test_a_step_waits_for_the_lock_of_another_run(tmp_path: Path) -> None:
    """It says for whom, others of its run go on, its timeout has not begun, and it runs when the lock is free."""
    one = folder(tmp_path, "one", HOLDS % ("", ", lock: host-a"))
    two = folder(tmp_path, "two", WAITS)
    holder = begin(one)
    until((one / "began").exists)
    waiter = begin(two)
    until(lambda: held(two) and (two / "passed").exists())
    time.sleep(2.5)  # longer than the step may take
    status = subprocess.run(
        [sys.executable, "-m", "planrun", "status"], cwd=two, capture_output=True, text=True, check=True
    )
    assert 'waiting for lock "host-a", held by run 2' in status.stdout
    assert f"process {holder.pid}, step first" in status.stdout
    assert not (two / "began").exists()
    (one / "go").touch()
    said = waiter.communicate(timeout=LIMIT)[1]
    assert (holder.wait(LIMIT), waiter.returncode) == (0, 0)
    assert said.count('first: waiting for lock "host-a", held by run 2') == 1
    holder.communicate()


@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_a_lock_does_not_outlive_its_run(tmp_path: Path, how: str) -> None:
    """Neither a killed planrun nor the processes that its step leaves behind hold the lock."""
    one = folder(tmp_path, "one", HOLDS % ("", ", lock: host-a"))
    two = folder(tmp_path, "two", WAITS)
    holder = begin(one)
    until((one / "began").exists)
    waiter = begin(two)
    until(lambda: held(two))
    holder.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    waiter.communicate(timeout=LIMIT)
    assert waiter.returncode == 0
    holder.communicate(timeout=LIMIT)


def test_a_run_that_waits_for_a_lock_can_be_cancelled(tmp_path: Path) -> None:
    """It ends as any other, and leaves no place in the line behind."""
    one = folder(tmp_path, "one", HOLDS % ("", ", lock: host-a"))
    two = folder(tmp_path, "two", WAITS)
    holder = begin(one)
    until((one / "began").exists)
    waiter = begin(two)
    until(lambda: held(two))
    waiter.send_signal(signal.SIGTERM)
    waiter.communicate(timeout=LIMIT)
    assert waiter.returncode == 143
    assert len(list((tmp_path / "cache" / "locks").glob("*.ticket"))) == 1
    (one / "go").touch()
    holder.communicate(timeout=LIMIT)
    assert list((tmp_path / "cache" / "locks").glob("*.ticket")) == []


def test_runs_of_one_name_exclude_each_other(tmp_path: Path) -> None:
    """The second waits before it takes its folder; a limit makes it give up with exit code 2, and nothing ran."""
    plan = HOLDS % ("concurrency: release", "")
    one, two, three = (folder(tmp_path, name, plan) for name in ("one", "two", "three"))
    (two / "go").touch()
    holder = begin(one)
    until((one / "began").exists)
    waiter = begin(two)
    assert waiter.stderr is not None
    said = waiter.stderr.readline()
    assert said.startswith('planrun: waiting for concurrency group "release", held by run 2')
    assert f"process {holder.pid}" in said
    assert not list(two.glob(".planrun/runs/*"))
    late = begin(three, "execute", "plan.yml", "--wait-lock", "200ms")
    errors = late.communicate(timeout=LIMIT)[1]
    assert (late.returncode, "was not free within 0.2 s" in errors, (three / "began").exists()) == (
        2,
        True,
        False,
    )
    (one / "go").touch()
    waiter.communicate(timeout=LIMIT)
    assert (holder.wait(LIMIT), waiter.returncode) == (0, 0)
    holder.communicate()


def test_a_resumed_run_waits_for_the_lock(tmp_path: Path) -> None:
    """`resume` waits in the queue as `execute` does, and a signal while it waits ends it with nothing done."""
    plan = HOLDS % ("concurrency: again", "")
    one, two = (folder(tmp_path, name, plan) for name in ("one", "two"))
    broken = begin(two)
    until((two / "began").exists)
    broken.send_signal(signal.SIGTERM)
    broken.communicate(timeout=LIMIT)
    holder = begin(one)
    until((one / "began").exists)
    waiter = begin(two, "resume", "last")
    assert waiter.stderr is not None
    assert "waiting for concurrency group" in waiter.stderr.readline()
    waiter.send_signal(signal.SIGTERM)
    assert "nothing ran" in waiter.communicate(timeout=LIMIT)[1]
    assert waiter.returncode == 143
    (one / "go").touch()
    (two / "go").touch()
    waiter = begin(two, "resume", "last")
    waiter.communicate(timeout=LIMIT)
    holder.communicate(timeout=LIMIT)
    assert (holder.returncode, waiter.returncode) == (0, 0)
