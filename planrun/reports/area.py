"""The status area of a terminal: a line for each running step, and one for the whole run.

Loaded when an area is drawn for the first time: a run that is over before does not need it.
"""

from __future__ import annotations

import re

from planrun.model.record import Record
from planrun.model.widths import padded, width_of
from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.reports.progress import Tally

KNOWN = 0.1  # seconds; an ETA below is not shown
_BAR = 20  # cells of the bar
_NARROW = 70  # columns of a terminal below which there is no bar
_WIDEST = 24  # cells of a step's id, to which the lines are aligned
_SEQUENCE = re.compile(r"(\x1b\[[0-9;]*m)")
_RESET = "\x1b[0m"


class Row(Record):
    """A running step: its id, what it is called, how long it has been running, and its line that has no end yet."""

    label: str
    seconds: float
    colour: str = ""  # of the id, as parameters of a control sequence
    note: str = ""


def lines(rows: Sequence[Row], summary: str, size: tuple[int, int], *, unicode: bool = True) -> list[str]:
    """Return the lines of an area for a terminal of so many columns and rows; it takes at most half of the rows."""
    room = max(1, size[1] // 2 - 1)
    if len(rows) > room == 1:
        return [", ".join([_name(row) for row in rows]), summary]
    shown = rows if len(rows) <= room else rows[: room - 1]
    width = min(_WIDEST, max([width_of(row.label) for row in shown], default=0))
    texts = [_step(row, width, unicode=unicode) for row in shown]
    if len(shown) < len(rows):
        texts.append(f"  and {len(rows) - len(shown)} more")
    return [*texts, summary]


def summary(tally: Tally, now: float, began: float, *, failed: int, columns: int) -> str:
    """Return `[######..............] 3/10  12.3s  ETA 20.0s  1 failed`; moments on one clock, in seconds."""
    filled = int(_BAR * tally.share())
    bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] " if columns >= _NARROW else ""
    eta = tally.eta(now)
    # A step that takes longer than expected makes it 0, and what is known of steps of a few milliseconds next to
    # 0: neither is worth showing.
    least = "" if tally.eta_known else "at least "
    ends = f"  ETA {least}{seconds(eta)}" if eta and eta >= KNOWN else ""
    failures = f"  {failed} failed" if failed else ""
    return f"{bar}{tally.done}/{tally.total}  {seconds(now - began)}{ends}{failures}"


def fitted(line: str, columns: int) -> str:
    """Return a line cut to so many cells; where something is cut off, it ends with `…`."""
    if not _is_longer(line, columns):
        return line
    left, parts, coloured = columns - 1, [], False
    for part in _SEQUENCE.split(line):
        if part.startswith("\x1b"):
            parts.append(part)
            coloured = part != _RESET
        elif width_of(part) <= left:
            parts.append(part)
            left -= width_of(part)
        else:
            parts.append(padded(part, left).rstrip() + "…")
            break
    return "".join(parts) + (_RESET if coloured else "")


def sized(text: str, cells: int) -> str:
    """Return a text without sequences that takes exactly so many cells: cut, with `…` at its end, or padded."""
    if width_of(text) > cells:
        return padded(padded(text, max(0, cells - 1)).rstrip() + "…"[:cells], cells)
    return padded(text, cells)


def height(drawn: Sequence[str], columns: int) -> int:
    """Return how many rows these lines take on a terminal that has become so wide."""
    return sum([max(1, -(-width_of(_SEQUENCE.sub("", line)) // max(1, columns))) for line in drawn])


def rows_of(line: str, columns: int) -> int:
    """Return how many rows a line takes; a character of two cells goes to the next row where one is left."""
    if line.isascii():
        return height([line], columns)
    rows, column = 1, 0
    for letter in _SEQUENCE.sub("", line):
        cells = width_of(letter)
        if column + cells > columns:
            rows, column = rows + 1, 0
        column += cells
    return rows


def _is_longer(line: str, columns: int) -> bool:
    if len(line) * 2 <= columns:  # no character takes more than two cells
        return False
    return width_of(_SEQUENCE.sub("", line)) > columns


def _name(row: Row) -> str:
    return f"\x1b[{row.colour}m{row.label}{_RESET}" if row.colour else row.label


def _step(row: Row, width: int, *, unicode: bool) -> str:
    padding = " " * max(0, width - width_of(row.label))
    mark = "◐" if unicode else ">"
    return f"{mark} {_name(row)}{padding}  {seconds(row.seconds):>5}  {row.note}".rstrip()
