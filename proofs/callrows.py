"""Everything that a Messages API can do to a call of a model, and what has to come of it."""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.messages import Fault, Reply, Tokens, broken, draft, refuse, say, status, think, use

if TYPE_CHECKING:
    from collections.abc import Callable

FAR = 3600
"""Seconds that no call waits."""
TIMES = 3
"""Attempts of a call that is repeated to its end."""
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
GRAMMAR = (
    "output_config.format.schema: The compiled grammar is too large, which would cause performance issues."
)


@dataclass(frozen=True)
class Row:
    """What the service does, one entry for each attempt, and how the call has to end.

    `rule`: the beginning of the answer's. `told`: what its message has to hold. `request`: fields that are changed.
    `text`: of the answer, where it is looked at.
    """

    name: str
    script: list[Any] | Callable[[], list[Any]]
    ending: str
    rule: str
    told: str = ""
    request: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    def replies(self) -> list[Any]:
        """Return the script; what depends on the time of day is made when it is due."""
        return self.script() if callable(self.script) else list(self.script)


def _in_a_second() -> list[Any]:
    """Return a date from which on the service wants to be asked again."""
    return [status(429, retry_after=email.utils.formatdate(time.time() + 1.5, usegmt=True)), "yes"]


def _always(name: str, reply: Any, ending: str, rule: str, times: int = TIMES) -> Row:
    return Row(f"{name}, to the end", [reply] * times, ending, rule)


def _once(name: str, reply: Any, told: str = "") -> Row:
    return Row(f"{name}, once", [reply, "yes"], "answered", "stop_reason:end_turn", told)


