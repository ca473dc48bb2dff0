"""Streams that no service should send, and odd or slow ones that it may, with what has to come of a call.

What is not whole, or not in order, is never an answer; what the model refused stays refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from proofs.callrows import Row
from tests.fakes.messages import Reply, Tokens, broken, events, say
from tests.fakes.messages.stream import frames, usage

if TYPE_CHECKING:
    from collections.abc import Callable

    Event = dict[str, Any]
    Change = Callable[[list[Event]], list[Any]]

TEXT = "It is whole. "
REFUSAL = {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 4}}
OVERLOAD = {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}}
INPUT = 15
"""Tokens that these streams tell of the question."""


def _whole() -> list[Event]:
    """Return the events of an answer as the service sends it: a start, a block with two deltas, the two ends."""
    reply = say(TEXT, piece=8)
    sent = frames(reply, "model-a", "msg_1", usage(reply, Tokens(input=INPUT)))
    return [dict(frame.event) for frame in sent if not isinstance(frame.event, bytes)]


def _twisted(change: Change) -> Reply:
    return events(*change(_whole()))


def _with(place: int, *more: Any) -> Change:
    return lambda sent: [*sent[:place], *more, *sent[place:]]


def _without(kind: str) -> Change:
    return lambda sent: [event for event in sent if event["type"] != kind]


def _changed(kind: str, **fields: Any) -> Change:
    return lambda sent: [{**event, **fields} if event["type"] == kind else event for event in sent]


def _delta(text: str, index: int = 0) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def _raw(data: bytes, kind: str = "content_block_delta") -> bytes:
    return f"event: {kind}\n".encode() + b"data: " + data + b"\n\n"


def _lines(sent: list[Event]) -> list[bytes]:
    """Return the events with the line ends of Windows and a comment before each."""
    return [
        f": hello\r\nevent: {event['type']}\r\ndata: {json.dumps(event)}\r\n\r\n".encode() for event in sent
    ]


def _counted(count: Any) -> Change:
    """Have the last usage tell something odd for its output."""
    return _changed("message_delta", usage={"output_tokens": count})


def _disordered(name: str, change: Change) -> Row:
    return Row(name, [_twisted(change)] * 2, "malformed", "stream:order", "out of order")


DISORDER = (
    _disordered("a beginning twice", lambda sent: [sent[0], *sent]),
    _disordered("two messages", lambda sent: [*sent, *sent]),
    _disordered("no beginning", _without("message_start")),
    _disordered("a piece behind the end", _with(-1, _delta(" And more."))),
    _disordered("a piece without a part", _without("content_block_start")),
    _disordered("a piece of another part", _with(3, _delta("strange", 7))),
    _disordered(
        "a piece of another kind", _changed("content_block_start", content_block={"type": "thinking"})
    ),
    _disordered("a part that never ends", _without("content_block_stop")),
    _disordered("a part in a part", lambda sent: [*sent[:3], sent[1], *sent[3:]]),
    _disordered("a refusal, then an end", _with(-2, REFUSAL)),
    _disordered("an end, then a refusal", _with(-1, REFUSAL)),
)
ODD = (
    Row("no end", [_twisted(_without("message_delta"))] * 3, "truncated", "stream:ended_early"),
    Row("no last event", [_twisted(_without("message_stop"))] * 3, "truncated", "stream:ended_early"),
    Row("an event without a type", [_twisted(_with(2, {"x": 1}))] * 2, "malformed", "event:no_type"),
    Row("an event that is a list", [_twisted(_with(2, _raw(b"[1]")))] * 2, "malformed", "event:no_type"),
    Row(
        "an overload behind the end",
        [_twisted(_with(-1, OVERLOAD))] * 3,
        "overloaded",
        "type:overloaded_error",
    ),
    Row(
        "a number for a stop reason",
        [_twisted(_changed("message_delta", delta={"stop_reason": 7}))],
        "malformed",
        "",
    ),
    Row(
        "a part that is null",
        [_twisted(_changed("content_block_start", content_block=None))],
        "malformed",
        "",
    ),
    Row(
        "a piece that is null", [_twisted(_changed("content_block_delta", delta=None))], "malformed", "delta:"
    ),
    Row("bytes that are no UTF-8", [_twisted(_with(3, _raw(b'{"type": "\xff"}')))] * 2, "malformed", ""),
    Row("a hundred thousand brackets", [_twisted(_with(3, _raw(b"[" * 100_000)))] * 2, "malformed", "depth"),
    Row("a beginning that is null", [_twisted(_changed("message_start", message=None))] * 2, "malformed", ""),
    Row("text without end", [broken("flood")], "malformed", "size", "MiB"),
)


def _fine(name: str, reply: Any) -> Row:
    return Row(name, [reply], "answered", "stop_reason:end_turn")


FINE = (
    _fine("unknown events", _twisted(_with(2, {"type": "weather", "x": 1}, {"type": "ping"}))),
    _fine("a ping before all", _twisted(_with(0, {"type": "ping"}))),
    _fine("line ends of Windows", _twisted(_lines)),
    _fine("letters that no terminal should get", _twisted(_with(3, _delta("\0\x1b[31m\u202e")))),
    _fine("half a pair of surrogates", _twisted(_with(3, _raw(json.dumps(_delta("\ud800")).encode())))),
    _fine("two texts", Reply(blocks=({"type": "text", "text": "a"}, {"type": "text", "text": "b"}))),
    _fine("a letter at a time", say("äöü€🙂 " * 20, piece=1)),
    _fine("a late first byte", say(TEXT, first_byte=0.6)),
    _fine("a slow stream", say(TEXT * 4, piece=4, pace=0.03, pings=3)),
    *[
        _fine(f"{name} for the output's count", _twisted(_counted(count)))
        for name, count in {
            "a number below zero": -5,
            "a text": "12",
            "nothing": None,
            "too large a number": 10**30,
            "a fraction": 0.5,
        }.items()
    ],
    _fine("no usage at the end", _twisted(_changed("message_delta", usage=None))),
)
TWISTS = {"disorder": DISORDER, "odd": ODD, "fine": FINE}
