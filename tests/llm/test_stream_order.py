"""A stream that is out of order is no answer: what stands in it was put together by somebody else than the model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from planrun.llm.worker.outcomes import Unusable
from planrun.llm.worker.stream import KINDS, Order


def event(kind: str, index: int | None = None, **parts: str | None) -> Any:
    """Return an event; `block` and `delta` are types, `stop` a stop reason."""
    return SimpleNamespace(
        type=kind,
        index=index,
        content_block=SimpleNamespace(type=parts.get("block")),
        delta=SimpleNamespace(type=parts.get("delta"), stop_reason=parts.get("stop")),
    )


BEGIN = event("message_start")
OPEN = event("content_block_start", 0, block="text")
PIECE = event("content_block_delta", 0, delta="text_delta")
CLOSE = event("content_block_stop", 0)
THOUGHT = (
    event("content_block_start", 0, block="thinking"),
    event("content_block_delta", 0, delta="thinking_delta"),
    event("content_block_delta", 0, delta="signature_delta"),
    CLOSE,
    event("content_block_start", 1, block="text"),
    event("content_block_delta", 1, delta="text_delta"),
    event("content_block_stop", 1),
)
DONE = event("message_delta", stop="end_turn")
REFUSED = event("message_delta", stop="refusal")
END = event("message_stop")


@pytest.mark.parametrize(
    "stream",
    [
        [BEGIN, OPEN, PIECE, PIECE, CLOSE, DONE, END],
        [BEGIN, *THOUGHT, DONE, END],
        [BEGIN, REFUSED, END],
        [BEGIN, OPEN, PIECE, REFUSED, END],
        [BEGIN, OPEN, PIECE, CLOSE, DONE, event("message_delta"), END],
        [BEGIN, event("content_block_start", 0, block="new"), event("content_block_delta", 0, delta="new")],
    ],
    ids=["text", "thought", "refusal", "refusal amid text", "two last words", "new kinds"],
)
def test_what_the_service_sends_is_in_order(stream: list[Any]) -> None:
    """Streams as the service documents them pass, and new kinds of parts are left to whoever reads them."""
    order = Order()
    for one in stream:
        assert one.type in KINDS
        order.take(one)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ([OPEN], "the beginning of the message is missing"),
        ([BEGIN, BEGIN], "a message begins twice"),
        ([BEGIN, PIECE], "a piece belongs to no part"),
        ([BEGIN, event("content_block_start", 1, block="text")], "a part is missing"),
        ([BEGIN, OPEN, event("content_block_start", 1, block="text")], "a part begins within another"),
        ([BEGIN, OPEN, event("content_block_delta", 1, delta="text_delta")], "a piece belongs to no part"),
        ([BEGIN, *THOUGHT[:1], PIECE], "a piece is of another kind than its part"),
        ([BEGIN, OPEN, CLOSE, CLOSE], "a part ends that is not open"),
        ([BEGIN, OPEN, PIECE, DONE], "the answer ends within a part"),
        ([BEGIN, DONE, OPEN], "a part comes after the end of the answer"),
        ([BEGIN, DONE, END, DONE], "something comes after the end of the message"),
        ([BEGIN, REFUSED, DONE], "the answer ends in two ways"),
    ],
)
def test_what_is_out_of_order_is_no_answer(stream: list[Any], told: str) -> None:
    """The last event of each stream is refused, in words, and the attempt is made again once."""
    order = Order()
    for one in stream[:-1]:
        order.take(one)
    with pytest.raises(Unusable) as caught:
        order.take(stream[-1])
    assert (caught.value.rule, caught.value.repeat) == ("stream:order", 1)
    assert caught.value.message.endswith(told)
