"""Tables of text: aligned for the eye, and a markdown table when they are pasted into one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WIDEST = 60  # characters of a cell that others are aligned to; a longer one sticks out


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return rows of cells as an aligned markdown table; columns numbered in `right` are flush right."""
    cells = [[_cell(cell) for cell in row] for row in (head, *rows)]
    widths = [min(WIDEST, max(3, *map(_width, column))) for column in zip(*cells, strict=True)]
    rule = [
        "-" * (width - 1) + ":" if column in right else "-" * width for column, width in enumerate(widths)
    ]
    return "\n".join([_row(row, widths, right) for row in (cells[0], rule, *cells[1:])])


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    padded = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        gap = " " * (width - _width(cell))
        padded.append(gap + cell if column in right else cell + gap)
    return f"| {' | '.join(padded)} |"


def _cell(text: str) -> str:
    """Return text for a cell: one line, and no bar that would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def _width(text: str) -> int:
    """Return the columns that a text takes: wide characters of East Asia take two, combining ones none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
