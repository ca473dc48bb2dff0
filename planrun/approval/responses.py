"""Convert a reply to the gates of a run, active or not, to events."""

from __future__ import annotations

import os

from planrun.approval.answers import answer_of_text, answer_of_value, asking_step, parted
from planrun.errors import InvalidInput
from planrun.model import events as ev
from planrun.model.progress import LEFT_OUT
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.reports.gates import open_gates
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

    Verb = Literal["approve", "reject", "decide", "skip"]


class Reply(Record):
    """The content of one command: `steps` are ids, for `decide` texts `id=value`; `digest`: the reviewed one, or "".

    `values`: answers of `decide` as values, by step. They and the verb `skip`, which leaves steps out, come from the
    terminal of the run only.
    """

    verb: Verb
    steps: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    digest: str = ""
    values: Mapping[str, Any] = {}


def user_name() -> str:
    """Return the name of the user, as the system knows it."""
    import pwd  # only where a user answers

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def events_of(reply: Reply, state: RunState, at: str, via: str = "command") -> list[GateAnswered]:
    """Return the answers that a reply gives; raises InvalidInput with the open gates when it matches none.

    `via`: how the reply came, command or terminal.
    """
    if state.ended is not None:
        raise InvalidInput(
            f"the run {_run(state)} is finished: it ended {state.ended.verdict}; nothing waits"
        )
    digest = str(state.named.get("digest", ""))
    if reply.digest and reply.digest != digest:
        raise InvalidInput(f"what was reviewed has the digest {reply.digest}, this run has {digest}")
    fields = {"via": via, "by": reply.by}
    if reply.reason:
        fields["reason"] = reply.reason
    found = _WORDS[reply.verb](reply, state)
    if reply.verb != "decide":
        fields["digest"] = digest
    return [ev.GateAnswered(at=at, step=step, answer=answer, **fields) for step, answer in found.items()]


def waiting(state: RunState) -> str:
    """Return the open gates and the command that answers each; a clause for the end of a message."""
    gates = open_gates(state)
    if not gates:
        return "no gate is open"
    run = _run(state)
    return "; ".join([_gate_text(run, gate) for gate in gates])


def _gate_text(run: str, gate: GateOpened) -> str:
    if not gate.step:
        return f"the plan waits for an approval: planrun approve {run}"
    if gate.kind == "approval":
        return f'"{gate.step}" waits for an approval: planrun approve {run} {gate.step}'
    if gate.kind == "ask" and gate.schema is None:
        return f'"{gate.step}" waits for yes or no: planrun decide {run} {gate.step}=yes'
    return f'"{gate.step}" waits for an answer: planrun decide {run} {gate.step}=VALUE'


def _approved(reply: Reply, state: RunState) -> dict[str, Any]:
    found: dict[str, Any] = {name: _answer(reply, state, name) for name in reply.steps}
    for name in reply.skip:
        if name in found:
            raise InvalidInput(f'the step "{name}" is both approved and skipped; choose one')
        found |= _left_out(name, state)
    if reply.steps:
        return found
    asked = [gate.step for gate in open_gates(state) if gate.kind == "approval"]
    if not asked and not reply.skip:
        raise InvalidInput(f"no approval is asked for in the run {_run(state)}: {waiting(state)}")
    # Record the answer for the waiting steps, too, so that no report shows them as waiting.
    return {**dict.fromkeys(["", *asked], "approved"), **found} if asked else found


def _left_out(name: str, state: RunState) -> dict[str, Any]:
    step = _step(state, name)
    if step.ended or step.status == "running":
        raise InvalidInput(f'the step "{name}" cannot be left out: it is {step.status}')
    return {name: LEFT_OUT}


def _skipped(reply: Reply, state: RunState) -> dict[str, Any]:
    return {name: answer for step in reply.steps for name, answer in _left_out(step, state).items()}


def _rejected(reply: Reply, state: RunState) -> dict[str, Any]:
    gates = open_gates(state)
    if not reply.steps:
        if not gates:
            raise InvalidInput(f"the run {_run(state)} asks nothing now: {waiting(state)}")
        if gates[0].step and len(gates) > 1:
            raise InvalidInput(f"name the step that is rejected; {waiting(state)}")
        if not gates[0].step:
            return {"": "rejected"}
    return {name: _answer(reply, state, name) for name in reply.steps or (gates[0].step,)}


def _answer(reply: Reply, state: RunState, name: str) -> Any:
    step = _step(state, name)
    opened = step.asked
    if opened is None:
        raise InvalidInput(f"{_why_not(step)}: {waiting(state)}")
    if opened.kind == "approval":
        return "approved" if reply.verb == "approve" else "rejected"
    if opened.kind == "ask" and opened.schema is None:
        return reply.verb == "approve"
    raise InvalidInput(f"the question does not take yes or no; {_gate_text(_run(state), opened)}")


def _decided(reply: Reply, state: RunState) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, answer in _answers(reply, state):
        step = state.steps[name]
        asks = step.step.action.asks
        gate = step.after or (step.gate if asks else None)
        if gate is None and not asks:  # what becomes of a failure is asked after it
            raise InvalidInput(f"{_why_not(step)}: {waiting(state)}")
        before = gate.answered if gate else None
        if step.ended or step.status == "running" or (before is not None and before.answer != answer):
            raise InvalidInput(f"{_why_not(step)}: {waiting(state)}")
        if name in result and result[name] != answer:
            raise InvalidInput(
                f'the step "{name}" is answered in two ways: {show(result[name])} and {show(answer)}'
            )
        result[name] = answer
    return result


def _answers(reply: Reply, state: RunState) -> list[tuple[str, Any]]:
    """Return the checked answers of a reply, each with its step; raises InvalidInput."""
    found = []
    try:
        for text in reply.steps:
            name, value = parted(state.plan, text)
            found.append((name, answer_of_text(asking_step(state.plan, name), value)))
        for name, value in reply.values.items():
            found.append((name, answer_of_value(asking_step(state.plan, name), value)))
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    return found


def _step(state: RunState, name: str) -> StepState:
    found = state.steps.get(name)
    if found is None:
        hint = did_you_mean(name, state.steps)
        raise InvalidInput(f'no step "{name}" in the run {_run(state)}; {hint or waiting(state)}')
    return found


def _why_not(step: StepState) -> str:
    gate = step.gate
    if gate is not None and gate.answered is not None:
        by = f" by {gate.answered.by}" if gate.answered.by else ""
        return f'the step "{step.step.id}" was answered already{by}, with {show(gate.answered.answer)}'
    reason = f" ({step.reason})" if step.reason else ""
    return f'the step "{step.step.id}" does not wait for an answer: it is {step.status}{reason}'


def _run(state: RunState) -> str:
    return state.started.run if state.started else ""


_WORDS = {"approve": _approved, "reject": _rejected, "decide": _decided, "skip": _skipped}
