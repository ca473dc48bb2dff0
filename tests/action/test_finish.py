"""What the action does for a run of its own that was killed, and for no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from action.finish import command
from action.origin import Origin
from action.start import Inputs
from tests.conftest import LIMIT

ACTION = Path(__file__).parents[2] / "action"
OLD, NEW = "20260101-000000-aaaaaa", "20260102-000000-bbbbbb"
PLAN = """version: 1
steps:
  - {id: a, run: 'true', rollback: {run: echo undo a >> order}}
  - {id: b, depends_on: [a], run: kill -9 $PPID; sleep 600}
finally:
  - {id: end, run: echo end >> order}
"""


def words(runs: list[str], **inputs: str) -> list[str]:
    """Return the words of the command where these runs lie in the workspace."""
    given = {f"PLANRUN_INPUT_{name.upper()}": value for name, value in inputs.items()}
    return command(Inputs(given), Origin(), runs)


def test_only_the_run_that_was_started_is_finished() -> None:
    """Nothing is done where no run was started, or none is newer than those that were there before."""
    assert words([OLD, NEW]) == []
    assert words([OLD, NEW], newest_run=NEW) == []
    assert words([], newest_run="-") == []
    assert words([OLD, NEW], newest_run=OLD) == ["finalize", "--", NEW]
    assert words([NEW], newest_run="-") == ["finalize", "--", NEW]


def test_policy_and_report_folder_are_those_of_the_run() -> None:
    """Of the other inputs nothing is handed on."""
    found = words(
        [NEW], newest_run=OLD, policy="ci/policy.yml", report_dir="out", auto_approve="high", params="a=1"
    )
    assert found == ["finalize", "--report-dir=out", "--policy=ci/policy.yml", "--", NEW]


def test_a_killed_job_is_cleaned_up(tmp_path: Path) -> None:
    """The step that starts a run reports the newest run before it; the next step finds the killed run."""
    (tmp_path / "plan.yml").write_text(PLAN)
    fake = tmp_path / ".planrun" / "runs" / OLD  # of the checkout, whose records are untrusted
    fake.mkdir(parents=True)
    output = tmp_path / "output"
    environment = os.environ | {"GITHUB_WORKSPACE": str(tmp_path), "GITHUB_OUTPUT": str(output)}
    started = script("start.py", environment | {"PLANRUN_INPUT_PLAN": "plan.yml"})
    assert started.returncode == -9
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines() if "=" in line)
    assert outputs["newest-run"] == OLD
    assert not (tmp_path / "order").exists()
    newest = {"PLANRUN_INPUT_NEWEST_RUN": outputs["newest-run"]}
    finished = script("finish.py", environment | newest)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "order").read_text().split("\n") == ["undo a", "end", ""]
    again = script("finish.py", environment | newest)
    assert (again.returncode, again.stderr) == (0, "planrun: nothing to finalize\n")
    assert list(fake.iterdir()) == []


def script(name: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script of the action as its step does."""
    return subprocess.run(
        [sys.executable, "-I", ACTION / name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
