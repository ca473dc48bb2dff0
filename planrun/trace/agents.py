"""The spans of agents, of their calls of tools, of calls to models, and of plannings."""

from __future__ import annotations

from planrun.actions.tracing import tool_span
from planrun.model import events as ev
from planrun.trace.span import Span, attempt_span, named_span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    class Around(Protocol):
        """The run that the spans are part of."""

        run: str

        @property
        def session(self) -> str:
            """The id of the span of the current session."""

    from planrun.model.events import AttemptEnded
    from planrun.model.progress import StepState
    from planrun.trace.span import Status


_STEPS = {
    "completed": "success",
    "failed": "failure",
    "skipped": "skip",
    "blocked": "skip",
    "cancelled": "cancellation",
    "lost": "error",
}
_ERRORS = ("refused", "spawn", "lost", "records", "denied", "copy")
"""Reasons of failures in which no command said no."""
_RUNS = {
    "completed": "success",
    "partial": "success",
    "failed": "failure",
    "cancelled": "cancellation",
}


def step_result(status: str, reason: str) -> str:
    """Return the result of a step or an attempt: success, failure, error, timeout, cancellation or skip."""
    if status == "failed":
        if reason in ("timeout", "idle_timeout", "deadline"):
            return "timeout"
        return "error" if reason in _ERRORS else "failure"
    return _STEPS.get(status, status)


def run_result(verdict: str, exit_code: int) -> str:
    """Return the result of a run by its verdict; 124 is the exit code of a run that took too long."""
    return "timeout" if exit_code == 124 else _RUNS.get(verdict, "failure")


def span_status(result: str) -> Status:
    """Return the status of a span with a result."""
    return "error" if result in ("failure", "error", "timeout") else "unset"


def outcome(result: str, kind: str, message: str, key: str) -> dict[str, Any]:
    """Return the fields of a span with a result; `kind`: class of the error, `key`: the attribute of the result."""
    status = span_status(result)
    attributes: dict[str, Any] = {key: result}
    if status == "error":
        attributes["error.type"] = kind or "_OTHER"
    return {"status": status, "message": message if status == "error" else "", "attributes": attributes}


def attempt_error(ended: AttemptEnded) -> tuple[str, str]:
    """Return class and message of the failure of an attempt; the reason where its class is not known."""
    error = ended.error or {}
    kind = error.get("class", "")
    return (kind if kind not in ("", "unknown") else ended.reason), error.get("message", "")


def step_error(step: StepState) -> tuple[str, str]:
    """Return class and message of the failure of a step."""
    last = step.attempts[-1].ended if step.attempts else None
    if last is None or last.status == "completed":
        return step.reason, step.message
    kind, message = attempt_error(last)
    return kind, message or step.message


_RESULT = "planrun.result"
_PROVIDER = {"gen_ai.provider.name": "anthropic"}
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "usd": "planrun.usage.usd",
}


_INPUT = ("input_tokens", "cache_read_tokens", "cache_write_tokens")


