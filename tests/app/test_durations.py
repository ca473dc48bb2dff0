"""Recorded durations of steps: how a run uses and records them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import planrun
from planrun.app.history import kept
from planrun.records.history import History, Past, estimates, path_of, read, write
from planrun.records.rundir import home

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
defaults: {shell: sh}
steps:
  - {id: short, run: "true"}
  - {id: other, run: "true"}
  - {id: long, run: "true"}
  - {id: last, depends_on: [short], run: "true"}
"""


def execute(folder: Path, text: str = PLAN, **options: Any) -> list[dict[str, Any]]:
    """Run a plan in a folder and return the events of its ledger."""
    (folder / "plan.yml").write_text(text)
    planrun.execute(planrun.load(str(folder / "plan.yml")), workspace=str(folder), **{"jobs": 2, **options})
    newest = max((folder / ".planrun" / "runs").iterdir())
    return [json.loads(line) for line in (newest / "ledger.jsonl").read_text().splitlines()]


def history_of(folder: Path, text: str = PLAN) -> str:
    """Return the file that remembers a plan."""
    (folder / "plan.yml").write_text(text)
    return path_of(home(str(folder)), planrun.load(str(folder / "plan.yml")))


def started(events: list[dict[str, Any]]) -> list[str]:
    """Return the steps in the order in which they started."""
    return [event["step"] for event in events if event["type"] == "attempt_started"]


def test_the_longest_path_by_recorded_durations_goes_first(tmp_path: Path) -> None:
    """A step that took long before starts first; without a record the path of two steps does."""
    assert started(execute(tmp_path))[0] == "short"
    pasts = {"short": Past(ending="completed", seconds=1.0), "long": Past(ending="completed", seconds=60.0)}
    write(history_of(tmp_path), History().with_run("r1", pasts))
    events = execute(tmp_path)
    assert started(events)[0] == "long"


def test_the_durations_of_the_order_are_on_record(tmp_path: Path) -> None:
    """The first event names the run's copy of the durations by its hash; a copy that was changed says nothing."""
    assert "history" not in execute(tmp_path)[0]["options"]
    events = execute(tmp_path)
    rundir = tmp_path / ".planrun" / "runs" / events[0]["run"]
    options = events[0]["options"]
    assert options["history"]["steps"] == 4
    recorded_durations = kept(str(rundir), options)
    assert recorded_durations is not None
    assert set(recorded_durations) == {"short", "other", "long", "last"}
    (copy,) = rundir.glob("durations.*")
    copy.write_text("1.000\tlong\n")
    assert kept(str(rundir), options) is None


def test_every_run_is_remembered_and_a_resumed_one_once(tmp_path: Path) -> None:
    """A run that failed and was resumed is one sample of each step: the last one."""
    text = PLAN.replace('id: long, run: "true"', "id: long, run: test -e there")
    execute(tmp_path, text)
    path = history_of(tmp_path, text)
    assert [past.ending for past in read(path).samples("long")] == ["failed"]
    assert "long" not in estimates(path)
    (tmp_path / "there").touch()
    from planrun.app.resume import ResumeRequest, resume
    from planrun.cli.run import changes, planner
    from planrun.settings import Settings

    resume(
        "last",
        Settings(output="quiet", jobs=2),
        ResumeRequest(report=print, planner=planner, changes=changes, workspace=str(tmp_path)),
    )
    assert len(read(path).runs) == 1
    assert [past.ending for past in read(path).samples("long")] == ["completed"]
    assert len(read(path).samples("short")) == 1


def test_a_plan_of_one_step_has_no_history(tmp_path: Path) -> None:
    """Nothing is read or written for it."""
    execute(tmp_path, 'version: 1\nsteps: [{id: a, run: "true"}]\n')
    assert not (tmp_path / ".planrun" / "history").exists()


def test_one_at_a_time_uses_the_order_of_the_file(tmp_path: Path) -> None:
    """Where nothing runs beside anything else no order is faster, so none is recorded, and that of the plan counts."""
    execute(tmp_path)
    events = execute(tmp_path, jobs=1)
    assert "history" not in events[0]["options"]
    assert started(events) == ["short", "other", "long", "last"]
