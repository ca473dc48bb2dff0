"""The end of a run that failed: what it did is undone; and of one that was cut short: what it still owes is done."""

from __future__ import annotations

from planrun.engine.stopping import cancel_pending
from planrun.model import events as ev
from planrun.model.rollback import is_due, undoable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.engine.scheduler import Scheduler


def roll_back(run: Scheduler) -> None:
    """Undo what a run did, if it failed and there is anything; what was begun before goes on.

    After a signal there is no time for that: it stays owed, and whoever catches up with the run does it.
    """
    state = run.state
    if run.lost is not None or not run.options.rollback or state.pausing:
        return
    due = is_due(state) if run.options.catches_up else state.verdict("steps") == "failed"
    if due and state.rollback is None and (names := undoable(state)):
        run._emit(ev.RollbackStarted(at=run._clock.stamp(), steps=tuple(names)))
    if run._cleanup_until is None:
        run._drive("rollback")


def close_steps(run: Scheduler) -> None:
    """End every step under `steps:` that has no end, in a run that is only to do what it still owes.

    Where nothing had failed when planrun was killed, that is a cancellation.
    """
    state = run.state
    steps = state.of_section("steps")
    left = not all(state.steps[step.id].ended for step in steps)
    if left and state.ending is None and state.verdict("steps") != "failed":
        run._emit(ev.RunEnding(at=run._clock.stamp(), why="cancel"))
    run._enter(steps)
    cancel_pending(run, "cancelled")
    for step in steps:
        if state.steps[step.id].status == "running" and step.kind != "group":
            run._move(step.id, "cancelled", "lost")  # nobody knows how far it came
    run._look()  # groups end when their members have
