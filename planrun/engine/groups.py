"""Groups in the scheduler: a group opens when its members may start, and closes when all of them have ended."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.model import events as ev
from planrun.model.groups import chain, gather
from planrun.model.plan import Edge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.engine import RunContext
    from planrun.model.plan import Step


def evaluate_group(run: RunContext, group: Step) -> None:
    """Open or close a group whose edges are settled; one that cannot open ends, with all its members."""
    edges = None
    if run.state.steps[group.id].status == "running":
        _close(run, group)
        return
    if group.grouping.same and not _has_work(run, group):
        # Its members would look at the instances of their names. Without them the group does, as a whole: a group
        # that is skipped satisfies `ok`, and must not hide a failure that comes later.
        edges = [Edge(on=on, kind=kind) for on, kind in group.grouping.same]
        edges += [edge for edge in group.edges if edge.kind != "same"]
        if run.frontier.defer(group, edges):
            return
    if run.evaluate(group, edges):
        claims = run.queue.claims
        if claims is not None and not claims.open(group.id):
            return  # it opens when another instance has ended
        _open(run, group)
    if run.state.steps[group.id].opened is None:
        group_state = run.state.steps[group.id]
        if group_state.ended:
            failed = group_state.status == "failed"
            status, reason = ("blocked", "upstream") if failed else (group_state.status, group_state.reason)
            message = (
                "" if run.is_excluded(group) else f"{group.id} {group_state.status} ({group_state.reason})"
            )
            for name, member in list(run.state.steps.items()):
                if member.status == "pending" and group.id in chain(run.state, name):
                    run.move(name, status, reason, message)


def _has_work(run: RunContext, group: Step) -> bool:
    """Whether a group whose edges are settled would open now, with at least one member."""
    if run.is_excluded(group) or run.frontier.judge(group.edges) != "satisfied":
        return False
    try:
        if group.condition is not None and not run.dependencies.holds(group, run.state):
            return False
        items = run.dependencies.steps.opening(group, run.state).get("items")
    except EvaluationError:  # it fails, which is no way past a failure
        return True
    return bool(group.grouping.members if items is None else items)


def _open(run: RunContext, group: Step) -> None:
    try:
        fields = run.dependencies.steps.opening(group, run.state)
    except EvaluationError as error:
        run.move(group.id, "failed", "refused", str(error))
        run.queue.release(group.id)
        run.abort(group)
        return
    before = {name: run.state.steps[name] for name in group.grouping.members}
    unended = [name for name, member in before.items() if not member.ended]
    run.emit(ev.StepOpened(at=run.clock.stamp(), step=group.id, **fields))
    opened = run.state.steps[group.id].step
    if group.grouping.template is not None:
        members = opened.grouping.members
        for name in [name for name in unended if name not in members]:
            run.queue.settle(name)  # of an earlier list, in a resumed run
            run.frontier.remove(before[name].step)
        joining = [run.state.steps[name].step for name in members if name not in before]
        run.frontier.join(group.id, joining)
        run.queue.join(group.id, joining)
    run.frontier.mark_open(group.id)


def _close(run: RunContext, group: Step) -> None:
    status, reason, message = gather(run.state, run.state.steps[group.id].step)
    more: dict[str, Any] = {}
    if status == "completed":
        try:
            if outputs := run.dependencies.steps.gathered(group, run.state):
                more["outputs"] = outputs
        except EvaluationError as error:
            status, reason, message = "failed", "outputs", str(error)
    run.emit(
        ev.StepMoved(
            at=run.clock.stamp(), step=group.id, status=status, reason=reason, message=message, **more
        )
    )
    run.settle(group.id)
    run.queue.release(group.id)
    if status == "failed":
        run.abort(group)


def fail_fast(run: RunContext, step: Step) -> None:
    """Cancel the other members of a `fail_fast` group after one of them failed for good."""
    group = run.state.steps[step.group].step
    if group.kind != "group" or not group.grouping.fail_fast or run.state.ending is not None:
        return
    if run.state.tolerated_within(step.id) is not None:
        return
    for name, member in list(run.state.steps.items()):
        if name == step.id or group.id not in chain(run.state, name):
            continue
        if member.status in ("pending", "waiting", "paused"):
            run.queue.drop(name)
            run.timers[:] = [entry for entry in run.timers if entry[1] != name]
            run.move(name, "cancelled", "fail_fast", f"{step.id} failed")
        elif name in run.dependencies.executor.running:
            run.dependencies.executor.stop(name, "cancelled")
