"""Groups in the loop: opened when nothing keeps their members from starting, closed when all of these have ended."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.model import events as ev
from planrun.model.groups import chain, gather
from planrun.model.plan import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.engine.scheduler import Scheduler
    from planrun.model.plan import Step


def decide(run: Scheduler, group: Step) -> None:
    """Open a group whose edges are settled, or end it, with all its members when it was never opened."""
    if run.state.steps[group.id].status == "running":
        _close(run, group)
    elif run._is_due(group):
        claims = run._queue.claims
        if claims is not None and not claims.open(group.id):
            return  # its place comes when another instance has ended
        _open(run, group)
    if run.state.steps[group.id].opened is None:
        _leave(run, group)


def _open(run: Scheduler, group: Step) -> None:
    assert isinstance(group.action, Group)
    try:
        fields = run.rooms.steps.opening(group, run.state)
    except EvaluationError as error:
        run._move(group.id, "failed", "refused", str(error))
        run._queue.release(group.id)
        run._abort(group)
        return
    before = {name: run.state.steps[name] for name in group.action.members}
    running = [name for name, found in before.items() if not found.ended]
    run._emit(ev.StepOpened(at=run._clock.stamp(), step=group.id, **fields))
    found = run.state.steps[group.id].step
    assert isinstance(found.action, Group)
    if group.action.template is not None:
        members = found.action.members
        for name in [name for name in running if name not in members]:
            run._queue.settle(name)  # of an earlier list, in a run that goes on
            run._frontier.leave(before[name].step)
        fresh = [name for name in members if name not in before]
        joining = [run.state.steps[name].step for name in fresh]
        run._frontier.join(group.id, joining)
        run._queue.join(group.id, joining)
    run._frontier.release(group.id)


def _close(run: Scheduler, group: Step) -> None:
    status, reason, message = gather(run.state, run.state.steps[group.id].step)
    more: dict[str, Any] = {}
    if status == "completed":
        try:
            if outputs := run.rooms.steps.gathered(group, run.state):
                more["outputs"] = outputs
        except EvaluationError as error:
            status, reason, message = "failed", "outputs", str(error)
    run._emit(
        ev.StepMoved(
            at=run._clock.stamp(), step=group.id, status=status, reason=reason, message=message, **more
        )
    )
    run._settle(group.id)
    run._queue.release(group.id)
    if status == "failed":
        run._abort(group)


def _leave(run: Scheduler, group: Step) -> None:
    """End the members of a group that will never be opened as the group itself ended."""
    found = run.state.steps[group.id]
    if not found.ended:
        return
    failed = found.status == "failed"
    status, reason = ("blocked", "upstream") if failed else (found.status, found.reason)
    for name, member in list(run.state.steps.items()):
        if member.status == "pending" and group.id in chain(run.state, name):
            run._move(name, status, reason, f"{group.id} {found.status} ({found.reason})")


def fail_fast(run: Scheduler, step: Step) -> None:
    """Cancel the other members of a group that wants it so, once one of them has failed for good."""
    group = run.state.steps[step.group].step
    if not isinstance(group.action, Group) or not group.action.fail_fast or run.state.ending is not None:
        return
    if run.state.tolerated_within(step.id) is not None:
        return
    for name, member in list(run.state.steps.items()):
        if name == step.id or group.id not in chain(run.state, name):
            continue
        if member.status in ("pending", "waiting", "paused"):
            run._queue.drop(name)
            run._waiting[:] = [entry for entry in run._waiting if entry[1] != name]
            run._move(name, "cancelled", "fail_fast", f"{step.id} failed")
        elif name in run.rooms.executor.running:
            run.rooms.executor.stop(name, "cancelled")
