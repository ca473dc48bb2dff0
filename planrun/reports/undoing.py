"""What a failed run undid, what it could not, and what a run that was cut short still owes."""

from __future__ import annotations

from planrun.model.undoing import owed_cleanup, owes, owes_rollback, status, undoable
from planrun.reports import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.state import RunState


def told(state: RunState) -> Iterator[str]:
    """Yield a line for each step that was undone or was to be, then what is owed and how it is done."""
    for found in state.undoing.values():
        step = found.step.undoes
        if found.status == "completed":
            yield f"{step}: undone ({facts.details(found)})"
        elif found.ended:
            yield f"{step}: not undone: {facts.sentence(found)}"
    if status(state) == "failed":
        yield "rollback_failed: not everything was undone"
    yield from owed(state)


def owed(state: RunState) -> Iterator[str]:
    """Yield what a run that nobody works on still owes, and the command that does it."""
    if state.ended is None or not owes(state):
        return
    yield debt(state)


def debt(state: RunState) -> str:
    """Say what a run owes that does not go on, and how it is done."""
    parts = []
    if owes_rollback(state):
        left = [
            found.step.undoes for found in state.undoing.values() if found.status in ("pending", "cancelled")
        ]
        parts.append(f"to undo {facts.names(left if state.rollback else undoable(state))}")
    cleanup = owed_cleanup(state)
    if cleanup:
        parts.append(f"to run {facts.names(cleanup)}")
    run = state.started.run if state.started else ""
    what = f"owed: {' and '.join(parts)}; " if parts else ""
    return f"{what}planrun finalize {run} {'does it' if parts else 'gives it an end'}"


def failed(state: RunState) -> str:
    """Name the steps that could not be undone; "" where there are none."""
    found = state.undoing.values()
    return facts.names([each.step.undoes for each in found if each.ended and each.status != "completed"])


def summary(state: RunState) -> str:
    """Return in a few words what was undone, for one value among others."""
    undone = [found.step.undoes for found in state.undoing.values() if found.status == "completed"]
    left = failed(state)
    parts = [
        f"undone: {facts.names(undone)}" if undone else "",
        f"rollback_failed: not undone: {left}" if left else "",
    ]
    return "; ".join([*filter(None, parts), *owed(state)])
