"""The files of a run that can be downloaded: its reports, and what its steps produced, if it is still that."""

from __future__ import annotations

import hashlib
import os

from planrun.app.pages import baseline_of
from planrun.model.record import Record
from planrun.opening import open_below
from planrun.reports.facts import size
from planrun.reports.write import Source, rendered
from planrun.serve.access import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.inspect import Inspected
    from planrun.model.state import RunState

REPORTS = {
    "report.html": "html",
    "report.md": "markdown",
    "junit.xml": "junit",
    "ledger.json": "json",
    "report.txt": "text",
}
"""Reports by name, with the format that `planrun report` calls it by."""
_MADE = ("created", "changed", "unchanged", "restored")  # what a step does to a file that it produces
_PIECE = 1 << 20


class Artifact(Record):
    """A file that a step produced, as its record has it; `path` is relative to the workspace."""

    step: str
    path: str
    sha256: str
    bytes: int


def artifacts(state: RunState) -> list[Artifact]:
    """Return the files that steps declare under `produces` and made, each once, the newest record."""
    found: dict[str, Artifact] = {}
    for name, step in state.steps.items():
        rows = list(step.restored.files) if step.restored else []
        for attempt in step.tries[-1:]:
            made = attempt.ended.files if attempt.ended else ()
            rows += [row for row in made if row.get("op") in _MADE and "key" not in row]
        for row in rows:
            if row.get("path") and row.get("sha256"):
                path = str(row["path"])
                found[path] = Artifact(step=name, path=path, sha256=row["sha256"], bytes=int(row["bytes"]))
    return list(found.values())


def links(inspected: Inspected) -> tuple[tuple[str, str, str], ...]:
    """Return name, link and size of each file of a run."""
    run = inspected.run
    rows = [(name, f"/runs/{run}/report/{name}", "") for name in REPORTS]
    for number, each in enumerate(artifacts(inspected.state)):
        rows.append((f"{each.path} of {each.step}", f"/runs/{run}/file/{number}", size(each.bytes)))
    return tuple(rows)


def report(inspected: Inspected, name: str) -> bytes:
    """Return a report; raises Refused."""
    if name not in REPORTS:
        raise Refused(404, "there is no such report")
    form = REPORTS[name]
    head = inspected.reading.head if inspected.reading.condition == "intact" else ""
    known = baseline_of(inspected.state, inspected.rundir) if form == "html" else None
    source = Source(state=inspected.state, rundir=inspected.rundir, head=head, baseline=known)
    return rendered(source, form)


def open_artifact(inspected: Inspected, number: str) -> tuple[Artifact, int]:
    """Return a file of a run by its number, and a descriptor of it: the bytes that were recorded; raises Refused."""
    known = artifacts(inspected.state)
    if not (number.isdecimal() and len(number) < 7 and int(number) < len(known)):
        raise Refused(404, "there is no such file")
    wanted = known[int(number)]
    try:
        fd = open_below(".", wanted.path)
    except OSError as error:
        raise Refused(404, f"{wanted.path} cannot be read: {error.strerror}") from None
    if not _is_recorded(fd, wanted):
        os.close(fd)
        raise Refused(409, f"{wanted.path} is not what the run recorded: it was changed since")
    return wanted, fd


def pieces(fd: int) -> Iterator[bytes]:
    """Yield the bytes of a file from its start, and close it."""
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        while piece := os.read(fd, _PIECE):
            yield piece
    finally:
        os.close(fd)


def _is_recorded(fd: int, wanted: Artifact) -> bool:
    if os.fstat(fd).st_size != wanted.bytes:
        return False
    found = hashlib.sha256()
    while piece := os.read(fd, _PIECE):
        found.update(piece)
    return found.hexdigest() == wanted.sha256
