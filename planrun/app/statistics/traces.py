"""One run as statistics see it: when its steps ran and how they ended, folded from events without loading the plan."""

from __future__ import annotations

from planrun.clock import between
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_TOKENS = ("input_tokens", "output_tokens")


class StepTrace:
    """One step of a run; moments are stamps, durations seconds.

    `seconds`: of its attempts since it last became pending; `retries`: the attempts after the first one of these.
    `failures`: how often it had failed when a resume or retry ran it again. `gate`: how long it waited for somebody.
    `ran`: whether it came to an end of its own.
    """

    __slots__ = (
        "attempts",
        "ended",
        "failures",
        "gate",
        "opened",
        "reason",
        "seconds",
        "started",
        "status",
        "tokens",
        "usd",
    )

    def __init__(self) -> None:
        self.attempts = self.failures = 0
        self.seconds = self.gate = self.usd = 0.0
        self.tokens = 0
        self.started = self.ended = self.opened = ""
        self.status = "pending"
        self.reason = ""

    def reset(self) -> None:
        """Make it pending again, as a resume does; what it cost and that it failed stays."""
        self.failures += self.status == "failed"
        self.attempts, self.seconds, self.started, self.ended = 0, 0.0, "", ""
        self.status, self.reason = "pending", ""

    @property
    def ran(self) -> bool:
        """Whether it ran to an end of its own."""
        return self.attempts > 0 and self.status in ("completed", "failed")

    @property
    def retries(self) -> int:
        """How many attempts came after the first one."""
        return max(0, self.attempts - 1)

    @property
    def flaky(self) -> bool:
        """Whether it completed after a failed attempt."""
        return self.status == "completed" and self.reason == "flaky"


class Trace:
    """One run, folded event by event; what a newer planrun writes besides is passed over.

    `busy`: seconds in which a process worked on the run; `work`: seconds of all attempts together.
    """

    def __init__(self) -> None:
        self.run = self.started = self.verdict = ""
        self.plan: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.exit_code: int | None = None
        self.steps: dict[str, StepTrace] = {}
        self.busy = self.work = self.gate = 0.0
        self._asked = ""  # since when the whole plan waits
        self._since = self._last = ""  # the process that works on it: its first event, its last one

    def fold(self, events: Iterable[ev.Event]) -> Trace:
        """Fold all events and return the trace itself."""
        for event in events:
            found = _FOLDS.get(type(event))
            if isinstance(event, ev.RunStarted | ev.RunResumed):
                self._rest()
                self._since = event.at
            # What is answered while no process works on the run is no part of the time that it took.
            if not isinstance(event, ev.GateAnswered):
                self._last = event.at
            if found is not None:
                found(self, event)
        self._rest()
        return self

    def _rest(self) -> None:
        if self._since:
            self.busy += max(0.0, between(self._since, self._last))
        self._since = ""

    def _step(self, name: str) -> StepTrace:
        return self.steps.setdefault(name, StepTrace())

    def _run_started(self, event: ev.RunStarted) -> None:
        self.run, self.started, self.plan, self.options = event.run, event.at, event.plan, event.options

    def _run_resumed(self, event: ev.RunResumed) -> None:
        self.plan, self.options, self.verdict, self.exit_code = event.plan, event.options, "", None
        for name in event.rerun:
            self._step(name).reset()

    def _attempt_started(self, event: ev.AttemptStarted) -> None:
        step = self._step(event.step)
        step.attempts += 1
        step.started = step.started or event.at
        step.status = "running"

    def _attempt_ended(self, event: ev.AttemptEnded) -> None:
        step = self._step(event.step)
        step.seconds += event.duration
        self.work += event.duration
        step.tokens += int(sum(event.usage.get(name, 0) for name in _TOKENS))
        step.usd += event.usage.get("usd", 0.0)
        self._moved(step, event.step_status, event.step_reason or event.reason, event.at)

    def _step_moved(self, event: ev.StepMoved) -> None:
        self._moved(self._step(event.step), event.status, event.reason, event.at)

    def _step_restored(self, event: ev.StepRestored) -> None:
        self._moved(self._step(event.step), "completed", "cached", event.at)

    def _moved(self, step: StepTrace, status: str, reason: str, at: str) -> None:
        step.status, step.reason, step.ended = status, reason, at
        self._let_in(step, at)

    def _gate_opened(self, event: ev.GateOpened) -> None:
        if event.step:
            self._step(event.step).opened = event.at
        else:
            self._asked = event.at

    def _gate_answered(self, event: ev.GateAnswered) -> None:
        if event.step:
            self._let_in(self._step(event.step), event.at)
        elif self._asked:
            self.gate += max(0.0, between(self._asked, event.at))
            self._asked = ""

    def _let_in(self, step: StepTrace, at: str) -> None:
        if step.opened:
            waited = max(0.0, between(step.opened, at))
            step.gate += waited
            self.gate += waited
            step.opened = ""

    def _planning_ended(self, event: ev.PlanningEnded) -> None:
        if event.plan:
            self.plan = event.plan

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.verdict, self.exit_code = event.verdict, event.exit_code

    @property
    def speedup(self) -> float | None:
        """How many times longer its steps would have taken one after the other; None where nothing took time."""
        return self.work / self.busy if self.busy and self.work else None


_FOLDS: dict[type[ev.Event], Callable[[Trace, Any], None]] = {
    ev.RunStarted: Trace._run_started,
    ev.RunResumed: Trace._run_resumed,
    ev.AttemptStarted: Trace._attempt_started,
    ev.AttemptEnded: Trace._attempt_ended,
    ev.StepMoved: Trace._step_moved,
    ev.StepRestored: Trace._step_restored,
    ev.GateOpened: Trace._gate_opened,
    ev.GateAnswered: Trace._gate_answered,
    ev.PlanningEnded: Trace._planning_ended,
    ev.RunEnded: Trace._run_ended,
}
