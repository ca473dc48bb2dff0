"""What is known of one step of a run, and of each of its attempts; written by the folds of the run's state alone."""

from __future__ import annotations

from planrun.model.groups import fan_in
from planrun.model.lifecycle import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model import events as ev
    from planrun.model.gates import Gate
    from planrun.model.plan import Step
    from planrun.model.state import RunState

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


class StepState:
    """What is known of one step; `step` is its plan."""

    __slots__ = (
        "after", "attempts", "before", "ended_at", "gate", "held", "message", "opened", "outputs", "reason", "restored",
        "rule", "status", "step", "undone"
    )  # fmt: skip

    def __init__(self, step: Step) -> None:
        self.step = step
        self.attempts: list[AttemptState] = []
        self.gate: Gate | None = None  # before it starts
        self.reset()

    def reset(self, *, is_lost: bool = False) -> None:
        """Make it pending again; what its earlier attempts left is evidence and stays.

        So does an approval, which is for this run of this plan; a question is asked again, unless the attempt that
        was to record its answer `is_lost`: then the answer stays, so that a no cannot become a yes.
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
        return any(end is None or end.reason not in ("refused", "spawn", "records") for end in ends)

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
        """What its failure means: as the plan says, or as the user answered."""
        if self.step.on_failure != "ask":
            return self.step.on_failure
        answered = self.after.answered if self.after else None
        return str(answered.answer) if answered else "block"

    @property
    def flaky(self) -> bool:
        """Whether it completed after a failed attempt, without a resume in between."""
        return self.status == "completed" and any(
            attempt.ended is not None and attempt.ended.status == "failed" for attempt in self.tries
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
            "outputs": found.outputs,
            "exit_code": found.exit_code,
            "attempts": len(found.attempts),
        }
        if found.step.kind == "group":
            values |= fan_in(self._state, found.step)
        return values
