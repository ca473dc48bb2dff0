"""What GitHub gets from a run that is cancelled: the runner sends a signal and asks no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import LIMIT

PLAN = """\
version: 1
name: long
steps:
  - {id: wait, run: "touch started; exec sleep 60"}
finally:
  - {id: clean, run: "true"}
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_job_has_summary_and_outputs(tmp_path: Path, signum: signal.Signals) -> None:
    """Summary, outputs and a named signal are there when planrun ends by a signal."""
    (tmp_path / "plan.yml").write_text(PLAN)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "outputs"}
    with subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=tmp_path,
        env=os.environ | github | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signum)
        said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signum
    assert f"⊗ cancelled by {signum.name}\n" in said
    assert f"**cancelled by {signum.name} (exit code {128 + signum}), " in (
        tmp_path / "summary.md"
    ).read_text("utf-8")
    assert "result=cancelled\n" in (tmp_path / "outputs").read_text()
