"""What a report is made of: sections, with a heading and facts, lines, code or a table below it."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    Kind = Literal["text", "code", "number", "step"]
    Form = Literal["text", "markdown", "html"]

BELOW = "below"
"""In place of a status: a line that belongs to the one above it."""


class Section(Record):
    """A heading and what stands below it, in this order; a part that is empty is not shown.

    `lines`: status, BELOW or "", and a text. Cells of `rows` may have several lines; those of a `step` column are ids,
    which become links. `forms`: the formats that show it, empty for all. `leads`: it stands above the steps.
    """

    heading: str
    mark: str = ""  # the status whose icon stands before the heading
    step: str = ""  # the step that it is about
    text: str = ""
    is_error: bool = False  # `text` is a line by which a program named its error
    facts: Sequence[tuple[str, str, Kind]] = ()
    lines: Sequence[tuple[str, str]] = ()
    code: str = ""
    language: Literal["text", "sh", "mermaid"] = "text"
    columns: Sequence[tuple[str, Kind]] = ()
    rows: Sequence[tuple[str, ...]] = ()
    note: str = ""
    sections: Sequence[Section] = ()
    forms: tuple[Form, ...] = ()
    leads: bool = False


def table(
    heading: str,
    columns: Sequence[tuple[str, Kind]],
    rows: Sequence[tuple[str, ...]],
    *,
    note: str = "",
    forms: tuple[Form, ...] = (),
) -> Section:
    """Return a section with a table, without the columns that say nothing: all their cells are empty or 0."""
    kept = [at for at in range(len(columns)) if any(row[at] not in ("", "0") for row in rows)]
    if len(kept) < len(columns):
        columns = [columns[at] for at in kept]
        rows = [tuple([row[at] for at in kept]) for row in rows]
    return Section(heading=heading, columns=columns, rows=rows, note=note, forms=forms)


def lined(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return texts as lines of a section."""
    return [("", text) for text in texts]
