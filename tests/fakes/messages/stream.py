"""A reply as the events of a stream, each with what the client knows and what is due once it was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.fakes.messages.counting import BYTES_A_TOKEN, Tokens, tokens
from tests.fakes.messages.replies import Reply

# Which field of a block grows, and by which delta.
_GROWING = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}


_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
MOST = 10**12
"""Tokens from which on a count is none, but a mistake."""


@dataclass(frozen=True)
class Frame:
    """One event. `place`: the fault that strikes before it; `told`: usage that it tells; `due`: billed by then."""

    place: str
    event: Mapping[str, Any] | bytes
    told: Tokens | None
    due: Tokens

    @property
    def data(self) -> bytes:
        """The event as it is sent."""
        if isinstance(self.event, bytes):
            return self.event
        text = json.dumps(self.event, ensure_ascii=False, separators=(",", ":"))
        return f"event: {self.event.get('type', 'unnamed')}\ndata: {text}\n\n".encode()


def grown(block: Mapping[str, Any]) -> str:
    """Return what a model wrote of a block, as text."""
    kind = block.get("type")
    if kind == "tool_use":
        given = block["input"]
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return str(block[_GROWING[kind][0]]) if kind in _GROWING else ""


def fitted(reply: Reply, max_tokens: int) -> Reply:
    """Return the reply that a model gives that may write so many tokens: cut off, when it is longer."""
    room = max_tokens * BYTES_A_TOKEN
    blocks = []
    for block in reply.blocks:
        text = grown(block).encode()
        if len(text) > room and block.get("type") in _GROWING:
            field = _GROWING[str(block["type"])][0]
            rest = text[:room].decode("utf-8", "ignore")
            blocks += [{**block, field: rest}] if rest else []
            return reply.but(blocks=tuple(blocks), stop_reason="max_tokens", stop_details=None)
        room -= len(text)
        blocks.append(dict(block))
    return reply


def usage(reply: Reply, charged: Tokens) -> Tokens:
    """Return the whole usage of a reply; an empty answer has a token, too, unless nothing was to be written."""
    if reply.usage is not None:
        return reply.usage
    return charged.with_output(max(1, tokens("".join(map(grown, reply.blocks)))))


def message(reply: Reply, model: str, name: str, spent: Tokens) -> dict[str, Any]:
    """Return a reply as one message."""
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [dict(block) for block in reply.blocks],
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "stop_details": reply.stop_details,
        "usage": spent.wire(),
    }


def frames(reply: Reply, model: str, name: str, spent: Tokens) -> Iterator[Frame]:
    """Yield the events of a reply; the middle of its text is the place `text`."""
    if reply.events:
        yield from _given(reply.events)
        return
    begun = spent.with_output(min(1, spent.output))
    empty = message(reply.but(blocks=(), stop_reason=None, stop_details=None), model, name, begun)
    yield Frame("start", {"type": "message_start", "message": empty}, begun, begun)
    for _ in range(reply.pings):
        yield Frame("usage", {"type": "ping"}, None, begun)
    events = list(_blocks(reply))
    written = 0
    for number, (event, text) in enumerate(events):
        written += len(text.encode())
        due = spent.with_output(min(spent.output, max(1, -(-written // BYTES_A_TOKEN))))
        yield Frame("usage" if number < (len(events) + 1) // 2 else "text", event, None, due)
    delta = {
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "stop_details": reply.stop_details,
    }
    told = {"type": "message_delta", "delta": delta, "usage": spent.wire()}
    yield Frame("blocks", told, spent, spent)
    yield Frame("told", {"type": "message_stop"}, None, spent)


def _given(events: tuple[Mapping[str, Any] | bytes, ...]) -> Iterator[Frame]:
    """Yield events as they were given; told and due is what their usage says, where that is a number."""
    told = Tokens()
    for event in events:
        data = _data(event)
        said = data.get("usage") or _part(data, "message").get("usage") or {}
        # A client may well take "12" for 12.
        found = {ours: int(said[name]) for name, ours in _COUNTS.items() if str(said.get(name)).isdigit()}
        told = replace(told, **{ours: count for ours, count in found.items() if count < MOST})
        yield Frame("start", event, told, told)


def _data(event: Mapping[str, Any] | bytes) -> Mapping[str, Any]:
    """Return what an event says; nothing, when it is no mapping."""
    if not isinstance(event, bytes):
        return event
    try:
        return _part({"": json.loads(event.partition(b"data: ")[2])}, "")
    except (ValueError, RecursionError):
        return {}


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}


def _blocks(reply: Reply) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the events of the blocks with the text that each carries."""
    for index, block in enumerate(reply.blocks):
        kind = str(block.get("type"))
        start = dict(block)
        if kind in _GROWING:
            start[_GROWING[kind][0]] = {} if kind == "tool_use" else ""
            start |= {"signature": ""} if kind == "thinking" else {}
        yield {"type": "content_block_start", "index": index, "content_block": start}, ""
        if kind in _GROWING:
            _, delta, key = _GROWING[kind]
            text = grown(block)
            for place in range(0, len(text), reply.piece):
                piece = text[place : place + reply.piece]
                yield _delta(index, {"type": delta, key: piece}), piece
        if kind == "thinking":
            yield _delta(index, {"type": "signature_delta", "signature": block.get("signature", "")}), ""
        yield {"type": "content_block_stop", "index": index}, ""


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}
