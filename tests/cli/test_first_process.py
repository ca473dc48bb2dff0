"""planrun as process 1 of a container that has no init."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FIRST = ("unshare", "--pid", "--fork", "--mount-proc")


def _why_not() -> str:
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    done = subprocess.run([*FIRST, "true"], capture_output=True, text=True, check=False)
    return f"no namespace of processes can be made: {done.stderr.strip()}" if done.returncode else ""


WHY_NOT = _why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
PLAN = """\
version: 1
steps:
  - id: orphans
    run: |
      for i in $(seq 40); do (setsid sleep 0.1 > /dev/null 2>&1 &); done
  - {id: code, run: exit 7, on_failure: continue}
  - {id: killed, run: kill -9 $$, on_failure: continue}
  - id: count
    depends_on: [orphans]
    run: |
      sleep 1
      cat /proc/[0-9]*/stat > processes.txt
"""


def _start(folder: Path, plan: str, *options: str) -> subprocess.Popen[str]:
    (folder / "plan.yml").write_text(plan)
    return subprocess.Popen(
        [*FIRST, sys.executable, "-m", "planrun", "execute", "plan.yml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _steps(folder: Path) -> dict[str, dict[str, Any]]:
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return {step["id"]: step for step in ledger["steps"]}


def test_processes_without_a_parent_are_reaped(tmp_path: Path) -> None:
    """Forty processes that a step left behind leave no zombie, and each step has its own exit code."""
    with _start(tmp_path, PLAN) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    rows = (tmp_path / "processes.txt").read_text().splitlines()
    states = [row.rpartition(")")[2].split()[0] for row in rows]
    assert rows[0].startswith("1 (")
    assert "Z" not in states
    steps = _steps(tmp_path)
    assert [steps[name]["attempts"][0]["exit_code"] for name in ("orphans", "code", "killed")] == [0, 7, 137]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signals_to_process_1_reach_the_run(tmp_path: Path, signum: signal.Signals) -> None:
    """One signal cancels the run, whose `finally` runs, and planrun ends with the code that it has elsewhere."""
    plan = (
        "version: 1\nsteps: [{id: a, run: touch begun; sleep 60}]\nfinally: [{id: f, run: touch finally}]\n"
    )
    with _start(tmp_path, plan) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(children, encoding="ascii") as file:
            os.kill(int(file.read().split()[0]), signum)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signum, out
    assert (tmp_path / "finally").exists()
    assert _steps(tmp_path)["a"]["status"] == "cancelled"