class AgentSpans:
    """The spans of whatever a model has a part in."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._found: dict[tuple[str, ...], Span] = {}
        self._planning = ""  # the key of the one that is open

    def spans(self) -> Iterable[Span]:
        """Return all spans."""
        return self._found.values()

    def take(self, event: ev.Event, at: int) -> None:
        """Take the next event of a run."""
        handle = _TAKES.get(type(event))
        if handle:
            handle(self, event, at)

    def cut_off(self, at: int) -> None:
        """End what the end of a process cut off."""
        for key, span in self._found.items():
            if not span.end:
                attributes = {**span.attributes, "error.type": "lost"}
                self._found[key] = span.but(end=max(at, span.start), status="error", attributes=attributes)

    def _start(self, key: tuple[str, ...], span: Span) -> None:
        self._found[key] = span

    def _end(self, key: tuple[str, ...], at: int, found: dict[str, Any], more: dict[str, Any]) -> None:
        span = self._found.get(key)
        if span is not None and not span.end:
            attributes = {**span.attributes, **found.pop("attributes"), **more}
            self._found[key] = span.but(end=max(at, span.start), attributes=attributes, **found)

    def _agent_started(self, event: ev.AgentStarted, at: int) -> None:
        run = self._around.run
        parent = (
            named_span(run, "agent", event.parent) if event.parent else attempt_span(run, event.step, event.n)
        )
        self._start(
            ("agent", event.agent),
            Span(
                name=f"invoke_agent {event.agent_type}",
                span=named_span(run, "agent", event.agent),
                parent=parent,
                start=at,
                attributes={
                    "gen_ai.operation.name": "invoke_agent",
                    **_PROVIDER,
                    "gen_ai.agent.id": event.agent,
                    "gen_ai.agent.name": event.agent_type,
                    "gen_ai.request.model": event.model,
                    "planrun.step.id": event.step,
                },
            ),
        )

    def _agent_ended(self, event: ev.AgentEnded, at: int) -> None:
        result = {"completed": "success", "cancelled": "cancellation"}.get(event.status, "failure")
        found = outcome(result, event.reason, event.message, _RESULT)
        names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
        usage = {_USAGE[names[name]]: value for name, value in event.stats.items() if name in names}
        self._end(("agent", event.agent), at, found, usage)

    def _tool_called(self, event: ev.ToolCalled, at: int) -> None:
        run = self._around.run
        self._start(
            ("tool", event.agent, event.call),
            Span(
                name=f"execute_tool {event.name}",
                span=tool_span(run, event.agent, event.call),
                parent=named_span(run, "agent", event.agent),
                start=at,
                attributes={
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.name,
                    "gen_ai.tool.call.id": event.call,
                    "gen_ai.tool.type": "function",
                    "planrun.step.risk": event.risk,
                    "planrun.policy.answer": event.answer,
                },
            ),
        )

    def _tool_returned(self, event: ev.ToolReturned, at: int) -> None:
        result = {"done": "success", "denied": "skip", "unknown": "error"}.get(event.status, "failure")
        found = outcome(result, event.status, event.message, _RESULT)
        more = {} if event.exit_code is None else {"process.exit.code": event.exit_code}
        self._end(("tool", event.agent, event.call), at, found, more)

    def _asked(self, event: ev.ModelAsked, at: int) -> None:
        run = self._around.run
        parent = (
            named_span(run, "agent", event.agent)
            if event.agent
            else (self._found["planning", self._planning].span if self._planning else self._around.session)
        )
        self._start(
            ("model", str(event.call)),
            Span(
                name=f"chat {event.model}",
                kind="client",
                span=named_span(run, "model", str(event.call)),
                parent=parent,
                start=at,
                attributes={
                    "gen_ai.operation.name": "chat",
                    **_PROVIDER,
                    "gen_ai.request.model": event.model,
                    "planrun.purpose": event.purpose,
                },
            ),
        )

    def _repeated(self, event: ev.ModelRepeated, at: int) -> None:
        span = self._found.get(("model", str(event.call)))
        if span is not None:
            noted = (at, "retry", {"planrun.attempt": event.attempt, "planrun.message": event.message})
            self._found["model", str(event.call)] = span.but(events=(*span.events, noted))

    def _answered(self, event: ev.ModelAnswered, at: int) -> None:
        result = "success" if event.ending == "answered" else "failure"
        found = outcome(result, event.ending, event.message, _RESULT)
        more: dict[str, Any] = {_USAGE[name]: value for name, value in event.usage.items() if name in _USAGE}
        # By the conventions the tokens that were read from a cache or written to it are input as well.
        more[_USAGE["input_tokens"]] = sum(event.usage.get(name, 0) for name in _INPUT)
        more["gen_ai.response.finish_reasons"] = [event.ending]
        if event.model:
            more["gen_ai.response.model"] = event.model
        if event.replayed:
            more["planrun.replayed"] = True
        self._end(("model", str(event.call)), at, found, more)

    def _planning_started(self, event: ev.PlanningStarted, at: int) -> None:
        self._planning = f"{event.purpose}.{event.n}"
        self._start(
            ("planning", self._planning),
            Span(
                name=f"plan {event.purpose}",
                span=named_span(self._around.run, "planning", self._planning),
                parent=self._around.session,
                start=at,
                attributes={"gen_ai.operation.name": "plan", "planrun.steps": list(event.steps)},
            ),
        )

    def _planning_ended(self, event: ev.PlanningEnded, at: int) -> None:
        result = "success" if event.outcome == "revised" else "failure"
        found = outcome(result, event.outcome, event.message, _RESULT)
        self._end(("planning", self._planning), at, found, {"planrun.outcome": event.outcome})
        self._planning = ""


_TAKES: dict[type, Any] = {
    ev.AgentStarted: AgentSpans._agent_started,
    ev.AgentEnded: AgentSpans._agent_ended,
    ev.ToolCalled: AgentSpans._tool_called,
    ev.ToolReturned: AgentSpans._tool_returned,
    ev.ModelAsked: AgentSpans._asked,
    ev.ModelRepeated: AgentSpans._repeated,
    ev.ModelAnswered: AgentSpans._answered,
    ev.PlanningStarted: AgentSpans._planning_started,
    ev.PlanningEnded: AgentSpans._planning_ended,
}
