"""The state of a step: its gate, its attempts, and the values that expressions can read."""

from __future__ import annotations

from planrun.model import events as ev
from planrun.model.groups import chain, fan_in
from planrun.model.lifecycle import ENDED, move_step
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Step, Text
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
        step = state.steps[event.step]
        if event.kind == "failure":  # it waits already
            step.reason = "decision"
            step.after = Gate(opened=event)
        else:
            if step.reason not in (PATCH_WAITS, PLAN_WAITS):  # else it waits already
                step.status = move_step(event.step, step.status, "waiting")
            step.reason = "approval" if event.kind == "approval" else "decision"
            # An answer that came before the question holds for it; one to an earlier question was not good enough.
            early = step.gate.answered if step.gate and step.gate.opened is None else None
            step.gate = Gate(opened=event, answered=early)
    else:
        step = state.steps[event.step]
        if step.after and step.after.answered is None:
            step.after = step.after.but(answered=event)
        else:
            step.gate = (step.gate or Gate()).but(answered=event)


def names_of(state: RunState, step: Step) -> dict[str, Any]:
    """Return `params`, `steps`, `matrix` and `item` as expressions of a member read them.

    A group of which it waits for the instance of its own name stands for that instance.
    """
    found = _names_of(state, step)
    group = state.steps[step.group].step if step.group else None
    for on, _ in group.grouping.same if group and group.kind == "group" else ():
        name = on.rpartition("/")[2]
        found["steps"][name] = found["steps"][f"{name}[{step.instance}]"]
    return found


def _names_of(state: RunState, step: Step) -> dict[str, Any]:
    """Return `params`, `steps`, `matrix` and `item` as expressions of a member read them.

    `matrix` and `item` are those of the member itself or of the nearest group around it that has them; inside another
    plan its own parameters and steps are read, and nothing from outside.
    """
    found: dict[str, Any] = {"params": state.params, "steps": StepValues(state)}
    if step.matrix:
        found["matrix"] = step.matrix
    if step.item:
        found["item"] = step.item[0]
    for name in chain(state, step.id):
        group = state.steps[name]
        if group.step.kind == "group" and group.step.grouping.form == "uses":
            return {**found, **names_within(state, name)}
        if group.step.matrix:
            found.setdefault("matrix", group.step.matrix)
        if group.step.item:
            found.setdefault("item", group.step.item[0])
    return found


def plans_around(
    state: RunState, step: Step, fixed: Mapping[str, Any]
) -> Iterator[tuple[tuple[Text, ...], dict[str, Text], dict[str, Any]]]:
    """Yield what the plans around a step set for all their steps: files, variables, and the names that these read.

    The plan that is run comes first, then those that are used, the innermost last.
    """
    plan = state.plan
    yield plan.env_file, plan.env, {**fixed, "params": state.params}
    for name in reversed(list(chain(state, step.id))):
        group = state.steps[name].step
        if group.kind == "group" and group.grouping.form == "uses":
            action = group.grouping
            yield action.env_file, action.env, {**fixed, **names_within(state, name)}


def names_within(state: RunState, group: str) -> dict[str, Any]:
    """Return `params` and `steps` as expressions of another plan read them, which is a group here."""
    opened = state.steps[group].opened
    return {"params": opened.params if opened else {}, "steps": StepValues(state, group)}


PATCH = "patch:"
"""How the fingerprint of an attempt begins that applies the patch of an agent."""
PATCH_WAITS = "patch"
"""The reason of a step whose agent has ended, and whose patch is to be applied."""
PLAN_WAITS = "plan"
"""The reason of a step whose agent proposes a plan."""
AT_GATE = ("approval", "decision")  # reasons of a step that waits at a gate


class AttemptState:
    """One attempt of a step, as far as it got."""

    __slots__ = ("ended", "n", "started")

    def __init__(self, started: ev.AttemptStarted) -> None:
        self.n = started.n
        self.started = started
        self.ended: ev.AttemptEnded | None = None

    @property
    def status(self) -> str:
        """`running` until the attempt has an end."""
        return self.ended.status if self.ended else "running"


def _is_unstarted(end: ev.AttemptEnded) -> bool:
    """Return whether an attempt ended without having started a process.

    When records cannot be written, what waits ends as what runs does; only what has run took time.
    """
    if end.reason == "records":
        return end.exit_code is None and not end.duration
    return end.reason in ("refused", "spawn")


