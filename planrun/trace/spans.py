"""From the ledger of a run to its spans: one for the run, each step, each attempt, agent, tool call and model call.

A run that is resumed has a span for each session: from its start, or a resume, to where it ended, was paused or was
killed. All are in one trace; a later one links to the one before. A step has a span in each session in which it
ran, a member of a group below its group. Names and attributes are those of OpenTelemetry's conventions for CI/CD
(`cicd.*`) and generative AI (`gen_ai.*`); what they have no name for begins with `planrun.`.
"""

from __future__ import annotations

from planrun.model import events as ev
from planrun.trace.agents import AgentSpans, attempt_error, outcome, run_result, step_error, step_result
from planrun.trace.span import Span, Trace, attempt_span, nanoseconds, session_span, step_span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState

    Session = ev.RunStarted | ev.RunResumed | ev.CleanupResumed

_ENDS = ("failed", "completed", "skipped", "blocked", "cancelled")
_TYPES = ("build", "test", "deploy")  # of tasks; a tag of the same name says that a step is one
_RESULT, _TASK_RESULT = "cicd.pipeline.result", "cicd.pipeline.task.run.result"


def trace_of(state: RunState, events: Iterable[ev.Event], *, over: bool = True) -> Trace:
    """Return the trace of a run; `over`: nothing of it runs any more, so what has no end was cut off."""
    builder = _Builder(state)
    for event in events:
        builder.take(event)
    builder.close(over=over)
    trace = builder.trace
    started = state.started
    assert started is not None
    found = {
        "service.name": "planrun",
        "service.version": started.planrun,
        "cicd.pipeline.name": state.plan.name,
        "cicd.pipeline.run.id": started.run,
        "host.name": started.host,
        "vcs.ref.head.name": started.context.get("ref", ""),
        "vcs.ref.head.revision": started.context.get("sha", ""),
        "planrun.plan.digest": state.plan.digest,
    }
    return Trace(
        trace=trace["id"],
        flags=trace.get("flags", "01"),
        state=trace.get("state", ""),
        resource={name: value for name, value in found.items() if value},
        spans=tuple(builder.spans()),
    )


