"""Text that is inserted above the question that stands last on a terminal, without touching the line of its answer.

What a user has typed so far stays visible: the terminal moves it, and nothing draws over it.
"""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.area import height, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DOWN = b"\x1bD"  # one row down in the same column; scrolls at the end of the screen
_REST = b"\x1b[J"  # erases what follows the cursor
_SAVE, _RESTORE = b"\x1b7", b"\x1b8"


class Place(Record):
    """Where the question stands: rows of the area above it, rows of itself, columns and rows of the terminal."""

    area: int
    question: int
    columns: int
    rows: int


def inserted(text: bytes, area: Sequence[str], place: Place) -> bytes | None:
    """Return what writes `text`, whole lines, and a new area above the question; None where it does not fit."""
    most = place.rows - place.question - 1
    below = height(area, place.columns) if area else 0
    parts, used = [], place.area
    for lines, count in _portions(text, place.columns, most - below):
        if count > most - below:
            return None
        parts.append(_replaced(used, count, place, b"\n".join(lines)))
        used = 0
    if below or used:
        parts.append(_replaced(used, below, place, "\n".join(area).encode("utf-8", "replace")))
    return b"".join(parts)


def _portions(text: bytes, columns: int, most: int) -> Iterator[tuple[list[bytes], int]]:
    """Yield lines that fit above the question together, and how many rows they take."""
    lines: list[bytes] = []
    count = 0
    for each in text.removesuffix(b"\n").split(b"\n") if text else ():
        line = (
            (each.replace(b"\t", b"    ") if b"\x1b" in each or not each.isascii() else each.expandtabs(8))
            if b"\t" in each
            else each
        )
        rows = rows_of(line.decode("utf-8", "replace"), columns)
        if lines and count + rows > most:
            yield lines, count
            lines, count = [], 0
        lines.append(line)
        count += rows
    if lines:
        yield lines, count


def _replaced(old: int, new: int, place: Place, data: bytes) -> bytes:
    """Return what replaces `old` rows above the question by `data`, which takes `new` rows."""
    more = new - old
    parts = [_DOWN * more + b"\x1b[%dA" % more if more > 0 else b"", _SAVE]
    up = place.question - 1 + old
    parts += [b"\x1b[%dA" % up if up else b"", b"\r"]
    parts += [b"\x1b[%dM" % old if old else b"", b"\x1b[%dL" % new if new else b"", data, _RESTORE]
    if more:
        parts.append(b"\x1b[%d%s" % (abs(more), b"B" if more > 0 else b"A"))
    return b"".join(parts) + _REST


def without_area(drawn: Sequence[str], question: int, typed: str, columns: int) -> bytes:
    """Return what removes the area above a question whose line was ended; nothing where its rows are not known.

    `drawn`: the lines of the area and the `question` lines below; `typed`: the text after the last of them.
    """
    area = len(drawn) - question
    rows = height([drawn[-1] + typed], columns) + question - 1
    if rows > question or not typed.isprintable():  # the terminal has wrapped it
        return b""
    return b"\x1b[%dA\x1b[%dM\x1b[%dB\r" % (rows + area, area, rows) + _REST
