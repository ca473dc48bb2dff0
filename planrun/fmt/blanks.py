"""Blank lines: one between steps of several lines, never two in a row, none where the file begins or ends."""

from __future__ import annotations

from planrun.fmt.order import SECTIONS
from planrun.fmt.spans import Lines, UnsupportedError, covered, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.fmt.spans import Span


def spaced(text: str) -> str:
    """Return a plan's text with its blank lines in order; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    lines, inside = Lines(text), covered(text, root)
    before, none = _places(lines, root)
    rows: list[str] = []
    last, length = -1, 0  # the line above that is not blank, and the number of rows up to it
    for number in range(len(lines.starts)):
        row = lines.row(number)
        if number in inside or row.strip():
            if number in before and rows and rows[-1]:
                rows.append("")
            rows.append(row)
            last, length = number, len(rows)
        elif rows and rows[-1] and last not in none:
            rows.append("")
    return "\n".join(rows[:length]) + ("\n" if text.endswith("\n") else "")


def ended(text: str) -> str:
    """Return a text with a line end behind its last line."""
    return text if text.endswith("\n") else f"{text}\n"


def _places(lines: Lines, root: Span) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that a blank line stands before, and of those that none follows."""
    before, none = set(), set()
    any_long = False
    for key, section in root.pairs:
        if key.value not in SECTIONS or not section.is_block or section.kind != "list":
            continue
        none.add(lines.number(key.start))
        is_long = [lines.last_of(step) > lines.number(dash) for dash, step in section.entries]
        for at, (dash, _) in enumerate(section.entries):
            if at and (is_long[at] or is_long[at - 1]):
                before.add(_head(lines, lines.number(dash), lines.column(dash)))
        any_long = any_long or any(is_long)
        if key.value == "finally" and any_long:
            before.add(_head(lines, lines.number(key.start), 0))
    return before, none


def _head(lines: Lines, number: int, column: int) -> int:
    """Return the first of the comments directly above a line and in its column."""
    while number:
        row = lines.row(number - 1)
        if not row.lstrip().startswith("#") or len(row) - len(row.lstrip()) != column:
            break
        number -= 1
    return number
