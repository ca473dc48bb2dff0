"""Whether a run is finished, and how: its status in ledger.json, the output of `status`, and the exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def _start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _state(folder: Path) -> tuple[str, dict[str, str]]:
    found = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return found["status"], {step["id"]: step["status"] for step in found["steps"]}


@pytest.mark.shows("D-26")
@pytest.mark.parametrize(
    ("second", "code", "status", "of_steps"),
    [
        ("run: 'true'", 0, "completed", "completed"),
        ("run: exit 3", 1, "failed", "failed"),
        ("run: exit 3, on_failure: continue", 0, "completed", "failed"),
        ("run: 'true', condition: 'false'", 0, "completed", "skipped"),
        ("ask: {question: Go?}", 5, "paused", "waiting"),
    ],
)
def test_a_run_shows_whether_it_is_finished(
    tmp_path: Path, second: str, code: int, status: str, of_steps: str
) -> None:
    """Finished with failures is never exit code 0; what waits for an answer is not finished."""
    (tmp_path / "plan.yml").write_text(
        f"version: 1\nsteps:\n  - {{id: a, run: 'true'}}\n  - {{id: b, depends_on: [a], {second}}}\n"
    )
    started = _start(tmp_path, "execute", "plan.yml")
    _, err = started.communicate(timeout=60)
    assert started.returncode == code, err
    assert _state(tmp_path) == (status, {"a": "completed", "b": of_steps})


@pytest.mark.shows("D-26")
def test_a_cancelled_run_is_finished(tmp_path: Path) -> None:
    """It ends with its own status and exit code, and none of its processes continues."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: touch begun; sleep 60}\n")
    started = _start(tmp_path, "execute", "plan.yml")
    end = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert _state(tmp_path) == ("cancelled", {"a": "cancelled"})
