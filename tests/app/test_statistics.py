"""What many runs add up to: figures of real runs, broken ledgers, and the history that ledgers and runs agree about."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import planrun
from planrun.cli import main
from planrun.errors import InvalidInput
from planrun.records.history import read
from planrun.stats.figures import Plans, as_data, count, critical, example, savings, spread
from planrun.stats.gathering import Gathering, StepTrace, Trace, Wanted, rebuild

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
name: mixed
defaults: {shell: sh}
steps:
  - {id: build, run: "true"}
  - id: flaky
    depends_on: [build]
    run: test -e ok || { touch ok; exit 1; }
    retries: {max: 1, backoff: {initial: 10ms}}
  - {id: fails, run: test ! -e broken, on_failure: continue}
  - {id: never, condition: "false", run: "true"}
  - {id: pack, depends_on: [flaky, never], run: "true"}
"""


def execute(folder: Path, text: str = PLAN) -> None:
    """Run a plan in a folder."""
    (folder / "plan.yml").write_text(text)
    planrun.execute(planrun.load(str(folder / "plan.yml")), workspace=str(folder), jobs=2)


def figures(*places: Path, **wanted: Any) -> list[dict[str, Any]]:
    """Return the figures of all runs in some places."""
    gathering, plans = Gathering([str(place) for place in places]), Plans()
    counted = count(gathering, Wanted(**wanted), plans)
    return [as_data(each, example(each, gathering, plans)) for each in counted]


def moment(seconds: float) -> str:
    """Return a stamp."""
    return f"2026-01-01T00:{int(seconds // 60):02d}:{seconds % 60:06.3f}Z"


def trace(**steps: tuple[float, float]) -> Trace:
    """Return a run whose steps started and ended at these seconds."""
    found = Trace()
    found.started = moment(0)
    for name, (start, end) in steps.items():
        step = found.steps[name] = StepTrace()
        step.attempts, step.status, step.seconds = 1, "completed", end - start
        step.started, step.ended = moment(start), moment(end)
    return found


def test_runs_are_counted_by_plan_and_step(tmp_path: Path) -> None:
    """Runs by verdict, and for each step how often it ran, failed, was flaky, was repeated or left out."""
    execute(tmp_path)
    (tmp_path / "broken").touch()
    execute(tmp_path)
    (tmp_path / "ok").unlink()
    execute(tmp_path)
    (found,) = figures(tmp_path)
    assert found["plan"] == {"name": "mixed", "file": str(tmp_path / "plan.yml")}
    assert found["runs"]["count"] == 3
    assert found["runs"]["verdicts"] == {"completed": 1, "partial": 2}
    steps = {step["id"]: step for step in found["steps"]}
    assert (steps["build"]["ran"], steps["build"]["failed"]) == (3, 0)
    assert (steps["flaky"]["flaky"], steps["flaky"]["retries"], steps["flaky"]["flaky_rate"]) == (
        2,
        2,
        0.6667,
    )
    assert (steps["fails"]["failed"], steps["fails"]["failure_rate"]) == (2, 0.6667)
    assert (steps["never"]["ran"], steps["never"]["left_out"], steps["never"]["failure_rate"]) == (0, 3, None)
    assert [step["id"] for step in found["critical_path"]["steps"]] == ["build", "flaky", "pack"]
    assert steps["pack"]["critical"]["runs"] == 3


def test_a_critical_path_is_what_the_end_waited_for() -> None:
    """Before each step stands the one it waited for that ended last; steps that never ran are looked through."""
    waits = {"a": (), "b": (), "c": ("a", "b"), "skipped": ("c",), "d": ("skipped", "a"), "alone": ()}
    run = trace(a=(0, 5), b=(0, 9), c=(10, 12), d=(13, 20), alone=(0, 19))
    assert [(each.step, each.seconds, each.waited) for each in critical(run, waits)] == [
        ("b", 9.0, 0.0),
        ("c", 2.0, 1.0),
        ("d", 7.0, 1.0),
    ]
    run.options = {"jobs": 4}
    # The path b, c, d is 18 s long, and `alone` 19 s: nothing on the path saves more than nothing.
    assert savings(run, waits, critical(run, waits)) == {}
    assert savings(run, {**waits, "alone": ("d",)}, critical(run, waits)) == {"b": 4.0, "c": 2.0, "d": 7.0}


def test_no_step_saves_what_the_other_work_takes() -> None:
    """Two at a time need six seconds for four steps of three, and four and a half for those that are left."""
    run = trace(a=(0, 3), b=(0, 3), c=(3, 6), d=(3, 6))
    run.options = {"jobs": 2}
    waits: dict[str, tuple[str, ...]] = dict.fromkeys("abcd", ())
    assert set(savings(run, waits, critical(run, waits)).values()) == {1.5}


def test_members_of_a_group_wait_as_it_does() -> None:
    """A member that a plan does not name is taken for one of the group whose name it begins with."""

    class Known(Plans):
        def __init__(self) -> None:
            super().__init__()
            self._known[(None, None, None)] = {"a": (), "test": ("a",), "last": ("test",)}

    run = trace(a=(0, 1), last=(6, 7), **{"test[x=1]": (1, 3), "test[x=2]": (1, 6)})
    waits = Known().waits("", run)
    assert waits is not None
    assert [each.step for each in critical(run, waits)] == ["a", "test[x=2]", "last"]