FINAL = (
    (400, "rejected", "invalid_request_error"),
    (401, "unauthorized", "authentication_error"),
    (402, "unpaid", "billing_error"),
    (403, "unauthorized", "permission_error"),
    (404, "rejected", "not_found_error"),
    (413, "rejected", "request_too_large"),
    (422, "rejected", "invalid_request_error"),
)
TRANSIENT = (
    (429, "limited", "rate_limit_error"),
    (500, "unavailable", "api_error"),
    (504, "unavailable", "timeout_error"),
    (529, "overloaded", "overloaded_error"),
)
STATUSES = (
    *[
        Row(f"{code}", [status(code)], ending, f"type:{kind}", f"{code} {kind}")
        for code, ending, kind in FINAL
    ],
    *[_always(f"{code}", status(code), ending, f"type:{kind}") for code, ending, kind in TRANSIENT],
    *[_once(f"{code}", status(code)) for code, _, _ in TRANSIENT],
    _always("503 without a type", status(503, "odd_error"), "unavailable", "status:503"),
    Row("418", [status(418, "odd_error")], "rejected", "status:418"),
    _once("418 with x-should-retry: true", status(418, "odd_error", x_should_retry="true")),
    Row("400 with x-should-retry: true", [status(400, x_should_retry="true")], "rejected", "type:"),
    Row("529 with x-should-retry: false", [status(529, x_should_retry="false")], "overloaded", "type:"),
    Row("a type that its status denies", [status(400, "billing_error")], "unpaid", "type:billing_error"),
    Row("307", [status(307, location="http://127.0.0.1:9/")], "rejected", "status:307", "does not follow"),
)
WAITS = (
    Row("429 with retry-after", [status(429, retry_after=1), "yes"], "answered", "stop_reason:end_turn"),
    Row("429 with retry-after-ms", [status(429, retry_after_ms=300), "yes"], "answered", "stop_reason:"),
    Row("429 with a date", _in_a_second, "answered", "stop_reason:end_turn"),
    Row("529 with retry-after", [status(529, retry_after=1), "yes"], "answered", "stop_reason:end_turn"),
    Row("429 with an hour", [status(429, retry_after=FAR)], "limited", "type:", "asks to wait 3600 s"),
    Row("529 with an hour", [status(529, retry_after=FAR)], "overloaded", "type:", "asks to wait 3600 s"),
)
CONTENT = (
    _always("HTML with 200", Fault("html"), "malformed", "content_type:text/html", 2),
    _once("HTML with 200", Fault("html")),
    _always("broken JSON", Fault("broken_json"), "malformed", "json", 2),
    _once("broken JSON", Fault("broken_json")),
    _always("missing fields", Fault("missing_fields"), "malformed", "message:incomplete", 2),
    _once("missing fields", Fault("missing_fields")),
    _always("an event that is no JSON", broken("bad_json"), "malformed", "json", 2),
    _once("an event that is no JSON", broken("bad_json")),
    _always("an empty answer", Reply(), "malformed", "text:empty", 2),
    Row("an unknown block", [Reply(blocks=({"type": "hologram"},))], "malformed", "content_block:hologram"),
    Row("an unknown stop", [say("x", stop_reason="moon_phase")], "malformed", "stop_reason:moon_phase"),
    Row("a pause", [say("x", stop_reason="pause_turn")], "malformed", "stop_reason:pause_turn"),
    Row("a stop word", [say("x", stop_reason="stop_sequence")], "malformed", "stop_reason:stop_sequence"),
    Row("a tool that nobody gave", [use(("run", {"a": 1}))], "malformed", "content_block:tool_use"),
)
STOPS = (
    Row("an answer", ["yes"], "answered", "stop_reason:end_turn"),
    Row("an answer after a thought", [think("hm", "yes").but(pings=3)], "answered", "stop_reason:end_turn"),
    Row("a draft", [draft([{"id": "a", "run": "make"}])], "answered", "stop_reason:end_turn"),
    Row("no JSON for a schema", ["one, I think"], "answered", "stop_reason:", request={"schema": SCHEMA}),
    Row("a refusal", [refuse("bio")], "refused", "stop_reason:refusal", "(bio)"),
    Row("a refusal in words", [refuse(blocks=say("I will not.").blocks)], "refused", "stop_reason:refusal"),
    Row("cut by max_tokens", ["yes " * 99], "truncated", "stop_reason:max_tokens", request={"max_tokens": 9}),
    Row(
        "a thought that is cut",
        [think("hm " * 99, "yes")],
        "truncated",
        "stop_reason:max_tokens",
        request={"max_tokens": 9},
    ),
    Row(
        "a full context",
        [say("x", stop_reason="model_context_window_exceeded")],
        "truncated",
        "stop_reason:model_context_window_exceeded",
    ),
    Row(
        "usage of the cache",
        [say("x", usage=Tokens(3, 4, 5000, 600))],
        "answered",
        "stop_reason:end_turn",
    ),
)
BREAKS = (
    *[_always(f"the end at {at}", broken("end", at), "truncated", "stream:") for at in ("start", "usage")],
    *[_always(f"the end at {at}", broken("end", at), "truncated", "stream:") for at in ("text", "blocks")],
    _always("the end at told", broken("end", "told"), "truncated", "stream:ended_early"),
    *[
        _always(f"{kind} at {at}", broken(kind, at), ending, "connection:")
        for kind in ("drop", "reset", "bad_chunk")
        for at, ending in (("start", "unavailable"), ("usage", "truncated"), ("text", "truncated"))
    ],
    *[
        _always(f"{kind} at head", broken(kind, "head"), "unavailable", "connection:")
        for kind in ("drop", "reset")
    ],
    *[_once(f"{kind} at text", broken(kind)) for kind in ("end", "drop", "reset")],
    _once("an overload in the stream", broken("error")),
    *[
        _always(f"{kind} in the stream", broken("error", error=kind), ending, f"type:{kind}")
        for _, ending, kind in TRANSIENT
    ],
    *[
        Row(f"{kind} in the stream", [broken("error", error=kind)], ending, f"type:{kind}")
        for _, ending, kind in FINAL[:5]
    ],
    _always(
        "an unknown error in the stream", broken("error", error="odd_error"), "unavailable", "status:200"
    ),
)
FEATURES = (
    Row(
        "a grammar that is too large",
        [status(400, message=GRAMMAR), '```json\n{"n": 1}\n```'],
        "answered",
        "stop_reason:end_turn, without:schema",
        "in the text",
        request={"schema": SCHEMA},
    ),
    Row(
        "a grammar that is too large, and no luck without",
        [status(400, message=GRAMMAR), status(400, message=GRAMMAR)],
        "rejected",
        "type:invalid_request_error, without:schema",
        request={"schema": SCHEMA},
    ),
    Row(
        "a model without effort",
        [status(400, message="This model does not support the effort parameter."), "yes"],
        "answered",
        "stop_reason:end_turn, without:effort",
        "effort is left out",
        request={"effort": "high"},
    ),
    Row(
        "a model without adaptive thinking",
        [status(400, message="adaptive thinking is not supported on this model"), "yes"],
        "answered",
        "stop_reason:end_turn, without:thinking",
        "thinking is left out",
    ),
)
SILENCE = (
    Row("silence before the answer", [broken("stall", "head")], "late", "process:late"),
    Row("silence in the answer", [broken("stall")], "late", "process:late"),
    Row("pings without end", [broken("trickle")], "late", "process:late"),
)
"""These end the process that calls; `FEATURES` change what it asks from then on."""
KINDS = {
    "statuses": STATUSES,
    "waits": WAITS,
    "content": CONTENT,
    "stops": STOPS,
    "breaks": BREAKS,
    "features": FEATURES,
    "silence": SILENCE,
}
