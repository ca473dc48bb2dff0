"""Delete finished runs: by `planrun prune`, and after a run by the settings of the project."""

from __future__ import annotations

import os
import shutil
import time

from planrun.app.inspect import known_runs, read_beside, read_run
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.events import RollbackStarted, RunEnded, RunEnding
from planrun.model.record import Record
from planrun.model.rollback import owes
from planrun.opening import read_record
from planrun.plan.project import project
from planrun.records import queuefile
from planrun.records.lock import WorkspaceLock
from planrun.records.rundir import HOME, RUNS
from planrun.reports.facts import epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.session import Result
    from planrun.settings import Settings


PRUNED = ".pruned"
"""Prefix of a run's folder while it is deleted: a half-deleted run must not be listed."""


class Stays(Record):
    """A run beside the newest finished ones that is kept, and why."""

    run: str
    why: str


class Pruned(Record):
    """The result: how many of the newest finished runs were kept, which others were kept, which were deleted."""

    kept: int
    stays: tuple[Stays, ...] = ()
    removed: tuple[str, ...] = ()
    size: int = 0  # bytes of what was removed, or would be


def prune(keep: int, *, older_than: float = 0.0, dry_run: bool = False) -> Pruned:
    """Delete all finished runs but the `keep` newest; with `older_than` only those that ended so many seconds ago.

    A run that has not ended is not counted: it can be continued. `dry_run`: delete nothing. Raises InvalidInput, also
    when a run holds the workspace, and RecordsLost.
    """
    names = known_runs()
    if len(names) <= keep:
        return Pruned(kept=len(names))
    lock = WorkspaceLock(HOME)
    lock.acquire(f"run -, process {os.getpid()} on {os.uname().nodename}, since it deletes old runs")
    try:
        _sweep()
        stays: list[Stays] = []
        removed: list[str] = []
        size = kept = 0
        try:
            queued = read_record(os.path.join(HOME, queuefile.FOLDER, queuefile.FILE))
        except OSError:
            queued = b""
        for name in names:
            folder = os.path.join(HOME, RUNS, name)
            why, ended = ("it is in the queue", 0.0) if name.encode() in queued else _unfinished(name)
            if not why and kept < keep:
                kept += 1
                continue
            if not why and older_than and time.time() - ended < older_than:
                why = "it is too recent"
            if why:
                stays.append(Stays(run=name, why=why))
                continue
            size += sum(os.lstat(path).st_size for path in _files(folder))
            removed.append(name)
            if not dry_run:
                remove(folder, name)
        return Pruned(kept=kept, stays=tuple(stays), removed=tuple(removed), size=size)
    finally:
        lock.release()


def _unfinished(name: str) -> tuple[str, float]:
    """Return why a run must stay, "" for a finished one, and when it ended, in seconds since 1970."""
    try:
        reading, going = read_beside(name)
        ended = reading.events[-1] if reading.events else None
        if going:
            return "it is running", 0.0
        if reading.condition != "intact" or not isinstance(ended, RunEnded):
            return f"it did not end; to continue: planrun resume {name}", 0.0
        # Only a run that was ended early or rolled back can have pending cleanup; only then its plan is read.
        cut = any(isinstance(event, RunEnding | RollbackStarted) for event in reading.events)
        if cut and owes(read_run(name, cache=True).state):
            return f"it has pending cleanup: planrun finalize {name}", 0.0
        return "", epoch(ended.at)
    except (InvalidInput, InvalidPlan, ValueError):
        return "its records cannot be read", 0.0


def remove(folder: str, name: str) -> None:
    """Delete a run: first its name, so that no half-deleted run is listed, then its content."""
    gone = os.path.join(os.path.dirname(os.path.dirname(folder)), f"{PRUNED}-{name}")
    try:
        os.rename(folder, gone)
        shutil.rmtree(gone)
    except OSError as error:
        raise InvalidInput(f"cannot remove {folder}: {error.strerror}") from None


def _sweep() -> None:
    """Finish a deletion that was killed."""
    for name in os.listdir(HOME):
        if name.startswith(f"{PRUNED}-"):
            shutil.rmtree(os.path.join(HOME, name), ignore_errors=True)


def _files(folder: str) -> Iterator[str]:
    for parent, _folders, files in os.walk(folder):
        yield from (os.path.join(parent, name) for name in files)


def of_project(settings: Settings, folder: str = "") -> Settings:
    """Return settings with those of the project in a folder, where the caller gives none; raises InvalidPlan."""
    found = project(folder)
    fields: dict[str, object] = {}
    if not found.persist:
        fields["no_persist"] = True
    if found.remembers_plans:
        fields["remember_plans"] = True
    if found.stored_runs:
        fields["stored_runs"] = found.stored_runs
    return settings.but(**fields) if fields else settings


def tidy(result: Result, settings: Settings) -> str:
    """Delete what is not kept and return a line about it, "" for nothing; what cannot be deleted stays.

    Only a run that completed and owes no cleanup loses its records: any other may be resumed. Its reports stay.
    """
    state = result.state
    try:
        if settings.no_persist and result.lost is None and state.status == "completed" and not owes(state):
            remove(result.rundir, os.path.basename(result.rundir))
            return "the records of the run are deleted, its reports stay (--no-persist)"
        if settings.stored_runs:
            removed = len(prune(settings.stored_runs).removed)
            if removed:
                return f"deleted {removed} older run{'' if removed == 1 else 's'} (stored_runs)"
    except InvalidInput as error:
        return str(error)
    return ""
