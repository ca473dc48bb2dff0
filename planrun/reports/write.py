"""The report files of a run, each written whole or not at all, and single reports as bytes.

A report is written beside its place and then takes it in one call: whoever reads it, and whenever planrun is
killed, finds the old file or the new one, never half of one. It is not synced: that would take longer than all
else that a short run does (measured: 1 to 8 ms a file), for something that `planrun report` makes again from the
ledger, which is synced. ext4 and btrfs write a file out that replaces another one, so that there a power cut leaves
the old or the new one as well.
"""

from __future__ import annotations

import io
import os

from planrun.errors import InvalidInput, RecordsLost
from planrun.reports.junit import DIALECTS, write_junit
from planrun.reports.ledgerjson import write_ledger
from planrun.reports.markdown import write_markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from planrun.model.state import RunState

JUNIT = "junit.xml"
MARKDOWN = "report.md"
LEDGER = "ledger.json"
FORMATS = ("junit", "markdown", "text", "json")


def write_reports(
    state: RunState, rundir: str, report_dir: str, *, head: str = "", dialect: str = "default"
) -> tuple[dict[str, str], RecordsLost | None]:
    """Write all reports of a run into `report_dir`, made when missing; returns what is there, as paths by format.

    `head` is the hash of the ledger's last line. Besides the paths comes the error that names the first report
    that could not be written. Raises InvalidInput for an unknown dialect.
    """
    _known_dialect(dialect)
    writers: dict[str, tuple[str, Callable[[BinaryIO], None]]] = {
        "junit": (JUNIT, lambda out: write_junit(state, rundir, out, dialect, head=head)),
        "markdown": (MARKDOWN, lambda out: write_markdown(state, rundir, out, head=head)),
        "json": (LEDGER, lambda out: write_ledger(state, out)),
    }
    try:
        make_folder(report_dir)
    except RecordsLost as error:
        return {}, error
    paths, lost = {}, None
    for name, (file, write) in writers.items():
        path = os.path.join(report_dir, file)
        try:
            place(path, write)
            paths[name] = path
        except RecordsLost as error:
            lost = lost or error
    return paths, lost


def make_folder(path: str) -> None:
    """Make the report folder when it is missing, with a .gitignore that hides it; raises RecordsLost.

    A folder that is there already is the caller's, and gets no file.
    """
    try:
        if os.path.isdir(path):
            return
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("# planrun made this folder for the reports of its runs.\n*\n")
    except OSError as error:
        raise RecordsLost(f"cannot make the report folder {path}: {error.strerror}") from None


def render(state: RunState, rundir: str, form: str, *, head: str = "", dialect: str = "default") -> bytes:
    """Return one report as bytes; raises InvalidInput for an unknown format or dialect."""
    _known_dialect(dialect)
    out = io.BytesIO()
    if form == "junit":
        write_junit(state, rundir, out, dialect, head=head)
    elif form == "markdown":
        write_markdown(state, rundir, out, head=head)
    elif form == "text":
        from planrun.reports.text import write_text  # no run writes it

        write_text(state, rundir, out)
    elif form == "json":
        write_ledger(state, out)
    else:
        raise InvalidInput(f'unknown report format "{form}"; known: {", ".join(FORMATS)}')
    return out.getvalue()


def write_texts(folder: str, texts: Mapping[str, str]) -> list[str]:
    """Write texts by file name into a folder, made when missing, and return their paths; raises RecordsLost."""
    make_folder(folder)
    paths = []
    for name, text in texts.items():
        path = os.path.join(folder, name)
        place(path, _writer(text.encode("utf-8", "replace")))
        paths.append(path)
    return paths


def _writer(data: bytes) -> Callable[[BinaryIO], None]:
    def write(out: BinaryIO) -> None:
        out.write(data)

    return write


def place(path: str, write: Callable[[BinaryIO], None]) -> None:
    """Let `write` fill a file that then appears as `path`; raises RecordsLost naming it."""
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.part")
    try:
        _remove(part)  # left over by a run that was killed
        # Exclusive, so that a link planted under this name is never written through.
        with open(part, "xb", buffering=65536) as out:
            write(out)
            out.flush()
            _sync(out.fileno())
        os.rename(part, path)
    except OSError as error:
        _remove_quietly(part)
        raise RecordsLost(f"cannot write {path}: {error.strerror or error}") from None


def _sync(fd: int) -> None:
    """Have a report survive a power cut, except where durability is switched off, as for the ledger."""
    if "PLANRUN_NO_SYNC" not in os.environ:
        os.fsync(fd)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # whatever kept the report from being written is the error to tell
        return


def _known_dialect(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise InvalidInput(f'unknown JUnit dialect "{dialect}"; known: {", ".join(DIALECTS)}')
