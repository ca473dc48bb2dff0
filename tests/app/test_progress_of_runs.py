"""Progress and ETA of an active run; progress texts of steps leak nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import planrun
from planrun.app.history import progress_forecast
from planrun.model import events as ev
from planrun.model.plan import Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 60.0
PLAN = """\
version: 1
defaults: {shell: sh}
steps:
  - id: says
    run: |
      echo "0.25 on its way" >> "$PLANRUN_PROGRESS"
      touch began
      while [ ! -e go ]; do sleep 0.02; done
  - {id: last, depends_on: [says], run: "true"}
"""


def status(folder: Path) -> dict[str, Any]:
    """Return what `status --json` says."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "status", "--json"], cwd=folder, capture_output=True, check=True
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.shows("N-41", "N-46", "GP-60")
def test_status_shows_the_progress_of_a_step(tmp_path: Path) -> None:
    """Share and message of the running step, the figures of the run, and when it will probably end."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "go").touch()
    planrun.execute(planrun.load(str(tmp_path / "plan.yml")), workspace=str(tmp_path))
    for name in ("go", "began"):
        (tmp_path / name).unlink()
    going = subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        limit = time.monotonic() + LIMIT
        while not (tmp_path / "began").exists():
            assert time.monotonic() < limit
            time.sleep(0.02)
        report = status(tmp_path)
        text = subprocess.run(
            [sys.executable, "-m", "planrun", "status"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    finally:
        (tmp_path / "go").touch()
        assert going.wait(LIMIT) == 0
    assert report["steps"][0]["progress"] == {"share": 0.25, "message": "on its way"}
    assert report["steps"][1]["progress"] is None
    metrics = report["metrics"]
    assert (metrics["current_step"], metrics["percentage"], metrics["total_steps"]) == ("says", 0.0, 2)
    assert metrics["eta_s"] >= 0.0
    assert "25% on its way" in text
    ended = status(tmp_path)
    assert ended["steps"][0]["progress"] is None
    assert (ended["metrics"]["percentage"], ended["metrics"]["eta_s"]) == (100.0, None)
    assert ended["metrics"]["average_step_duration_s"] is not None


def test_no_secret_stays_in_what_a_step_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where secrets are masked the file is gone with the attempt, whether it ended well or not."""
    monkeypatch.setenv("DEPLOY_TOKEN", "open-sesame-0815")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsecrets: [DEPLOY_TOKEN]\ndefaults: {shell: sh}\nsteps:\n"
        "  - {id: well, secrets: [DEPLOY_TOKEN], run: echo 0.5 $DEPLOY_TOKEN >> $PLANRUN_PROGRESS}\n"
        "  - {id: ill, secrets: [DEPLOY_TOKEN], run: echo 0.5 $DEPLOY_TOKEN >> $PLANRUN_PROGRESS; exit 1}\n"
    )
    planrun.execute(planrun.load(str(tmp_path / "plan.yml")), workspace=str(tmp_path))
    kept = [path for path in (tmp_path / ".planrun").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"open-sesame" in path.read_bytes()]


@pytest.mark.parametrize(
    ("mask", "shown"), [(None, ""), (lambda text: text.replace("hunter2", "***"), "it is ***")]
)
def test_what_a_step_says_is_shown_masked_or_not_at_all(tmp_path: Path, mask: Any, shown: str) -> None:
    """Without the plan's secrets only the share is shown; control characters are never shown."""
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "a.1.progress").write_text("0.5 it is hunter2\n")
    step = Step(id="a", action=Run(script="true"), kind="run")
    state = RunState(Plan(name="p", file="p.yml", digest="", steps=(step,), secrets=("TOKEN",)))
    for status_word in ("awaiting_approval", "approved", "executing"):
        state.apply(ev.PlanMoved(at="", status=status_word))
    state.apply(ev.AttemptStarted(at="", step="a", n=1))
    said = progress_forecast(state, str(tmp_path), {}, mask).reported
    assert said is not None
    assert said(["a"]) == {"a": (0.5, shown)}
