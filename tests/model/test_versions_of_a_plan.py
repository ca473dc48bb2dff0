"""The state of a run that continues with another version of its plan."""

from __future__ import annotations

from typing import Any

import pytest

from planrun.app.copies import state_under
from planrun.errors import InternalError
from planrun.model import events as ev
from planrun.model.state import RunState
from tests.engine.world import plan, step

AT = "2026-01-01T00:00:00.000Z"


def resumed(version: int, **fields: Any) -> ev.RunResumed:
    """Make the event that continues a run under a version of its plan."""
    given: dict[str, Any] = {"rerun": (), "lost": (), "params": {}, "plan": {"version": version}, **fields}
    return ev.RunResumed(at=AT, planrun="0", context={}, options={}, pid=1, host="h", **given)


def ran(state: RunState, name: str, n: int = 1) -> None:
    """Let a step complete."""
    state.apply(ev.AttemptStarted(at=AT, step=name, n=n))
    state.apply(
        ev.AttemptEnded(at=AT, step=name, n=n, status="completed", step_status="completed", reason="ran")
    )


def test_what_is_known_of_a_step_stays_with_its_id() -> None:
    """Steps follow the new file order; kept ones keep their status, new ones are pending, old ones are set aside."""
    first = plan([step("a"), step("b")])
    second = plan([step("new"), step("b", title="other")], version=2)
    state = RunState(first, {2: second})
    ran(state, "a")
    ran(state, "b")
    state.apply(resumed(2))
    assert {name: found.status for name, found in state.steps.items()} == {"new": "pending", "b": "completed"}
    assert state.steps["b"].step.title == "other"
    assert (state.plan, list(state.dropped)) == (second, ["a"])


def test_a_step_that_comes_back_is_pending_and_keeps_its_attempts() -> None:
    """So its next attempt has a number of its own."""
    first, second = plan([step("a"), step("b")]), plan([step("b")], version=2)
    state = RunState(first, {2: second, 3: first.but(version=3)})
    ran(state, "a")
    state.apply(resumed(2))
    state.apply(resumed(3))
    assert (state.steps["a"].status, len(state.steps["a"].attempts)) == ("pending", 1)


def test_a_lost_attempt_of_a_step_that_is_gone_has_an_end_all_the_same() -> None:
    """The old plan's steps are looked at before the new one counts."""
    state = RunState(plan([step("a"), step("b")]), {2: plan([step("b")], version=2)})
    state.apply(ev.AttemptStarted(at=AT, step="a", n=1))
    state.apply(resumed(2, lost=("a",)))
    ended = state.dropped["a"].attempts[0].ended
    assert ended is not None
    assert ended.status == "lost"


def test_looking_ahead_changes_nothing() -> None:
    """`under` gives the run under another plan, and the run itself stays as it was."""
    first = plan([step("a"), step("b")])
    state = RunState(first)
    ran(state, "a")
    ahead = state_under(state, plan([step("a", title="new")], version=2), {"x": 1})
    assert (list(ahead.steps), ahead.params, ahead.steps["a"].status) == (["a"], {"x": 1}, "completed")
    assert (state.plan, list(state.steps), state.params) == (first, ["a", "b"], {})
    assert state.steps["a"].step.title == ""


def test_a_version_that_is_not_at_hand_is_a_bug() -> None:
    """A ledger is only replayed with all its plans."""
    with pytest.raises(InternalError, match="version 2 of the plan"):
        RunState(plan([step("a")])).apply(resumed(2))


def test_a_completed_run_goes_on_only_when_something_runs_again() -> None:
    """Otherwise its end would be deleted without need."""
    state = RunState(plan([step("a")]))
    for status in ("awaiting_approval", "approved", "executing"):
        state.apply(ev.PlanMoved(at=AT, status=status))
    ran(state, "a")
    state.apply(
        ev.RunEnded(
            at=AT, status="completed", verdict="completed", exit_code=0, duration=0.0, summary={}, events=7
        )
    )
    with pytest.raises(InternalError, match="completed run"):
        state.apply(resumed(1))
    state.apply(resumed(1, rerun=("a",)))
    assert (state.status, state.steps["a"].status) == ("approved", "pending")