def test_the_speed_up_is_work_over_time(tmp_path: Path) -> None:
    """What all steps took together over what the run took; waiting between two processes does not count."""
    execute(tmp_path, "version: 1\nsteps: [{id: a, run: sleep 0.5}, {id: b, run: sleep 0.5}]\n")
    (found,) = figures(tmp_path)
    (value,) = {*found["runs"]["speedup"].values()}
    (took,) = {*found["runs"]["duration_s"].values()}
    work = sum(step["duration_s"]["median"] for step in found["steps"])
    assert value == pytest.approx(work / took, rel=0.01)
    assert work > 1.0


def test_a_resumed_run_counts_once(tmp_path: Path) -> None:
    """Its verdict is the last one, and a step that failed before a resume repaired it counts as failed."""
    from planrun.app.resume import ResumeRequest, resume
    from planrun.cli.run import changes, planner
    from planrun.settings import Settings

    execute(tmp_path, 'version: 1\nsteps: [{id: a, run: test -e there}, {id: b, run: "true"}]\n')
    (tmp_path / "there").touch()
    resume(
        "last",
        Settings(output="quiet"),
        ResumeRequest(report=print, planner=planner, changes=changes, workspace=str(tmp_path)),
    )
    (found,) = figures(tmp_path)
    assert found["runs"]["verdicts"] == {"completed": 1}
    assert [(step["failed"], step["repaired"], step["failure_rate"]) for step in found["steps"]] == [
        (1, 1, 1.0),
        (0, 0, 0.0),
    ]


def test_a_broken_ledger_is_named_and_not_counted(tmp_path: Path) -> None:
    """Garbage, a changed line, an empty file, a folder in place of the file: all other runs still count."""
    execute(tmp_path)
    runs = tmp_path / ".planrun" / "runs"
    (good,) = runs.iterdir()
    for name in ("changed", "garbage", "empty", "folder"):
        shutil.copytree(good, runs / name)
    ledger = (good / "ledger.jsonl").read_bytes()
    (runs / "changed" / "ledger.jsonl").write_bytes(ledger.replace(b"build", b"built", 1))
    (runs / "garbage" / "ledger.jsonl").write_bytes(b"\x00\xff[]\n{}\n")
    (runs / "empty" / "ledger.jsonl").write_bytes(b"")
    (runs / "folder" / "ledger.jsonl").unlink()
    (runs / "folder" / "ledger.jsonl").mkdir()
    gathering = Gathering([str(tmp_path)])
    assert [name for name, _ in gathering.traces(Wanted())] == [str(good)]
    assert {each.folder.rpartition("/")[2] for each in gathering.broken} == {
        "changed",
        "garbage",
        "empty",
        "folder",
    }
    assert all(each.why for each in gathering.broken)


def test_runs_are_found_wherever_they_were_kept(tmp_path: Path) -> None:
    """A workspace, its records, a folder of runs and a single run are all places, and no run counts twice."""
    execute(tmp_path)
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    shutil.copytree(run.parent, tmp_path / "artifacts")
    places = [tmp_path, tmp_path / ".planrun", run.parent, run]
    assert len(Gathering([str(place) for place in places]).folders) == 1
    assert len(Gathering([str(tmp_path), str(tmp_path / "artifacts")]).folders) == 2
    assert Gathering([str(tmp_path / "artifacts" / run.name)]).folders
    with pytest.raises(InvalidInput, match="no such folder"):
        Gathering([str(tmp_path / "nowhere")])


def test_runs_can_be_chosen(tmp_path: Path) -> None:
    """By the name of a plan or its file, by a moment, and so many of the newest."""
    for name in ("one", "two", "two"):
        execute(tmp_path, PLAN.replace("mixed", name))
    assert [found["runs"]["count"] for found in figures(tmp_path)] == [2, 1]
    assert [found["plan"]["name"] for found in figures(tmp_path, plan="one")] == ["one"]
    assert len(figures(tmp_path, plan=str(tmp_path / "." / "plan.yml"))) == 2
    assert [found["runs"]["count"] for found in figures(tmp_path, most=1)] == [1]
    assert figures(tmp_path, since="9999-01-01") == []


def test_the_history_from_ledgers_is_that_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--rebuild` writes, byte for byte, what the ends of the runs have written."""
    for _ in range(3):
        execute(tmp_path)
        (tmp_path / "ok").unlink(missing_ok=True)
    (path,) = (tmp_path / ".planrun" / "history").iterdir()
    before = read(str(path))
    path.unlink()
    monkeypatch.chdir(tmp_path)
    assert list(rebuild()) == ["mixed: 4 steps known from 3 runs"]
    after = read(str(path))
    assert after.runs == before.runs
    assert {name: after.cells[name] for name in before.cells} == before.cells


def test_the_middle_and_the_end_of_durations() -> None:
    """The median of an even number is the mean of the two in the middle; p95 is a value that was there."""
    durations = spread([float(number) for number in range(1, 101)])
    assert durations is not None
    assert (durations.count, durations.median, durations.p95, durations.most) == (100, 50.5, 95.0, 100.0)
    assert spread([]) is None


def test_stats_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table names what is slow, fails and is flaky; JSON has the same; a moment that is none is refused."""
    monkeypatch.chdir(tmp_path)
    assert main(["stats"]) == 0
    assert capsys.readouterr().out == "no runs to count\n"
    (tmp_path / "broken").touch()
    execute(tmp_path)
    assert main(["stats", "--rebuild"]) == 0
    output = capsys.readouterr().out
    for row in (
        "history of mixed",
        "mixed (",
        "1 partial",
        "| flaky |",
        "most failures: fails 1 (100%)",
        "Critical path",
    ):
        assert row in output, output
    assert main(["stats", "--since", "1h", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["plans"][0]["runs"]["count"] == 1
    assert data["broken"] == []
    assert main(["stats", "--since", "yesterday"]) == 2
    assert "2026-01-31" in capsys.readouterr().err
