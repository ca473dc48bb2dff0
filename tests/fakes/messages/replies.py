"""What the fake model answers: blocks of a message, how it ended, how it is sent, and what goes wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planrun.llm import drafts
from tests.fakes.messages.counting import Tokens

PLACES = ("head", "start", "usage", "text", "blocks", "told")
"""Where a fault strikes: before the status line, before the first event, behind message_start (which tells the input),
in the middle of the text, behind the last block, behind message_delta (which tells the whole usage)."""
KINDS = {
    "status": "an HTTP error",
    "html": "200 with a page of a proxy",
    "broken_json": "200 with half a JSON message",
    "missing_fields": "200 with a message that lacks nearly everything",
    "end": "the stream ends properly, too early",
    "drop": "the connection is closed in the middle",
    "reset": "the connection is reset",
    "bad_json": "an event whose data is no JSON",
    "bad_chunk": "a chunk whose length is no number",
    "error": "an error event in the stream",
    "stall": "silence until the client leaves",
    "trickle": "pings without end",
    "flood": "text without end, until the client leaves",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""What the service says in `error.type` with each status."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    `at`: one of PLACES, for kinds that break a stream. `status`, `headers`: of an HTTP error. `error`: type of an
    error, by HTTP or in the stream.
    """

    kind: str
    at: str = "text"
    status: int = 0
    error: str = ""
    message: str = "a fault that the script asks for"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no fault; there are {', '.join(KINDS)}")
        if self.at not in PLACES:
            raise ValueError(f"{self.at!r} is no place of a fault; there are {', '.join(PLACES)}")


@dataclass(frozen=True)
class Reply:
    """One answer.

    `blocks`: content of the message as the API has it. `output`: output tokens that are told instead of counted ones.
    `usage`: the whole usage that is told, instead of the counted one. `piece`: characters of one delta.
    `first_byte`, `pace`: seconds before the status line, and before each event. `pings`: how many after message_start.
    `events`: sent one by one in place of all that a message consists of; bytes as they are.
    """

    blocks: tuple[Mapping[str, Any], ...] = ()
    stop_reason: str | None = "end_turn"
    stop_details: Mapping[str, Any] | None = None
    usage: Tokens | None = None
    piece: int = 48
    pings: int = 0
    first_byte: float = 0.0
    pace: float = 0.0
    fault: Fault | None = None
    events: tuple[Mapping[str, Any] | bytes, ...] = ()

    def but(self, **changes: Any) -> Reply:
        """Return the same reply with some fields changed."""
        return replace(self, **changes)


def say(text: str, **fields: Any) -> Reply:
    """Answer with one text."""
    return Reply(blocks=({"type": "text", "text": text},), **fields)


def answer(data: Any, **fields: Any) -> Reply:
    """Answer with data, as JSON text."""
    return say(json.dumps(data, ensure_ascii=False), **fields)


def step(id: str, run: str = "", **fields: Any) -> dict[str, Any]:  # noqa: A002 -- the name of the key
    """Return a step of a draft in which all keys stand; those not given are empty."""
    empty = _empty(drafts.STEPS.schema()["properties"]["steps"]["items"])
    return {**empty, "id": id, "title": fields.get("title", f"Step {id}"), "run": run, **fields}


def draft(
    steps: Iterable[Mapping[str, Any]] = (), analysis: str = "This is what is to be done.", **fields: Any
) -> dict[str, Any]:
    """Return a whole draft; steps need an `id` and get what they lack, `fields` are `infeasible` and `keep`."""
    empty = _empty(drafts.STEPS.schema())
    return {**empty, "analysis": analysis, "steps": [step(**one) for one in steps], **fields}


def candidates(
    steps: Iterable[Mapping[str, Any]] = (), analysis: str = "Other ways.", **fields: Any
) -> dict[str, Any]:
    """Return candidates of a search; steps need an `id` and get what they lack."""
    schema = drafts.CANDIDATES.schema()
    empty = _empty(schema["properties"]["steps"]["items"])
    written = [{**empty, "title": f"Step {one['id']}", **one} for one in steps]
    return {**_empty(schema), "analysis": analysis, "steps": written, **fields}


def _empty(schema: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"string": "", "array": [], "integer": 0}
    return {name: values[schema["properties"][name]["type"]] for name in schema["required"]}


def refuse(category: str = "cyber", **fields: Any) -> Reply:
    """Decline, with nothing in the message."""
    details = {"type": "refusal", "category": category, "explanation": None}
    return Reply(stop_reason="refusal", stop_details=details, **fields)


def use(*calls: tuple[str, Mapping[str, Any]], **fields: Any) -> Reply:
    """Call tools, all at once, by name and input."""
    blocks = tuple(
        {"type": "tool_use", "id": f"toolu_{number:04}", "name": name, "input": dict(given)}
        for number, (name, given) in enumerate(calls)
    )
    return Reply(blocks=blocks, **{"stop_reason": "tool_use", **fields})


def think(thought: str, text: str, **fields: Any) -> Reply:
    """Think before the answer."""
    thinking = {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}
    return Reply(blocks=(thinking, {"type": "text", "text": text}), **fields)


def status(
    code: int,
    error: str = "",
    message: str = "a fault that the script asks for",
    **headers: str | float,
) -> Reply:
    """Answer with an HTTP error; headers with `_` for `-`: `status(429, retry_after=1, x_should_retry="false")`."""
    sent = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    kind = error or ERROR_TYPES.get(code, "api_error")
    return Reply(fault=Fault("status", status=code, error=kind, message=message, headers=sent))


def broken(kind: str, at: str = "text", **fields: Any) -> Reply:
    """Answer with a text that breaks off; `error`: type of the error that an `error` event tells."""
    error = fields.pop("error", "overloaded_error")
    text = fields.pop("text", "It begins well, and nobody will ever read the end of it. " * 8)
    return say(text, fault=Fault(kind, at=at, error=error), **fields)


def events(*sent: Mapping[str, Any] | bytes, **fields: Any) -> Reply:
    """Send events as they are given: what no service should send, too."""
    return Reply(events=sent, **fields)


def as_reply(given: Any) -> Reply:
    """Return what a script says as a reply: a text is said, a Fault strikes, plain data is answered as JSON."""
    if isinstance(given, Reply):
        return given
    if isinstance(given, Fault):
        return Reply(fault=given)
    return say(given) if isinstance(given, str) else answer(given)
