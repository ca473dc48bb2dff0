"""The document of a run as plain text, for terminals and mails."""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.document import BELOW, document
from planrun.reports.escape import line, plain
from planrun.reports.facts import ICONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from planrun.model.state import RunState
    from planrun.reports.document import Section

_WIDEST = 40  # characters to which the cells of a column are filled up


def write_text(state: RunState, rundir: str, out: BinaryIO, *, head: str = "") -> None:
    """Write the run to a binary file; raises OSError when `out` cannot be written."""
    out.write(f"{facts.heading(state)}\n{facts.summary(state)}\n".encode())
    for section in document(state, rundir, "text", head=head):
        text = "".join([f"{row}\n" for row in _rows(section, "")])
        out.write(text.encode("utf-8", "replace"))


def _rows(section: Section, indent: str) -> Iterator[str]:
    """Yield the lines of a section, clean."""
    mark = f"{ICONS[section.mark]} " if section.mark else ""
    if not indent or section.mark:
        yield ""
    yield f"{indent}{mark}{line(section.heading)}"
    indent += "  "
    if section.text:
        yield indent + line(section.text)
    width = max([len(name) for name, _, _ in section.facts], default=0) + 1
    yield from [f"{indent}{name + ':':<{width}} {line(value)}" for name, value, _ in section.facts]
    for status, text in section.lines:
        lead = "  " if status == BELOW else f"{ICONS[status]} " if status else ""
        yield f"{indent}{lead}{line(text)}"
    if section.code:
        prompt = "$" if section.language == "sh" else "|"
        yield from [f"{indent}{prompt} {row}" for row in plain(section.code).rstrip("\n").split("\n") if row]
    if section.rows:
        yield from [indent + row for row in _table(section)]
    for found in section.sections:
        yield from _rows(found, indent)
    if section.note:
        yield indent + line(section.note)


def _table(section: Section) -> Iterator[str]:
    rows = [[name for name, _ in section.columns]]
    rows += [[line(cell) for cell in row] for row in section.rows]
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    kinds = [kind for _, kind in section.columns]
    for row in rows:
        cells = [
            cell.rjust(width) if kind == "number" else cell.ljust(width)
            for cell, width, kind in zip(row, widths, kinds, strict=True)
        ]
        yield "  ".join(cells).rstrip()
