"""What is asked and answered in a run, and what that makes of its state; loaded with the first gate."""

from __future__ import annotations

from planrun.model import events as ev
from planrun.model.lifecycle import move_step
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.state import RunState


LEFT_OUT = "skipped"
"""The answer to a gate that leaves its step out."""


class Gate(Record):
    """The state of a gate; `opened` is None where the answer was known before the gate was reached."""

    opened: ev.GateOpened | None = None
    answered: ev.GateAnswered | None = None


def fold_gate(state: RunState, event: ev.GateOpened | ev.GateAnswered) -> None:
    """Take a gate's event into the state of a run; called by `RunState.apply` alone."""
    if not event.step:
        before = state.gate or Gate()
        state.gate = Gate(opened=event) if isinstance(event, ev.GateOpened) else before.but(answered=event)
    elif isinstance(event, ev.GateOpened):
        _opened(state, event)
    else:
        _answered(state, event)


def _opened(state: RunState, event: ev.GateOpened) -> None:
    step = state.steps[event.step]
    if event.kind == "failure":  # it waits already
        step.reason = "decision"
        step.after = Gate(opened=event)
        return
    step.status = move_step(event.step, step.status, "waiting")
    step.reason = "approval" if event.kind == "approval" else "decision"
    # An answer that came before the question holds for it; one to an earlier question was not good enough.
    early = step.gate.answered if step.gate and step.gate.opened is None else None
    step.gate = Gate(opened=event, answered=early)


def _answered(state: RunState, event: ev.GateAnswered) -> None:
    step = state.steps[event.step]
    if step.after and step.after.answered is None:
        step.after = step.after.but(answered=event)
    else:
        step.gate = (step.gate or Gate()).but(answered=event)
