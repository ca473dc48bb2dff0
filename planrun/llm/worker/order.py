"""In which order a stream may come: what is out of order was put together by somebody else, and is no answer."""

from __future__ import annotations

from planrun.llm.worker.outcomes import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Which deltas a block of a kind grows by; kinds that are not here are looked at by the reader.
_DELTAS: dict[object, tuple[str, ...]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
}


_KNOWN = frozenset(name for names in _DELTAS.values() for name in names)


class Order:
    """Watches one stream: a message begins once, its blocks come one after the other, then it ends once."""

    def __init__(self) -> None:
        self._has_begun = False
        self._open: tuple[int, object] | None = None  # number and kind of the block that grows
        self._blocks = 0
        self._stop: object = None
        self._has_told = False
        self._has_ended = False

    def take(self, event: Any) -> None:
        """See the next event of a kind that has an order; raises Unusable when it is not its turn."""
        kind = event.type
        if kind == "message_start":
            self._hold(not self._has_begun, "a message begins twice")
            self._has_begun = True
            return
        self._hold(self._has_begun, "the beginning of the message is missing")
        self._hold(not self._has_ended, "something comes after the end of the message")
        _TURNS[kind](self, event)

    def _block(self, event: Any) -> None:
        self._hold(not self._has_told, "a part comes after the end of the answer")
        self._hold(self._open is None, "a part begins within another")
        self._hold(_number(event) == self._blocks, "a part is missing")
        self._open = (self._blocks, _kind(event, "content_block"))
        self._blocks += 1

    def _delta(self, event: Any) -> None:
        self._hold(self._grows(event), "a piece belongs to no part")
        assert self._open is not None
        kind = _kind(event, "delta")
        fits = kind not in _KNOWN or kind in _DELTAS.get(self._open[1], _KNOWN)
        self._hold(fits, "a piece is of another kind than its part")

    def _close(self, event: Any) -> None:
        self._hold(self._grows(event), "a part ends that is not open")
        self._open = None

    def _turn(self, event: Any) -> None:
        stop = getattr(getattr(event, "delta", None), "stop_reason", None)
        self._hold(self._open is None or stop != "end_turn", "the answer ends within a part")
        self._hold(self._stop is None or stop in (None, self._stop), "the answer ends in two ways")
        self._stop = stop or self._stop
        self._has_told = True

    def _end(self, _event: Any) -> None:
        self._has_ended = True

    def _grows(self, event: Any) -> bool:
        """Whether an event belongs to the part that grows."""
        return self._open is not None and self._open[0] == _number(event)

    def _hold(self, fact: bool, message: str) -> None:  # noqa: FBT001 - an assertion, in other words
        if not fact:
            raise Unusable("stream:order", f"the service sent a stream out of order: {message}")


def _number(event: Any) -> object:
    return getattr(event, "index", None)


def _kind(event: Any, part: str) -> object:
    return getattr(getattr(event, part, None), "type", None)


_TURNS = {
    "content_block_start": Order._block,
    "content_block_delta": Order._delta,
    "content_block_stop": Order._close,
    "message_delta": Order._turn,
    "message_stop": Order._end,
}
KINDS = frozenset({"message_start", *_TURNS})
"""Events that have an order; others may come any time."""
