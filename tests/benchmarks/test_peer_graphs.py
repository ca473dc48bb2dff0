"""The graphs that the benchmarks run: the same work, in the right order, in every tool's language."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks import dags, peers
from benchmarks.bench import QUICK, Bench
from benchmarks.dags import MARKS
from benchmarks.figures import Figure, Row
from benchmarks.measure import MeasureError, Usage, run_once
from benchmarks.verify import faults, unrecorded

if TYPE_CHECKING:
    from pathlib import Path

PLANRUNS = (peers.PLANRUN, peers.PLANRUN_SH)
GRAPHS = [
    dags.one(dags.marking(0)),
    dags.fan(20, dags.marking),
    dags.layers(4, 8, dags.marking),
    dags.chain(6, dags.marking),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Give the tests of this file one session with compiled C programs."""
    if peers.find("cc") is None:
        pytest.skip("no C compiler on this machine")
    return Bench(tmp_path_factory.mktemp("bench"), QUICK)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("name", [peers.C_LOOP, peers.C_LOGS, "make", "ninja", "task", "doit", *PLANRUNS])
def test_every_tool_runs_each_step_once_and_in_order(bench: Bench, name: str, graph: dags.Dag) -> None:
    """What is compared is the same graph: no tool leaves steps out, repeats them or ignores edges."""
    tool = {peers.PLANRUN: bench.planrun, peers.PLANRUN_SH: bench.planrun_sh, **bench.peers}.get(name)
    if tool is None:
        pytest.skip(f"{name} is not installed")
    contender = bench.contender(tool, graph)
    run_once(bench.launcher, contender)
    assert faults(graph, (contender.workspace.folder / MARKS).read_text()) == []


def test_wrong_orders_are_found() -> None:
    """The proof itself notices a step that is missing, repeated or too early."""
    graph = dags.Dag("", (dags.Step("a", ""), dags.Step("b", "", (0,))))
    assert faults(graph, "<0><1>") == []
    assert faults(graph, "<1><0>") == ["step 1 ran before step 0, which it needs"]
    assert faults(graph, "<0><1><1>") == ["step 1 ran more than once"]
    assert faults(graph, "<0>") == ["step 1 did not run"]


def test_late_events_are_found(tmp_path: Path) -> None:
    """A step that does not find the end of its need in the ledger is reported."""
    graph = dags.Dag("", (dags.Step("a", ""), dags.Step("b", "", (0,))))
    started = json.dumps({"type": "attempt_started", "step": "a"})
    ended = json.dumps({"type": "attempt_ended", "step": "a"})
    (tmp_path / "seen.0").write_text("")
    (tmp_path / "seen.1").write_text(started + "\n")
    assert unrecorded(graph, tmp_path) == ["b started before the end of a was recorded"]
    (tmp_path / "seen.1").write_text(f"{started}\n{ended}\n")
    assert unrecorded(graph, tmp_path) == []


def test_the_c_loop_keeps_logs(bench: Bench) -> None:
    """The C loop with logs writes one file a step, so that it can stand beside tools that do."""
    contender = bench.contender(bench.peers[peers.C_LOGS], dags.layers(2, 3, dags.printing))
    run_once(bench.launcher, contender)
    assert (contender.workspace.folder / "4.log").read_text() == "step 4 has something to say\n"


def test_a_failing_program_is_no_measurement(bench: Bench) -> None:
    """A program that fails fast must not look fast: its output is shown instead."""
    with pytest.raises(MeasureError, match="liar ended with 3: no time for this"):
        run_once(bench.launcher, bench.program("liar", ["/bin/sh", "-c", "echo no time for this; exit 3"]))


def test_memory_is_that_of_the_program_alone(bench: Bench) -> None:
    """The launcher is small, so that a peer is not charged with the memory of this Python process."""
    assert run_once(bench.launcher, bench.program("sh", ["/bin/sh", "-c", ":"])).rss < 6


def test_every_run_starts_in_a_clean_workspace(bench: Bench) -> None:
    """What a run leaves behind is gone in the next one; its input is not."""
    contender = bench.contender(bench.peers[peers.C_LOOP], dags.one("test ! -e left && : > left"))
    assert [run_once(bench.launcher, contender).status for _ in range(3)] == [0, 0, 0]


def test_a_median_needs_runs(bench: Bench) -> None:
    """Ratios compare medians, and one odd run does not move them."""
    contender = bench.program("nothing", ["/bin/true"])
    with pytest.raises(MeasureError):
        contender.median()
    contender.runs = [Usage(wall, 0, 0) for wall in (1, 2, 90)]
    assert contender.median().wall == 2


def test_a_figure_is_judged_by_its_target() -> None:
    """A target is an upper limit that may be reached."""
    assert Figure("", 1.5, "x", 1.5).verdict == "met"
    assert Figure("", 1.51, "x", 1.5).verdict == "missed"


def test_a_new_plan_meets_an_empty_cache(bench: Bench) -> None:
    """Every run of a plan that counts as never seen gets a cache folder that nothing was in."""
    contender = bench.program(
        "new", ["/bin/sh", "-c", 'test -z "$(ls "$XDG_CACHE_HOME")" && : > "$XDG_CACHE_HOME/x"']
    )
    contender.before = bench.fresh_cache
    assert [run_once(bench.launcher, contender).status for _ in range(3)] == [0, 0, 0]


@pytest.mark.shows("D-45")
def test_what_a_step_costs_is_told_in_milliseconds(bench: Bench) -> None:
    """A run of steps that do nothing comes to milliseconds a step, of its wall time, beside the target."""
    dag = dags.fan(20, dags.silent)
    contender = bench.new_plan(dag)
    bench.compare("fan", [contender], 2)
    row = Row("P4")
    row.each("fan silent", contender, len(dag.steps), 20.0)
    (figure,) = row.figures
    assert (figure.unit, figure.target) == ("ms a step", 20.0)
    assert figure.value * len(dag.steps) == pytest.approx(1000 * contender.median().wall)
    print(f"{figure.value:.1f} {figure.unit}: {figure.verdict}")
