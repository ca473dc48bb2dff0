"""Texts whose lines were broken on the way: what is looked for stands in them as if they were not."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

GRACE = 4
"""Bytes before the first break. With fewer, most line ends would be held back: they begin like some secret."""
# Longer than a blank line with \r\n. Without a limit, what is held back could grow for ever.
_GAP = b"\n" * 5


class Unbroken:
    """A text without its line breaks, `flat`, and where its bytes stand with them."""

    __slots__ = ("_shifts", "flat", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.flat = flatten(text)
        self._shifts: list[int] | None = None  # for each break the number of flat bytes before it

    def place(self, index: int) -> int:
        """Return where byte `index` of the flat text stands in the text."""
        left = len(self.flat) - index
        if len(self.flat) == len(self.text):
            return index
        if left < GRACE and self.text.endswith(self.flat[index:]):
            return len(self.text) - left
        if self._shifts is None:
            lines = self.text.replace(b"\r", b"\n").split(b"\n")
            self._shifts = list(accumulate(map(len, lines)))
        return index + bisect_right(self._shifts, index)

    def holds(self, start: int, end: int) -> bool:
        """Whether flat bytes `start` to `end` are one piece, but for breaks that may be overlooked."""
        return _is_one(self.text[self.place(start) : self.place(end - 1) + 1])

    def begins(self, start: int) -> bool:
        """Whether flat bytes from `start` on are one piece, and may go on with what follows the text."""
        if len(self.flat) - start < GRACE:
            return self.text.endswith(self.flat[start:])
        return _is_one(self.text[self.place(start) :])


def flatten(text: bytes) -> bytes:
    """Return `text` without line breaks."""
    return text.replace(b"\n", b"").replace(b"\r", b"")


def _is_one(text: bytes) -> bool:
    lines = text.replace(b"\r", b"\n")
    return b"\n" not in lines[:GRACE] and _GAP not in lines
