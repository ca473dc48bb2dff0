"""Tables of text: aligned for the eye, and a markdown table when they are pasted into one.

Results on stdout: text, bytes or one JSON document; a write error has exit code 74.
"""

from __future__ import annotations

import sys

from planrun.errors import RecordsLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

WIDEST = 60  # characters of a cell that others are aligned to; a longer one sticks out


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return rows of cells as an aligned markdown table; columns numbered in `right` are flush right."""
    from planrun.model.widths import width_of  # no help and no version has a table

    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [min(WIDEST, max(3, *map(width_of, column))) for column in zip(*cells, strict=True)]
    rule = [
        "-" * (width - 1) + ":" if column in right else "-" * width for column, width in enumerate(widths)
    ]
    return "\n".join([_row(row, widths, right) for row in (cells[0], rule, *cells[1:])])


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    from planrun.model.widths import width_of

    padded = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        gap = " " * (width - width_of(cell))
        padded.append(gap + cell if column in right else cell + gap)
    return f"| {' | '.join(padded)} |"


SCHEMA_VERSION = 1  # of every JSON document that a read-only verb prints; keys are only ever added


def say(text: str) -> None:
    """Write text and a line end; raises RecordsLost."""
    say_bytes((text + "\n").encode(encoding(), "backslashreplace"))


def say_json(document: dict[str, Any]) -> None:
    """Write one JSON document with its schema version on one line; raises RecordsLost."""
    from planrun.model.jsontext import dumps, well_formed  # not for text, such as --help

    say_bytes(dumps(well_formed({"schema_version": SCHEMA_VERSION, **document})).encode() + b"\n")


def say_bytes(data: bytes) -> None:
    """Write bytes as they are; raises RecordsLost, and BrokenPipeError when the reader is gone."""
    try:
        out = getattr(sys.stdout, "buffer", None)
        if out is None:  # a closed stdout, or one that a test put there
            if sys.stdout is None:
                raise RecordsLost("cannot write to stdout: it is closed")
            sys.stdout.write(data.decode(encoding(), "backslashreplace"))
            return
        sys.stdout.flush()
        out.write(data)
        out.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise RecordsLost(f"cannot write to stdout: {getattr(error, 'strerror', None) or error}") from None


def encoding() -> str:
    """Return the encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def speaks_unicode() -> bool:
    """Whether stdout can encode characters beyond ASCII."""
    return encoding().lower().replace("-", "").startswith("utf")
