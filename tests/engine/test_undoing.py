"""What a failed run undoes, in which order, and which cleanup it leaves pending."""

from __future__ import annotations

from signal import SIGTERM
from typing import Any

import pytest

from planrun.model import events as ev
from planrun.model.plan import Limits, Rollback, Step
from planrun.model.rollback import MAX_EDGES, owed_cleanup, status
from planrun.model.state import RunState
from tests.engine.world import FAIL, PASS, World, plan, step


def undoable(name: str, *edges: tuple[str, str], on_failed: bool = False, **fields: Any) -> Step:
    """Make a step that says how it is undone."""
    undo = step(f"undo:{name}").but(section="rollback")
    return step(name, *edges, rollback=Rollback(undo=undo, on_failed=on_failed), **fields)


def chain() -> list[Step]:
    """Three steps that can be undone, with one between them that cannot, and one that fails."""
    return [
        undoable("a"),
        undoable("b", ("a", "ok")),
        step("plain", ("b", "ok")),
        undoable("c", ("plain", "ok")),
        step("bad", ("c", "ok")),
    ]


def test_what_was_done_last_is_undone_first() -> None:
    """After a failure every completed step with a rollback is undone, each before what it depended on."""
    world = World({"bad": [FAIL]})
    state, code = world.run(plan([*chain(), step("end", section="finally")]))
    assert world.started[5:] == ["undo:c", "undo:b", "undo:a", "end"]
    assert (code, state.verdict(), status(state)) == (1, "failed", "completed")
    assert [state.steps[name].undone for name in ("a", "b", "c", "plain")] == ["completed"] * 3 + [""]


def test_nothing_is_undone_of_a_run_that_completed() -> None:
    """Without a failure, and behind one that is tolerated, nothing is undone."""
    for tolerated in ([PASS], [FAIL]):
        world = World({"bad": tolerated})
        steps = [*chain()[:4], step("bad", ("c", "ok"), on_failure="continue")]
        state, code = world.run(plan(steps))
        assert (code, status(state)) == (0, "none")
        assert "undo:a" not in world.started


def test_only_what_completed_is_undone() -> None:
    """What failed, was skipped or blocked is not; a failed step is when its rollback is for that, too."""
    steps = [undoable("a"), undoable("no", ("a", "failed")), undoable("bad", ("a", "ok"))]
    world = World({"bad": [FAIL]})
    world.run(plan([*steps, undoable("behind", ("bad", "ok"))]))
    assert world.started == ["a", "bad", "undo:a"]
    world = World({"bad": [FAIL]})
    world.run(plan([*steps[:2], undoable("bad", ("a", "ok"), on_failed=True)]))
    assert world.started == ["a", "bad", "undo:bad", "undo:a"]


def test_a_failing_undo_keeps_no_other_from_being_undone() -> None:
    """It is recorded; steps that waited for it are still undone, and verdict and exit code stay the same."""
    world = World({"bad": [FAIL], "undo:b": [FAIL]})
    state, code = world.run(plan(chain()))
    assert world.started[5:] == ["undo:c", "undo:b", "undo:a"]
    assert (code, state.verdict(), status(state)) == (1, "failed", "failed")
    assert [state.steps[name].undone for name in "abc"] == ["completed", "failed", "completed"]


def test_the_order_among_independent_steps_is_that_of_their_ends_reversed() -> None:
    """One at a time, the step that ended last is undone first, whatever its place in the file."""
    world = World({"a": [3.0], "b": [2.0], "c": [1.0], "bad": [FAIL]})
    state, _ = world.run(plan([undoable("a"), undoable("b"), undoable("c"), step("bad", ("a", "ok"))]))
    assert state.rollback is not None
    assert state.rollback.steps == ("a", "b", "c")
    assert world.together[-1] == ("undo:a", "undo:b", "undo:c")  # all at once, as many as there may be
    again = World({"a": [3.0], "b": [2.0], "c": [1.0], "bad": [FAIL]})
    again.run(plan([undoable(name) for name in "abc"] + [step("bad")], schedule="sequential"))
    assert again.started[4:] == ["undo:c", "undo:b", "undo:a"]


