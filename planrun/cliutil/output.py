"""A document where the caller wants it: in a file, at once or not at all, or on stdout."""

from __future__ import annotations

import click

from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say_bytes
from planrun.reports.write import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


from_option = click.option(
    "--from",
    "source",
    metavar="DIR|URL",
    envvar="PLANRUN_FROM_PUBLISHED",
    help="Read runs that were published there (`run --publish`).",
)


def deliver(data: bytes, file: str | None) -> None:
    """Write bytes to a file, or without one to stdout; raises RecordsLost."""
    if file is None:
        say_bytes(data)
        return

    def fill(out: BinaryIO) -> None:
        out.write(data)

    place(file, fill)
    write_stderr(f"wrote {printable(file)}\n")