class _Builder:
    """The spans of a run while its events are read in their order."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.trace: Mapping[str, Any] = {"id": "0" * 32}
        self.run = ""
        self.number = 0  # of the session
        self._sessions: list[Span] = []
        self._steps: dict[tuple[str, int], Span] = {}
        self._attempts: dict[tuple[str, int], Span] = {}
        self._agents = AgentSpans(self)
        self._last = 0
        self._ended: ev.RunEnded | None = None

    @property
    def session(self) -> str:
        """The id of the span of the current session."""
        return session_span(self.run, self.number)

    def take(self, event: ev.Event) -> None:
        """Take the next event."""
        at = nanoseconds(event.at)
        if isinstance(event, ev.RunStarted | ev.RunResumed | ev.CleanupResumed):
            self._begin(event, at)
        elif isinstance(event, ev.AttemptStarted):
            parent = self._step(event.step, at)
            earlier = [n for name, n in self._attempts if name == event.step]
            links = [(self.trace["id"], attempt_span(self.run, event.step, n)) for n in earlier[-1:]]
            self._attempts[event.step, event.n] = Span(
                name=f"{event.step} attempt {event.n}",
                span=attempt_span(self.run, event.step, event.n),
                parent=parent.span,
                start=at,
                attributes={"planrun.step.id": event.step, "planrun.attempt": event.n},
                links=tuple(links),
            )
        elif isinstance(event, ev.AttemptEnded):
            self._attempt_ended(event, at)
        elif isinstance(event, ev.StepMoved):
            if event.status in _ENDS:
                self._step(event.step, at)
                self._end_step(event.step, at, (event.status, event.reason), {})
        elif isinstance(event, ev.StepRestored):
            self._step(event.step, at)
            self._end_step(event.step, at, ("completed", "restored"), {"planrun.cache.source": event.source})
        elif isinstance(event, ev.StepOpened):
            self._step(event.step, at)
        elif isinstance(event, ev.GateOpened | ev.GateAnswered):
            self._gate(event, at)
        elif isinstance(event, ev.PlanMoved):
            if event.status == "paused":
                self._end_session(at, "paused", "paused", event.exit_code)
        elif isinstance(event, ev.RunEnded):
            self._ended = event
            self._end_session(at, run_result(event.verdict, event.exit_code), event.verdict, event.exit_code)
        else:
            self._agents.take(event, at)
        self._last = max(self._last, at)

    def close(self, *, over: bool) -> None:
        """End what was cut off, if nothing runs any more."""
        if over and self._sessions and not self._sessions[-1].end:
            self._cut_off(self._last)

    def spans(self) -> Iterable[Span]:
        """Return all spans."""
        yield from self._sessions
        yield from self._steps.values()
        yield from self._attempts.values()
        yield from self._agents.spans()

    def _begin(self, event: Session, at: int) -> None:
        if self._sessions and not self._sessions[-1].end:
            self._cut_off(self._last)
        self.trace = event.options.get("trace") or self.trace
        links = []
        if isinstance(event, ev.RunStarted):
            self.run = event.run
            if self.trace["id"] == "0" * 32:  # of a version that recorded none
                self.trace = {"id": event.run.encode().hex()[-32:].rjust(32, "1")}
        else:
            links.append((self.trace["id"], self.session))
            self.number += 1
        if link := self.trace.get("link", ""):
            links.append((link[3:35], link[36:52]))
        action = {ev.RunStarted: "RUN", ev.RunResumed: "RESUME", ev.CleanupResumed: "FINALIZE"}[type(event)]
        self._sessions.append(
            Span(
                name=f"{action} {self.state.plan.name}",
                kind="server",
                span=self.session,
                parent=self.trace.get("parent", ""),
                start=at,
                attributes={
                    "cicd.pipeline.action.name": action,
                    "cicd.pipeline.name": self.state.plan.name,
                    "cicd.pipeline.run.id": self.run,
                },
                links=tuple(links),
            )
        )

    def _end_session(self, at: int, result: str, verdict: str, exit_code: int) -> None:
        if not self._sessions or self._sessions[-1].end:
            return
        span = self._sessions[-1]
        found = outcome(result, verdict, "", _RESULT)
        attributes = {
            **span.attributes,
            **found.pop("attributes"),
            "planrun.verdict": verdict,
            "process.exit.code": exit_code,
        }
        self._sessions[-1] = span.but(end=max(at, span.start), attributes=attributes, **found)

    def _cut_off(self, at: int) -> None:
        """End the session of a process that was killed, or that waits for an approval without one."""
        for table in (self._attempts, self._steps):
            for key, span in table.items():
                if not span.end:
                    key_of = {"cicd.pipeline.task.run.result": "error", "error.type": "lost"}
                    table[key] = span.but(
                        end=max(at, span.start), status="error", attributes={**span.attributes, **key_of}
                    )
        self._agents.cut_off(at)
        waiting = self.state.status == "awaiting_approval"
        result = "paused" if waiting else "error"
        self._end_session(at, result, "waiting" if waiting else "lost", 5 if waiting else 137)

    def _known(self, step: str) -> StepState | None:
        found = self.state.steps.get(step) or self.state.dropped.get(step) or self.state.undoing.get(step)
        if found is None and step.startswith("undo:"):
            found = self.state.undoing.get(step.removeprefix("undo:"))
        return found

    def _step(self, step: str, at: int) -> Span:
        """Return the span of a step in this session, which begins now if it has none."""
        key = (step, self.number)
        if key in self._steps:
            return self._steps[key]
        known = self._known(step)
        group = known.step.group if known else ""
        parent = self._step(group, at).span if group else self.session
        earlier = [number for name, number in self._steps if name == step]
        links = [(self.trace["id"], step_span(self.run, step, number)) for number in earlier[-1:]]
        attributes: dict[str, Any] = {
            "cicd.pipeline.task.name": known.step.label if known else step,
            "cicd.pipeline.task.run.id": f"{self.run}/{step}",
            "planrun.step.id": step,
        }
        if known:
            attributes["planrun.step.risk"] = known.step.risk
            types = [name for name in _TYPES if name in known.step.tags]
            attributes |= {"cicd.pipeline.task.type": types[0]} if types else {}
        span = Span(
            name=step, span=step_span(self.run, step, self.number), parent=parent, start=at,
            attributes=attributes, links=tuple(links),
        )  # fmt: skip
        self._steps[key] = span
        return span

    def _attempt_ended(self, event: ev.AttemptEnded, at: int) -> None:
        span = self._attempts.get((event.step, event.n))
        if span is None:
            return
        kind, message = attempt_error(event)
        found = outcome(step_result(event.status, event.reason), kind, message, _TASK_RESULT)
        attributes = {**span.attributes, **found.pop("attributes"), "planrun.reason": event.reason}
        if event.exit_code is not None:
            attributes["process.exit.code"] = event.exit_code
        if event.delay:
            attributes["planrun.retry.delay"] = event.delay
        if not span.end:  # one that was cut off has its end, where its process was killed
            self._attempts[event.step, event.n] = span.but(
                end=max(at, span.start), attributes=attributes, **found
            )
        if event.step_status in _ENDS and event.status != "lost":
            self._end_step(event.step, at, (event.step_status, event.step_reason), {})

    def _end_step(self, step: str, at: int, end: tuple[str, str], more: dict[str, Any]) -> None:
        span = self._step(step, at)
        status, reason = end
        known = self._known(step)
        kind, message = step_error(known) if known and status == "failed" else (reason, "")
        found = outcome(step_result(status, reason), kind or reason, message, _TASK_RESULT)
        attributes = {**span.attributes, **found.pop("attributes"), **more, "planrun.status": status}
        if reason:
            attributes["planrun.reason"] = reason
        self._steps[step, self.number] = span.but(end=max(at, span.start), attributes=attributes, **found)

    def _gate(self, event: ev.GateOpened | ev.GateAnswered, at: int) -> None:
        if isinstance(event, ev.GateOpened):
            noted = (at, "gate opened", {"planrun.gate.kind": event.kind})
        else:
            noted = (at, "gate answered", {"planrun.gate.via": event.via})
        if event.step:
            span = self._step(event.step, at)
            self._steps[event.step, self.number] = span.but(events=(*span.events, noted))
        elif self._sessions:
            self._sessions[-1] = self._sessions[-1].but(events=(*self._sessions[-1].events, noted))
