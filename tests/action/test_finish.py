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
LATER, PLANTED = "20260102-000001-000000", "29991231-000000-cccccc"
BEGIN = "20260101-235959"
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
    assert words([OLD, NEW], begin=f"{NEW[:15]} {NEW}") == []
    assert words([], begin=BEGIN) == []
    assert words([OLD, NEW], begin=BEGIN) == ["finalize", "--", NEW]
    assert words([NEW], begin=BEGIN) == ["finalize", "--", NEW]


def test_a_planted_run_hides_none() -> None:
    """Runs of the future in a checkout, and runs that its steps make, are not taken for the action's own."""
    assert words([OLD, NEW, PLANTED], begin=f"{BEGIN} {PLANTED}") == ["finalize", "--", NEW]
    assert words([OLD, PLANTED], begin=f"{BEGIN} {PLANTED}") == []
    assert words([OLD, NEW, LATER, PLANTED], begin=BEGIN) == ["finalize", "--", NEW]


def test_policy_and_report_folder_are_those_of_the_run() -> None:
    """Of the other inputs nothing is handed on."""
    found = words(
        [NEW], begin=BEGIN, policy="ci/policy.yml", report_dir="out", auto_approve="high", params="a=1"
    )
    assert found == ["finalize", "--report-dir=out", "--policy=ci/policy.yml", "--", NEW]


def test_a_killed_job_is_cleaned_up(tmp_path: Path) -> None:
    """The step that starts a run reports the newest run before it; the next step finds the killed run."""
    (tmp_path / "plan.yml").write_text(PLAN)
    fake = tmp_path / ".planrun" / "runs" / OLD  # of the checkout, whose records are untrusted
    fake.mkdir(parents=True)
    (fake.parent / PLANTED).mkdir()
    output = tmp_path / "output"
    environment = os.environ | {"GITHUB_WORKSPACE": str(tmp_path), "GITHUB_OUTPUT": str(output)}
    started = script("start.py", environment | {"PLANRUN_INPUT_PLAN": "plan.yml"})
    assert started.returncode == -9
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines() if "=" in line)
    assert outputs["begin"].split()[1:] == [PLANTED]
    assert not (tmp_path / "order").exists()
    newest = {"PLANRUN_INPUT_BEGIN": outputs["begin"]}
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