def test_so_many_edges_become_one_after_the_other() -> None:
    """Where every one of many steps waits for every one of many others, undoing keeps the order without the edges."""
    many = int(MAX_EDGES**0.5) + 1
    steps = [undoable(f"a{number}") for number in range(many)]
    steps.append(step("wall", *[(found.id, "ok") for found in steps]))
    steps += [undoable(f"b{number}", ("wall", "ok")) for number in range(many)]
    world = World({"bad": [FAIL]})
    state, _ = world.run(plan([*steps, step("bad", (steps[-1].id, "ok"))]))
    undone = [name for name in world.started if name.startswith("undo:")]
    assert len(undone) == 2 * many
    assert all(name.startswith("undo:b") for name in undone[:many])
    assert sum(len(found.step.edges) for found in state.undoing.values()) < 2 * many


@pytest.mark.parametrize(("why", "verdict", "code"), [("abort", "failed", 1), ("deadline", "failed", 124)])
def test_aborts_and_deadlines_undo_too(why: str, verdict: str, code: int) -> None:
    """What had completed is undone, with time of its own; what was cut short is when its rollback is for that."""
    steps = [undoable("a"), undoable("long", ("a", "ok"), on_failed=True)]
    if why == "abort":
        steps.append(step("bad", ("a", "ok"), on_failure="abort"))
    world = World({"long": [60.0], "bad": [FAIL], "undo:a": [30.0], "undo:long": [30.0]})
    state, found = world.run(plan(steps, limits=Limits(deadline=10.0)))
    assert world.started[-2:] == ["undo:long", "undo:a"]
    assert (found, state.verdict(), status(state)) == (code, verdict, "completed")


def test_the_plan_limits_the_time_of_undoing_and_cleanup() -> None:
    """What runs then has failed by timeout, the rest is cancelled, and `finally` has its own time."""
    world = World({"bad": [FAIL], "undo:c": [60.0], "end": [5.0], "late": [60.0]})
    ends = [step("end", section="finally"), step("late", ("end", "ok"), section="finally")]
    state, _ = world.run(plan([*chain(), *ends], limits=Limits(cleanup=10.0)))
    undone = {name: f"{found.status}/{found.reason}" for name, found in state.undoing.items()}
    assert undone == {
        "undo:c": "failed/timeout",
        "undo:b": "cancelled/cleanup",
        "undo:a": "cancelled/cleanup",
    }
    assert [state.steps[name].reason for name in ("end", "late")] == ["ran", "timeout"]
    assert status(state) == "failed"


def test_a_signal_leaves_undoing_pending() -> None:
    """A cancelled run undoes nothing, runs its `finally` steps and reports the pending cleanup."""
    world = World({"bad": [60.0]})
    world.signals = [(1001.0, SIGTERM)]
    state, code = world.run(plan([*chain(), step("end", section="finally")]))
    assert world.started[-1] == "end"
    assert (code, state.verdict(), status(state), state.rollback) == (143, "cancelled", "owed", None)


def test_a_signal_while_undoing_leaves_the_rest_pending() -> None:
    """The current undo step continues, nothing else is undone, and `finally` still runs."""
    world = World({"bad": [FAIL], "undo:c": [3.0]})
    world.signals = [(1001.0, SIGTERM)]
    state, _ = world.run(plan([*chain(), step("end", section="finally")]))
    assert world.started[-2:] == ["undo:c", "end"]
    assert state.steps["c"].undone == "completed"
    assert (state.steps["b"].undone, status(state)) == ("", "owed")


def test_undoing_can_be_switched_off() -> None:
    """With the option nothing is undone, and nothing is left to finalize."""
    world = World({"bad": [FAIL]})
    state, code = world.run(plan(chain()), rollback=False)
    assert (code, status(state), len(world.started)) == (1, "none", 5)


def test_finishing_pending_cleanup_starts_no_step() -> None:
    """A run that only finishes pending cleanup cancels unfinished steps, and does the cleanup once."""
    whole = [*chain(), step("end", section="finally")]
    first = World()
    first.run(plan(chain()[:4]))
    state = RunState(plan(whole)).replay(first.events[:-1])  # killed before its last step started
    state.apply(_catch_up())
    world = World()
    world.go_on(state, cleanup_only=True)
    assert world.started == ["undo:c", "undo:b", "undo:a", "end"]
    assert state.steps["bad"].status == "cancelled"
    assert (state.verdict(), status(state), owed_cleanup(state)) == ("cancelled", "completed", [])


def _catch_up() -> ev.CleanupResumed:
    return ev.CleanupResumed(
        at="2026-01-01T00:00:00.000Z", planrun="0", options={}, lost=(), rerun=(), pid=1, host="here"
    )
