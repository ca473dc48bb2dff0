"""The text of an open document: places as planrun counts them (from 1, in characters) and as editors do.

An editor counts lines from 0 and, on a line, units of an encoding that it agreed upon: mostly UTF-16.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol import types

_BREAK = re.compile(r"\r\n|\n|\r")  # and no other: splitlines() would also break at U+2028 and others


class Text:
    """The lines of a document, without what ends them; `encoding`: of the units in which the editor counts."""

    def __init__(self, text: str, encoding: types.PositionEncodingKind | str = "utf-16") -> None:
        self.whole = text
        self.encoding = str(getattr(encoding, "value", encoding))
        self.starts = [0, *[found.end() for found in _BREAK.finditer(text)]]
        self._mark = 1 if text.startswith("\ufeff") else 0  # planrun counts no byte order mark

    def line(self, number: int) -> str:
        """Return a line, counted from 1; empty beyond the end."""
        if not 1 <= number <= len(self.starts):
            return ""
        end = self.starts[number] if number < len(self.starts) else len(self.whole)
        return self.whole[self.starts[number - 1] : end].rstrip("\r\n")

    def position(self, line: int, col: int) -> types.Position:
        """Return the editor's position of a place; beyond the text the nearest one in it."""
        line = min(max(line, 1), len(self.starts))
        row = self.line(line)
        before = row[: max(0, col - 1 + (self._mark if line == 1 else 0))]
        return types.Position(line - 1, self._units(before))

    def place(self, position: types.Position) -> tuple[int, int]:
        """Return line and column of an editor's position."""
        row, left, at = self.line(position.line + 1), position.character, 0
        while at < len(row) and left > 0:
            left -= self._units(row[at])
            at += 1
        return position.line + 1, at + 1 - (self._mark if position.line == 0 else 0)

    def span(self, line: int, col: int, length: int) -> types.Range:
        """Return the range of so many characters of a line."""
        return types.Range(self.position(line, col), self.position(line, col + length))

    def word_span(self, line: int, col: int) -> types.Range:
        """Return the range of the word at a place: up to a space, a quote, a comma or a colon with a space."""
        row = self.line(line)
        begin = col - 1 + (self._mark if line == 1 else 0)
        found = re.compile(r"[^\s,\]}]+?(?=:?[\s,\]}]|:?$)").match(row, begin)
        return self.span(line, col, len(found[0]) if found else 1)

    def offset(self, line: int, col: int) -> int:
        """Return the offset of a place in the whole text."""
        line = min(max(line, 1), len(self.starts))
        return min(self.starts[line - 1] + col - 1 + (self._mark if line == 1 else 0), len(self.whole))

    def place_of(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in the whole text."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1 - (self._mark if line == 1 else 0)

    @property
    def end(self) -> types.Range:
        """The range of the whole text."""
        last = len(self.starts)
        return types.Range(types.Position(0, 0), types.Position(last - 1, self._units(self.line(last))))

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
