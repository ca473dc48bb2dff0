"""The formats of reports: the files that a run leaves, each written whole or not at all, and single reports as bytes.

A report is written beside its place, synced, and then renamed: a reader finds the old file or the new one, never half
of one, even when planrun is killed or the power fails.
"""

from __future__ import annotations

import io
import os

from planrun.errors import InvalidInput, RecordsLost
from planrun.folders import write_atomically
from planrun.model.record import Record
from planrun.reports.document import load
from planrun.reports.elements import DIALECTS
from planrun.reports.junit import write_junit
from planrun.reports.ledgerjson import write_ledger
from planrun.reports.markdown import write_markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from planrun.model.state import RunState
    from planrun.reports.html.comparison import Baseline


_NOTED = "notifications.jsonl"  # in the folder of a run


class Source(Record):
    """What a report is made from."""

    state: RunState
    rundir: str
    head: str = ""  # the hash of the ledger's last line
    dialect: str = "default"  # of JUnit
    baseline: Baseline | None = None  # for the HTML report: what is known of earlier runs; None: nothing


def _html(run: Source, out: BinaryIO) -> None:
    load("html.page").write_html(run.state, run.rundir, out, head=run.head, baseline=run.baseline)


def _json(run: Source, out: BinaryIO) -> None:
    # `stat` and no module: most runs send no notification.
    noted = os.path.exists(os.path.join(run.rundir, _NOTED))
    write_ledger(run.state, out, load("notifications").as_data(run.rundir) if noted else ())


# For each format what writes it, and the file that every run leaves; "": only `planrun report` writes it.
_FORMATS: dict[str, tuple[Callable[[Source, BinaryIO], None], str]] = {
    "junit": (
        lambda run, out: write_junit(run.state, run.rundir, out, run.dialect, head=run.head),
        "junit.xml",
    ),
    "markdown": (lambda run, out: write_markdown(run.state, run.rundir, out, head=run.head), "report.md"),
    "text": (lambda run, out: load("text").write_text(run.state, run.rundir, out, head=run.head), ""),
    "json": (_json, "ledger.json"),
    "html": (_html, ""),
}
HTML = "report.html"
FORMATS = tuple(_FORMATS)


def write_reports(
    state: RunState, rundir: str, report_dir: str, *, head: str = "", dialect: str = "default"
) -> tuple[dict[str, str], RecordsLost | None]:
    """Write all reports of a run into `report_dir`, made when missing; returns what is there, as paths by format.

    `head` is the hash of the ledger's last line. The second value is the error that names the first report that
    could not be written. Raises InvalidInput for an unknown dialect.
    """
    source = Source(state=state, rundir=rundir, head=head, dialect=_known_dialect(dialect))
    try:
        make_folder(report_dir)
    except RecordsLost as error:
        return {}, error
    paths, lost = {}, None
    for name, (write, file) in _FORMATS.items():
        if not file:
            continue
        path = os.path.join(report_dir, file)
        try:
            place(path, _bound(write, source))
            paths[name] = path
        except RecordsLost as error:
            lost = lost or error
    return paths, lost


def write_again(state: RunState, rundir: str, paths: Mapping[str, str]) -> None:
    """Write `ledger.json` again, for what happened after the reports were written; a failure keeps the first one."""
    source = Source(state=state, rundir=rundir, head="", dialect="")
    try:
        place(paths["json"], _bound(_json, source))
    except (KeyError, RecordsLost):
        return


def _bound(write: Callable[[Source, BinaryIO], None], source: Source) -> Callable[[BinaryIO], None]:
    return lambda out: write(source, out)


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


def write_page(source: Source, report_dir: str) -> str:
    """Write the HTML report into the folder of the reports, which is there; returns its path. Raises RecordsLost."""
    path = os.path.join(report_dir, HTML)
    place(path, _bound(_html, source))
    return path


def render(state: RunState, rundir: str, form: str, *, head: str = "", dialect: str = "default") -> bytes:
    """Return one report as bytes; raises InvalidInput for an unknown format or dialect."""
    return rendered(Source(state=state, rundir=rundir, head=head, dialect=_known_dialect(dialect)), form)


def rendered(source: Source, form: str) -> bytes:
    """Return one report as bytes; raises InvalidInput for an unknown format."""
    if form not in _FORMATS:
        raise InvalidInput(f'unknown report format "{form}"; known: {", ".join(FORMATS)}')
    out = io.BytesIO()
    _FORMATS[form][0](source, out)
    return out.getvalue()


def write_texts(folder: str, texts: Mapping[str, str]) -> list[str]:
    """Write texts by file name into a folder, made when missing, and return their paths; raises RecordsLost."""
    make_folder(folder)
    paths = []
    for name, text in texts.items():
        path = os.path.join(folder, name)
        place(path, text.encode("utf-8", "replace"))
        paths.append(path)
    return paths


def place(path: str, content: bytes | Callable[[BinaryIO], None]) -> None:
    """Write a report, see `write_atomically`; raises RecordsLost naming it."""
    try:
        # Durability is switched off for reports where it is for the ledger.
        write_atomically(path, content, sync="PLANRUN_NO_SYNC" not in os.environ)
    except OSError as error:
        raise RecordsLost(f"cannot write {path}: {error.strerror or error}") from None


def _known_dialect(dialect: str) -> str:
    if dialect not in DIALECTS:
        raise InvalidInput(f'unknown JUnit dialect "{dialect}"; known: {", ".join(DIALECTS)}')
    return dialect
