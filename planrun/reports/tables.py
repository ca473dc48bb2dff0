"""What a part adds to the HTML report, as plain data: a heading and a table, or lines of text."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["text", "code", "number", "step"]


class Column(Record):
    """A column: `step` cells hold ids of steps and become links, `code` cells keep their line ends."""

    name: str
    kind: Kind = "text"


class Table(Record):
    """A section of the page; texts need no escape, since the template escapes whatever it prints."""

    heading: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""  # below the table


def columns(*named: tuple[str, Kind]) -> tuple[Column, ...]:
    """Return columns by name and kind."""
    return tuple([Column(name=name, kind=kind) for name, kind in named])