class StepState:
    """The state of one step; `step` is its plan."""

    __slots__ = (
        "after", "anew", "attempts", "before", "ended_at", "gate", "held", "message", "opened", "outputs", "reason",
        "restored", "resumed", "rule", "status", "step", "undone"
    )  # fmt: skip

    def __init__(self, step: Step) -> None:
        self.step = step
        self.attempts: list[AttemptState] = []
        self.gate: Gate | None = None  # before it starts
        self.anew = 0  # nothing that this many first attempts made is gone on with
        self.reset()

    def begin_anew(self) -> None:
        """Discard what its attempts left to go on with, and with it the answer about that."""
        if self.attempts:
            self.anew, self.gate = len(self.attempts), None

    def reset(self, *, is_lost: bool = False, is_round: bool = False) -> None:
        """Make it pending again; what its earlier attempts left is evidence and stays.

        So does an approval, which is for this run of this plan; a question is asked again, unless the attempt that
        was to record its answer `is_lost`: then the answer stays, so that a no cannot become a yes. `is_round`: the run
        goes on by itself, so that a step that completes now after it failed is flaky.
        """
        if self.gate and self.step.action.asks and not is_lost:
            self.gate = None
        self.after: Gate | None = None  # what is to become of its failure
        self.opened: ev.StepOpened | None = None  # what waits for that may go on while it does
        self.restored: ev.StepRestored | None = None  # an earlier result that was used again
        self.held = ""  # who has the lock that it waits for, or waited for
        self.status = "pending"
        self.reason = ""
        self.message = ""
        self.rule = ""  # of the policy that denied it
        self.undone = ""  # how undoing it went: running, completed, failed; empty: not started
        self.ended_at = ""
        self.outputs: dict[str, Any] = {}
        self.before = len(self.attempts)
        if not is_round:
            self.resumed = self.before  # attempts before the last resume

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED

    @property
    def is_spent(self) -> bool:
        """Whether it is not idempotent and an attempt of it started a process, so that only `retry` repeats it."""
        if self.step.idempotent or self.undone == "completed":
            return False
        ends = [attempt.ended for attempt in self.attempts]
        return any(end is None or not _is_unstarted(end) for end in ends)

    @property
    def at_gate(self) -> bool:
        """Whether it waits at a gate."""
        return self.status == "waiting" and self.reason in AT_GATE

    @property
    def asked(self) -> ev.GateOpened | None:
        """What it waits for an answer to."""
        gate = self.after or self.gate
        return gate.opened if gate and gate.answered is None and not self.ended else None

    @property
    def on_failure(self) -> str:
        """The effect of its failure, from the plan or from the user's answer."""
        if self.step.on_failure != "ask":
            return self.step.on_failure
        answered = self.after.answered if self.after else None
        return str(answered.answer) if answered else "block"

    @property
    def flaky(self) -> bool:
        """Whether it completed after a failed attempt, without a resume in between."""
        return self.status == "completed" and any(
            attempt.ended is not None and attempt.ended.status == "failed"
            for attempt in self.attempts[self.resumed :]
        )

    @property
    def tries(self) -> list[AttemptState]:
        """The attempts since it last became pending: all of them, unless the run was resumed."""
        return self.attempts[self.before :] if self.before else self.attempts

    @property
    def duration(self) -> float:
        """Seconds spent in attempts that ended."""
        return sum(attempt.ended.duration for attempt in self.attempts if attempt.ended)

    @property
    def patched(self) -> AttemptState | None:
        """The attempt whose patch waits to be applied, or the application of whose patch was cut off."""
        for attempt in reversed(self.attempts[self.anew :]):
            ended = attempt.ended
            if ended is not None and ended.status == "completed":
                return attempt if ended.patch and ended.step_status == "waiting" else None
            if ended is None or ended.status not in ("lost", "cancelled"):
                return None
            if not attempt.started.fingerprint.startswith(PATCH):
                return None
        return None

    @property
    def patch(self) -> dict[str, Any] | None:
        """The patch of an agent that waits to be applied, or whose application was cut off."""
        made = self.patched
        return made.ended.patch if made is not None and made.ended is not None else None

    @property
    def is_applying(self) -> bool:
        """Whether its last attempt applied the patch of an agent."""
        return bool(self.attempts) and self.attempts[-1].started.fingerprint.startswith(PATCH)

    @property
    def proposed(self) -> dict[str, Any] | None:
        """The plan that an agent in plan mode proposed, and has not gone on with."""
        for attempt in reversed(self.attempts[self.anew :]):
            ended = attempt.ended
            if ended is None or ended.status not in ("lost", "cancelled"):
                return None
            if ended.proposed:
                return ended.proposed
        return None

    @property
    def exit_code(self) -> int | None:
        """The last attempt's exit code."""
        last = self.attempts[-1].ended if self.attempts else None
        return last.exit_code if last else None

    @property
    def error(self) -> dict[str, str] | None:
        """Class, rule and message of the last attempt's failure."""
        last = self.attempts[-1].ended if self.attempts else None
        return last.error if last else None


class StepStates(dict[str, StepState]):
    """The steps of a run by id; under its own id also what undoes one, which an iteration over all steps leaves out."""

    def __init__(self, undoing: dict[str, StepState]) -> None:
        super().__init__()
        self._undoing = undoing

    def __missing__(self, name: str) -> StepState:
        return self._undoing[name]


class RunValues(dict[str, "Any"]):
    """`run` of expressions of `finally` steps: `status` and `failed` besides what the run is fixed to."""

    def __init__(self, state: RunState, fixed: Mapping[str, Any]) -> None:
        super().__init__(fixed)
        self._state = state

    def __contains__(self, name: object) -> bool:
        return name in ("status", "failed") or super().__contains__(name)

    def __missing__(self, name: str) -> Any:
        found = self._state.verdict("steps")
        return found if name == "status" else found == "failed"


class StepValues(dict[str, "dict[str, Any]"]):
    """`steps.<id>` of expressions as it stands when it is read; nothing is copied for steps that no expression reads.

    `within`: the group whose names are read, "" for those of the plan itself.
    """

    def __init__(self, state: RunState, within: str = "") -> None:
        super().__init__()
        self._state = state
        self._before = f"{within}/" if within else ""

    def __contains__(self, step: object) -> bool:
        return f"{self._before}{step}" in self._state.steps

    def __missing__(self, step: str) -> dict[str, Any]:
        found = self._state.steps[f"{self._before}{step}"]
        values: dict[str, Any] = {
            "status": found.status,
            "outputs": self._state.outputs_of(found.step.id) if self._state.replaced else found.outputs,
            "exit_code": found.exit_code,
            "attempts": len(found.attempts),
        }
        if found.step.kind == "group":
            values |= fan_in(self._state, found.step)
        return values
