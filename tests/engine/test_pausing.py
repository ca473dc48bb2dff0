"""What the scheduler does with a pause request, whenever it arrives."""

from __future__ import annotations

from signal import SIGTERM, SIGUSR1

import pytest

from planrun.model import events as ev
from planrun.model.job import Job, Outcome
from planrun.model.plan import Limits, Retry, Step
from planrun.model.state import RunState
from tests.engine.world import FAIL, PASS, World, plan, step

STEPS = (
    step("a"),
    step("b", ("a", "ok")),
    step("c"),
    step("d", ("b", "ok"), ("c", "ok")),
    step("z", section="finally"),
)
TAKES: dict[str, list[Outcome | float]] = {"a": [1.0], "b": [1.0], "c": [2.5], "d": [1.0], "z": [1.0]}


class Failing(World):
    """A world in which every step fails, after its time."""

    def conclude(self, _step: Step, _job: Job, _outcome: Outcome) -> Outcome:
        return FAIL


def resumed(world: World) -> ev.RunResumed:
    """Make the event that resumes the run unchanged."""
    return ev.RunResumed(
        at=world.clock.stamp(), planrun="0", plan={}, params={}, context={}, options={}, pid=1, host="h",
        rerun=(), lost=(),
    )  # fmt: skip


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5])
def test_a_paused_run_resumes_where_it_stopped(at: float) -> None:
    """Running steps end, nothing starts after the request, and the resumed run runs each other step exactly once."""
    world = World({**TAKES})
    world.signals = [(1000.0 + at, SIGUSR1)]
    of = plan(STEPS)
    state, code = world.run(of)
    assert (code, state.status) == ((5, "paused") if at < 4.0 else (0, "completed"))
    requested = next(n for n, event in enumerate(world.events) if isinstance(event, ev.RunEnding))
    assert not any(isinstance(event, ev.AttemptStarted) for event in world.events[requested:])
    assert {found.status for found in state.steps.values()} <= {"completed", "pending"}
    if code == 5:
        assert isinstance(world.events[-1], ev.PlanMoved)
        world.append(resumed(world))
        again = RunState(of).replay(world.events)
        assert again.status == "paused"
        assert world.go_on(again) == 0
    assert sorted(world.started) == ["a", "b", "c", "d", "z"]


def test_a_step_between_two_attempts_is_paused_and_keeps_its_count() -> None:
    """Its next attempt starts at once after the resume, and it has no more attempts than without the pause."""
    world = World({"a": [FAIL, FAIL, FAIL, PASS]})
    world.signals = [(1001.0, SIGUSR1)]
    of = plan([step("a", retries=Retry(max=2, initial=60.0, factor=1.0, cap=60.0, jitter=0.0))])
    state, code = world.run(of)
    assert (code, state.steps["a"].status, state.steps["a"].reason) == (5, "paused", "paused")
    assert state.steps["a"].ended_at == ""
    world.append(resumed(world))
    again = RunState(of).replay(world.events)
    paused_at = world.clock.now
    assert world.go_on(again) == 1
    assert [attempt.status for attempt in again.steps["a"].attempts] == ["failed"] * 3
    assert world.clock.now - paused_at == 60.0


def test_a_paused_step_ends_with_a_cancelled_run() -> None:
    """A signal that comes before its next attempt ends it like any other."""
    world = World({"a": [FAIL], "b": [5.0]})
    world.signals = [(1001.0, SIGUSR1)]
    retries = Retry(max=2, initial=60.0, factor=1.0, cap=60.0, jitter=0.0)
    of = plan([step("a", retries=retries), step("b")])
    world.run(of)
    world.append(resumed(world))
    again = RunState(of).replay(world.events)
    world.signals = [(world.clock.now, SIGTERM)]
    assert world.go_on(again) == 143
    assert (again.steps["a"].status, again.steps["b"].status) == ("cancelled", "completed")


@pytest.mark.parametrize(
    ("limits", "signals", "fields", "code"),
    [
        (Limits(deadline=3.0), [], {}, 124),
        (Limits(), [(1002.0, SIGTERM)], {}, 143),
        (Limits(), [], {"on_failure": "abort"}, 1),
    ],
)
def test_what_ends_a_run_counts_more_than_a_pause(
    limits: Limits, signals: list[tuple[float, int]], fields: dict[str, str], code: int
) -> None:
    """A deadline, a signal and a failure that aborts end a run that is coming to rest, cleanup included."""
    world = (Failing if fields else World)({"a": [9.0]})
    world.signals = [(1000.5, SIGUSR1), *signals]
    of = plan([step("a", **fields), step("b", ("a", "done")), step("z", section="finally")], limits=limits)
    state, found = world.run(of)
    assert (found, state.ended is not None, world.started) == (code, True, ["a", "z"])
    assert not state.pausing


def test_a_second_request_changes_nothing() -> None:
    """It is recorded once, and a run whose last step ends meanwhile ends as without a request."""
    world = World({"a": [2.0]})
    world.signals = [(1000.5, SIGUSR1), (1001.0, SIGUSR1)]
    state, code = world.run(plan([step("a")]))
    assert (code, state.status) == (0, "completed")
    assert sum(isinstance(event, ev.RunEnding) for event in world.events) == 1
