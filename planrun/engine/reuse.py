"""Steps that complete without an attempt, since an earlier result of the same is used again; loaded with the first."""

from __future__ import annotations

from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.engine.scheduler import Scheduler
    from planrun.model.plan import Step


def restored(run: Scheduler, step: Step) -> bool:
    """Look for an earlier result of a step that could start now, and say whether it is in place."""
    cache = run.rooms.cache
    if cache is None or run.state.steps[step.id].tries:
        return False
    fields = cache.find(step, run.state)
    if fields is None:
        return False
    run._queue.release(step.id)
    run._emit(ev.StepRestored(at=run._clock.stamp(), step=step.id, **fields))
    run._settle(step.id)
    return True
