"""Indentation by two columns, one space after `:` and `-`, and no space at the end of lines.

The lines of a text (`|`, `>`) move as a whole with their key; what they say stays. So do the lines of a value between
brackets. Comments move with the lines at their column.
"""

from __future__ import annotations

import re

from planrun.fmt.spans import KEPT, Lines, UnsupportedError, covered, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.fmt.spans import Span

STEP = 2  # columns
_COLON = re.compile(r"[ \t]*:")
_HEADER = re.compile(r"[|>](?:([1-9])[-+]?|[-+]?([1-9])?)")


def indented(text: str) -> str:
    """Return a plan's text with its lines indented anew; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    return _Layout(text, root).run()


class _Layout:
    """One pass: the edits of a text, each as start, end and what stands there instead."""

    def __init__(self, text: str, root: Span) -> None:
        self.text = text
        self.root = root
        self.lines = Lines(text)
        self.edits: list[tuple[int, int, str]] = []
        # By line: the columns of the mappings and lists around its first word, each with its new one.
        self.columns: dict[int, dict[int, int]] = {}

    def run(self) -> str:
        self.mapping(self.root, {}, 0)
        inside = covered(self.text, self.root)
        for number in range(len(self.lines.starts)):
            if number not in inside:
                self.comment(number)
                self.line_end(number)
        return edited(self.text, self.edits)

    def mapping(self, span: Span, around: dict[int, int], new: int) -> None:
        """Lay out a mapping in lines so that its keys begin at the column `new`."""
        column = self.lines.column(span.pairs[0][0].start)
        columns = {**around, column: new}
        for key, value in span.pairs:
            if (
                key.kind != "scalar"
                or key.has_anchor
                or key.is_empty
                or "\n" in self.text[key.start : key.end]
            ):
                raise UnsupportedError
            self.lead(key.start, new, columns)
            colon = _COLON.match(self.text, key.end)
            if colon is None:
                raise UnsupportedError
            self.edits.append((key.end, colon.end(), ":"))
            self.value(value, colon.end(), column, columns)

    def listing(self, span: Span, around: dict[int, int], new: int) -> None:
        """Lay out a list in lines so that its `-` stand in the column `new`."""
        column = self.lines.column(span.entries[0][0])
        columns = {**around, column: new}
        for dash, item in span.entries:
            self.lead(dash, new, columns)
            self.value(item, dash + 1, column, columns)

    def value(self, span: Span, after: int, column: int, columns: dict[int, int]) -> None:
        """Lay out the value behind a `:` or `-`, which ends at `after`, of the collection at a column."""
        if span.is_empty:
            return
        new = columns[column]
        gap = self.text[after : span.start]
        if "\n" not in gap:
            self.edits.append((after, span.start, " "))
        if span.is_block:
            lay = self.mapping if span.kind == "map" else self.listing
            lay(span, columns, new + STEP)
            return
        if "\n" in gap:
            self.lead(span.start, new + STEP, columns)
        if span.style in ("|", ">"):
            self.text_in_lines(span, column, new)
        else:
            self.continued(span)

    def lead(self, at: int, new: int, columns: dict[int, int]) -> None:
        """Put what begins at `at` into a column, if it is the first of its line."""
        number = self.lines.number(at)
        start = self.lines.starts[number]
        if self.text[start:at].strip():
            self.columns.setdefault(number, {}).update(columns)
            return
        self.columns[number] = dict(columns)
        self.edits.append((start, at, " " * new))

    def text_in_lines(self, span: Span, column: int, new: int) -> None:
        """Move the lines of a text so that they stand two columns right of their key, or where they say."""
        header = _HEADER.match(self.text, self.text.index(span.style, span.start))
        assert header is not None
        first, last = self.lines.number(span.start) + 1, self.lines.last_of(span)
        while not (self.lines.row(last).strip() or KEPT.match(self.text, header.start())) and last >= first:
            last -= 1  # blank lines below are no part of it
        rows = [self.lines.row(number) for number in range(first, last + 1)]
        depths = [_depth(row) for row in rows if row.strip()]
        if not depths:
            return
        written = int(header[1] or header[2] or 0)
        at, to = (column + written, new + written) if written else (depths[0], new + STEP)
        for number, row in enumerate(rows, first):
            depth = _depth(row)
            if not row.strip(" ") and depth <= at:
                self.indent(number, 0)
            elif depth >= at:
                self.indent(number, depth - at + to)
            else:
                raise UnsupportedError

    def continued(self, span: Span) -> None:
        """Move the further lines of a value as its first line moves."""
        first, last = self.lines.number(span.start), self.lines.last_of(span)
        if first == last:
            return
        start = self.lines.starts[first]
        old = _depth(self.lines.row(first))
        lead = next((edit for edit in reversed(self.edits) if edit[0] == start), None)
        shift = len(lead[2]) - old if lead is not None else 0
        for number in range(first + 1, last + 1):
            row = self.lines.row(number)
            if row.strip() and not row[: len(row) - len(row.lstrip())].strip(" "):
                self.indent(number, max(0, _depth(row) + shift))

    def indent(self, number: int, new: int) -> None:
        """Give a line another indentation."""
        start = self.lines.starts[number]
        self.edits.append((start, start + _depth(self.lines.row(number)), " " * new))

    def comment(self, number: int) -> None:
        """Indent a comment as the lines are that stand in its column: first those after it, then those before."""
        row = self.lines.row(number)
        if not row.lstrip(" \t").startswith("#"):
            return
        depth = len(row) - len(row.lstrip(" \t"))
        after = next(
            (self.columns[at] for at in range(number + 1, len(self.lines.starts)) if at in self.columns), {}
        )
        before = next((self.columns[at] for at in range(number - 1, -1, -1) if at in self.columns), {})
        columns = {**before, **after}
        near = max([column for column in columns if column <= depth], default=None)
        start = self.lines.starts[number]
        self.edits.append((start, start + depth, " " * (0 if near is None else columns[near])))

    def line_end(self, number: int) -> None:
        """Remove the space at the end of a line."""
        row = self.lines.row(number)
        kept = len(row.rstrip(" \t"))
        if kept < len(row):
            start = self.lines.starts[number]
            self.edits.append((start + kept, start + len(row), ""))


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with its edits; raises UnsupportedError where two overlap."""
    parts, at = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        if start < at:
            raise UnsupportedError
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])
