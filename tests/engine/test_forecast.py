"""How long a run still takes: the real order on the places that there are, and not the work over the places."""

from __future__ import annotations

import pytest

from benchmarks.schedules import makespan, works
from planrun.engine.forecast import remaining
from planrun.model import events as ev
from planrun.model.plan import Step
from planrun.model.state import RunState
from tests.engine.world import plan, step


def begun(*steps: Step) -> RunState:
    """Return a run that executes and in which nothing has started."""
    state = RunState(plan(steps))
    for status in ("awaiting_approval", "approved", "executing"):
        state.apply(ev.PlanMoved(at="", status=status))
    return state


def start(state: RunState, name: str) -> None:
    """Have a step run."""
    state.apply(ev.AttemptStarted(at="", step=name, n=1))


def end(state: RunState, name: str) -> None:
    """Have a step that runs complete."""
    state.apply(ev.AttemptEnded(at="", step=name, n=1, status="completed", step_status="completed"))


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_the_forecast_of_a_run_that_has_not_begun_is_its_makespan(schedule: str) -> None:
    """For random graphs, under every schedule: what the loop itself takes on a clock of its own."""
    for work in works(8):
        state = begun(*work.plan().steps)
        found = remaining(state, work.jobs, schedule, work.seconds, 1.0)  # type: ignore[arg-type]
        assert found == pytest.approx(makespan(work, schedule, dict(work.seconds)))  # type: ignore[arg-type]


def test_what_runs_takes_what_is_left_of_it() -> None:
    """Slots are taken until a step ends; finished steps take no time; an unknown step takes the usual time."""
    state = begun(step("a"), step("b"), step("c", ("a", "ok")), step("unknown", ("c", "ok")))
    start(state, "a")
    end(state, "a")
    start(state, "b")
    assert remaining(state, 1, "dag", {"b": 5.0, "c": 10.0}, 3.0) == 18.0
    assert remaining(state, 2, "dag", {"b": 5.0, "c": 10.0}, 3.0) == 13.0


def test_cleanup_comes_after_everything() -> None:
    """The steps under `finally` start when the others have ended."""
    state = begun(step("a"), step("tidy", section="finally"))
    assert remaining(state, 4, "dag", {"a": 5.0, "tidy": 2.0}, 1.0) == 7.0


def test_nothing_is_left_of_a_run_that_is_over() -> None:
    """All steps have ended."""
    state = begun(step("a"))
    start(state, "a")
    end(state, "a")
    assert remaining(state, 4, "dag", {}, 1.0) == 0.0
