"""The keys of the plan and of each step in one order; each takes the comments directly above it along.

A mapping stays as it is where a comment belongs to no key for certain, and where anchors or aliases are involved.
"""

from __future__ import annotations

from planrun.fmt.spans import KEPT, Lines, UnsupportedError, read
from planrun.plan.tables import OBJECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.fmt.spans import Span

SECTIONS = ("steps", "finally")
# What a step is, and when it runs; the schema has what it does next, then the rest.
_FIRST = (
    "id",
    "title",
    "description",
    "depends_on",
    "recovers",
    "replaces",
    "condition",
    "matrix",
    "foreach",
)
STEP_ORDER = (*_FIRST, *[name for name in OBJECTS["Step"] if name not in _FIRST])
PLAN_ORDER = tuple(OBJECTS["Plan"])


def ordered_steps(text: str) -> str:
    """Return a plan's text with the keys of its steps in order; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    lines, rows = Lines(text), text.split("\n")
    for name in SECTIONS:
        section = root.get(name)
        for _, step in section.entries if section is not None and section.is_block else ():
            _order(lines, rows, step, STEP_ORDER)
    return "\n".join(rows)


def ordered_plan(text: str) -> str:
    """Return a plan's text with its own keys in order; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    rows = text.split("\n")
    _order(Lines(text), rows, root, PLAN_ORDER)
    return "\n".join(rows)


def _order(lines: Lines, rows: list[str], span: Span, names: tuple[str, ...]) -> None:
    """Put the lines of a mapping's keys in order; `rows` keeps its number of lines."""
    if span.kind != "map" or not span.is_block or span.has_anchor:
        return
    keys = [key.value for key, _ in span.pairs]
    ranks, rank = [], -1
    for key in keys:
        rank = names.index(key) if key in names else rank
        ranks.append(rank)
    order = sorted(range(len(keys)), key=lambda at: (ranks[at], at))
    if order == sorted(order) or any(each.has_anchor or each.kind == "alias" for each in span.walk()):
        return
    try:
        chunks = _Chunks(lines, span)
    except UnsupportedError:
        return
    chunks.write(rows, order)


class _Chunks:
    """The lines of each key of a mapping, from the comments above it to the end of its value."""

    def __init__(self, lines: Lines, span: Span) -> None:
        self.lines = lines
        self.column = self.lines.column(span.pairs[0][0].start)
        self.pairs = span.pairs
        first = self.lines.row(self.lines.number(span.pairs[0][0].start))[: self.column]
        self.dash = first if first.strip() == "-" else ""
        if first.strip() and not self.dash:
            raise UnsupportedError
        self.bounds = [self.bound(at) for at in range(len(self.pairs))]

    def bound(self, at: int) -> tuple[int, int]:
        """Return the first line of a key with its comments, and the line behind the last of its value."""
        key, value = self.pairs[at]
        number = self.lines.number(key.start)
        start = number
        if at:
            above = self.end_of(at - 1)
            while start > above and self.is_comment(start - 1):
                start -= 1
            if any(self.lines.row(row).strip() for row in range(above, start)):
                raise UnsupportedError  # a comment that stands alone
        if value.style in ("|", ">") and KEPT.match(self.lines.text, value.start):
            raise UnsupportedError
        return start, self.end_of(at)

    def end_of(self, at: int) -> int:
        """Return the line behind the last one of a value, and behind the comments below it that stand deeper."""
        key, value = self.pairs[at]
        end = self.lines.last_of(value) if not value.is_empty else self.lines.number(key.start)
        while not self.lines.row(end).strip():
            end -= 1
        end += 1
        below = end
        limit = self.lines.number(self.pairs[at + 1][0].start) if at + 1 < len(self.pairs) else end
        while below < limit:
            row = self.lines.row(below)
            if row.strip():
                if not row.lstrip().startswith("#") or len(row) - len(row.lstrip()) <= self.column:
                    break
                end = below + 1
            below += 1
        return end

    def is_comment(self, number: int) -> bool:
        """Whether a line is a comment in the column of the keys."""
        row = self.lines.row(number)
        return row.lstrip(" ").startswith("#") and len(row) - len(row.lstrip(" ")) == self.column

    def write(self, rows: list[str], order: list[int]) -> None:
        """Put the lines in another order into `rows`; blank lines between keys stay at their places."""
        bodies = [rows[start:end] for start, end in self.bounds]
        if order[0] and not self.moves_first(order[0]):
            return
        if order[0] and self.dash:
            bodies[0][0] = " " * self.column + bodies[0][0][self.column :]
            bodies[order[0]][0] = self.dash + bodies[order[0]][0][self.column :]
        gaps = [
            rows[end:start] for (_, end), (start, _) in zip(self.bounds, self.bounds[1:], strict=False)
        ] + [[]]
        new: list[str] = []
        for place, at in enumerate(order):
            new += bodies[at] + gaps[place]
        rows[self.bounds[0][0] : self.bounds[-1][1]] = new

    def moves_first(self, at: int) -> bool:
        """Whether another key can come first: behind a `-` one without a comment, and below no comment of the file."""
        if self.dash:
            return self.lines.number(self.pairs[at][0].start) == self.bounds[at][0]
        first = self.bounds[0][0]
        return not first or not self.lines.row(first - 1).strip()
