"""The output of a step as lines for people: without what could steer a terminal or a CI agent, colours excepted."""

from __future__ import annotations

import re

from planrun.model.commands import broken
from planrun.model.job import original
from planrun.reports.escape import without_controls
from planrun.reports.output import coloured, resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1 << 16
"""Bytes of a line that are held; a longer one is passed on in pieces."""
_LONGEST_SEQUENCE = 64  # bytes behind an escape character that may still belong to its sequence
# What a line needs no look at when it has nothing else: text of one byte, and no word that an agent could read.
_UNUSUAL = re.compile(rb"[^\t\x20-\x7e]|::|##|\.planrun-")


class Lines:
    """Turns pieces of output into lines without their ends, as they were logged; each instance is about one log."""

    def __init__(self) -> None:
        self._rest = b""
        self._has_begun = False  # a line whose beginning was taken by `begun`

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield each line that ends in what came so far."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._has_begun = self._has_begun and not lines
        for line in lines:
            yield self._clean(line)
        while len(rest) > LONGEST:
            yield self._clean(rest[:LONGEST])
            rest = rest[LONGEST:]
        self._rest = rest

    def finish(self) -> Iterator[str]:
        """Yield the last line, if it has no end."""
        rest, self._rest = self._rest, b""
        if rest or self._has_begun:
            yield self._clean(rest)

    def _clean(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")


class CleanLines(Lines):
    """Lines for people: clean, with or without their colours."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours
        self._open = ""  # colours that the last line left switched on

    def begun(self) -> str:
        """Take the beginning of a line that has no end yet; "" while more of it is needed to clean it."""
        rest = self._rest
        if not rest or b"\r" in rest or b"\x1b" in rest[-_LONGEST_SEQUENCE:] or rest[-1] >= 0x80:
            return ""
        self._rest, self._has_begun = b"", True
        return self._clean(rest)

    def _clean(self, data: bytes) -> str:
        if not self._open and not _UNUSUAL.search(data):
            return data.decode("ascii")
        text = original(data.decode("utf-8", "replace"))
        text = resolved(text)
        clean = without_controls(text).replace("\n", " ")
        inert = broken(clean)
        if inert != clean or not self._colours:
            return inert  # without colours, between which a command could be hidden
        text, self._open = coloured(text, self._open)
        return text
