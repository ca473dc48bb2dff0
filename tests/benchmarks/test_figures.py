"""What is made from runs: figures with their ranges, tables, files, and the time that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import benchmarks.__main__ as program
from benchmarks import calls, dags, dialects, peers, reports
from benchmarks.bench import QUICK, Bench
from benchmarks.figures import Figure, Row, as_json, from_json, goals_table, missed, write_into
from benchmarks.goals import ROWS
from benchmarks.measure import Contender, MeasureError, Usage, run_once
from benchmarks.progress import SECONDS, Progress, remaining

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Give the tests of this file one session with compiled C programs."""
    if peers.find("cc") is None:
        pytest.skip("no C compiler on this machine")
    return Bench(tmp_path_factory.mktemp("bench"), QUICK)


def ran(bench: Bench, name: str, walls: Sequence[float], own: float = 0.0) -> Contender:
    """A contender with runs of these seconds."""
    contender = bench.program(name, ["/bin/true"])
    contender.runs = [Usage(wall, 1.0, 5.0, own) for wall in walls]
    return contender


def row() -> Row:
    """A row with one figure that is met and one that is missed."""
    made = Row("P4", notes=["a note"], loads=[(0.5, 2.0)])
    made.add(Figure("fan", 1.25, "x C loop", 1.2, 1.1, 1.4))
    made.add(Figure("fan", 20.0, "MiB", 24.0))
    return made


def test_a_ratio_has_its_range_over_the_rounds(bench: Bench) -> None:
    """The value is the ratio of medians; the range is that of runs of the same round, whatever their order."""
    made = Row("P4")
    mine, other = ran(bench, "planrun", [3, 2, 8]), ran(bench, "C loop", [2, 2, 4])
    made.ratio("fan", mine, other, 1.5)
    assert made.figures == [Figure("fan", 1.5, "x C loop", 1.5, 1.0, 2.0)]


def test_a_missing_peer_is_noted(bench: Bench) -> None:
    """Nothing is invented for a tool that is not installed."""
    made = Row("P4")
    made.ratio("fan", ran(bench, "planrun", [1]), None, 1.0)
    assert (made.figures, made.notes) == ([], ["fan: a peer is not installed, its figure is left out"])


def test_own_time_is_that_of_the_steps_alone(bench: Bench) -> None:
    """What one step takes as well is no cost of the others."""
    made = Row("P4")
    made.own("fan", ran(bench, "planrun", [1], own=0.43), ran(bench, "one", [1], own=0.03), 1000, 0.4)
    (figure,) = made.figures
    assert figure.value == pytest.approx(0.4)
    made.own("fan", ran(bench, "planrun", [1]), ran(bench, "one", [1]), 1000, 0.4)
    assert made.notes == ["fan: this system does not report the processor time of one process"]


def test_own_time_excludes_children(bench: Bench) -> None:
    """The launcher tells the time of a process from that of its children."""
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    alone = run_once(bench.launcher, bench.program("alone", ["/bin/sh", "-c", busy]))
    if not alone.own:
        pytest.skip("this system does not report the processor time of one process")
    parent = run_once(bench.launcher, bench.program("parent", ["/bin/sh", "-c", f"({busy}); :"]))
    assert alone.own > 0.7 * alone.cpu
    assert parent.own < 0.3 * parent.cpu


def test_a_program_can_run_on_a_terminal(bench: Bench) -> None:
    """It has a terminal with a size, all it prints is read, and its failure is noticed."""
    contender = bench.program("shown", ["/bin/sh", "-c", "test -t 1 && test -t 2 && seq 20000"])
    contender.terminal = True
    assert run_once(bench.launcher, contender).status == 0
    contender.argv = ["/bin/sh", "-c", "exit 3"]
    with pytest.raises(MeasureError, match="its output went to a terminal"):
        run_once(bench.launcher, contender)


def test_rows_survive_a_file() -> None:
    """`--keep` reads what `--json` wrote."""
    assert from_json(as_json([row()])) == [row()]


def test_tables_show_range_target_and_verdict() -> None:
    """A table has all of a figure; without verdicts none is shown; what is missed is listed."""
    table = goals_table([row()], judged=True)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert cells == [
        ["P4", "fan", "1.25 x C loop (1.10 to 1.40)", "≤ 1.2", "missed"],
        ["P4", "fan", "20.0 MiB", "≤ 24", "met"],
    ]
    assert "missed" not in goals_table([row()], judged=False)
    (late,) = missed([row()])
    assert late.split() == [
        "P4",
        "fan",
        "1.25",
        "x",
        "C",
        "loop",
        "(1.10",
        "to",
        "1.40)",
        "<=",
        "1.2",
        "missed",
    ]


def test_tables_are_written_between_the_marks(tmp_path: Path) -> None:
    """In a page only what stands between its two comments is replaced; another file is written anew."""
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("before\n<!-- mark -->\nold\n<!-- /mark -->\nafter\n")
    for _ in range(2):
        write_into(page, "mark", "new\n")
    assert page.read_text() == "before\n<!-- mark -->\n\nnew\n\n<!-- /mark -->\nafter\n"
    write_into(other, "mark", "new\n")
    assert other.read_text() == "new\n"


@pytest.mark.parametrize("mark", [program.MARK, calls.MARK])
def test_the_page_has_its_marks_once(mark: str) -> None:
    """`--markdown benchmarks/README.md` finds where to write."""
    text = (peers.SOURCES / "README.md").read_text("utf-8")
    assert text.count(f"<!-- {mark} -->\n") == text.count(f"<!-- /{mark} -->\n") == 1


def test_a_stopped_run_has_shown_what_it_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each figure is printed at once, and after Ctrl-C the rows so far are there."""

    def interrupted(_bench: Bench, unfinished: Row) -> None:
        unfinished.add(Figure("half", 1.0, "x task", 2.0))
        raise KeyboardInterrupt

    monkeypatch.setitem(ROWS, "P2", interrupted)
    rows, is_stopped = program.measured(bench, ["P2", "P3"], judged=True)
    assert is_stopped
    assert [(one.goal, len(one.figures)) for one in rows] == [("P2", 1)]
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["P2", "half", "1.00", "x", "task", "<=", "2", "met"]


def test_every_goal_has_an_expected_time() -> None:
    """The time that is left follows the speed of the goals that are done."""
    assert SECONDS.keys() == ROWS.keys()
    goals = ["P1", "P2"]
    assert remaining(goals, 1.0, {}, "P1", 5.0) == SECONDS["P1"] - 5 + SECONDS["P2"]
    assert remaining(goals, 1.0, {"P1": 2.0 * SECONDS["P1"]}, "P2", 1.0) == 2 * SECONDS["P2"] - 1
    assert remaining(goals, 1.0, {"P1": 1.0}, "P2", 99.0) == 0


def test_progress_shows_round_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    """A line on stderr names goal, work, round, program and the time that is left; not one for each run."""
    progress = Progress(["P2"])
    progress.start("P2")
    progress.show("one step", 3, 11, "task")
    progress.show("one step", 4, 11, "task")
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("P2 one step: round 3 of 11, task (0:0")
    assert line.endswith(" left)")


def test_plans_differ_only_in_their_shell() -> None:
    """The usual plan sets no shell, and the one beside it /bin/sh."""
    dag = dags.fan(2, dags.silent)
    assert dialects.planrun_sh(dag).replace("defaults: {shell: sh}\n", "") == dialects.planrun(dag)
    assert "shell" not in dialects.planrun(dag)


def test_calls_are_read_from_strace() -> None:
    """A summary has a column more where calls failed; calls that do not depend on the number of steps go away."""
    summary = (
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 60.00    0.000120           1       220           read\n"
        " 40.00    0.000080           1       300        20 openat\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        "100.00    0.000200           1       520        20 total\n"
    )
    many = calls.parsed(summary)
    assert many == {"read": 220, "openat": 300}
    few = calls.parsed(summary.replace("220", " 20"))
    assert calls.a_step(many, few) == {"read": 2.0}
    assert "| **all** | **2.0** |" in calls.table({"`true`": calls.a_step(many, few)})


def test_what_a_report_shows_of_logs_is_counted(bench: Bench) -> None:
    """The run whose reports are measured has failures, and its JUnit file holds all of the little it printed."""
    workspace = bench.workspace(reports.inputs(40))
    command = [*peers.planrun_command(), "execute", "plan.yml"]
    run = Contender("planrun", command, workspace, bench.environment())
    assert run_once(bench.launcher, run, may_fail=True).status == 1
    plan = workspace.folder / "plan.yml"
    steps, failures = plan.read_text().count("{id: "), plan.read_text().count("exit 1")
    assert (steps, failures) == (40, 10)
    printed = reports.LINES * (len(reports.LINE) + 1)
    size = reports.log_bytes(workspace.folder / "planrun-out" / "junit.xml")
    assert size == printed * steps  # a failure has it as text, the others as output
