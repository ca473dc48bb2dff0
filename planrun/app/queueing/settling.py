"""Bring what a queue says in step with what became of processes that nobody saw end."""

from __future__ import annotations

import os

from planrun.app.queueing.outcomes import began, of_ledger, rundir_of, size_of
from planrun.app.queueing.workers import lives
from planrun.clock import SystemClock
from planrun.model.queued import EntryEnded, EntryQueued

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.queued import Entry, QueueEvent
    from planrun.records.queuefile import Change


def folder_of(workspace: str, entry: Entry) -> str:
    """Return the folder that an entry runs in."""
    return os.path.join(workspace, entry.added.folder)


def records_of(workspace: str, entry: Entry) -> str:
    """Return the folder of the records of an entry's run; empty when it has none."""
    return rundir_of(folder_of(workspace, entry), entry.run)


def is_lost(workspace: str, entry: Entry) -> bool:
    """Whether an entry counts as running and no process works on it."""
    worker = entry.worker
    return worker is not None and not lives(worker, entry.run, folder_of(workspace, entry))


def settle(workspace: str, change: Change, entry: Entry) -> None:
    """Record what became of an entry whose process is gone, by its run's ledger."""
    rundir = records_of(workspace, entry)
    at = SystemClock().stamp()
    outcome = of_ledger(rundir)
    event: QueueEvent
    if outcome:
        event = EntryEnded(at=at, entry=entry.number, **vars(outcome))
    elif entry.cancelling:
        event = EntryEnded(at=at, entry=entry.number, status="cancelled", reason="cancelled")
    else:
        run = entry.run if began(rundir) else ""
        event = EntryQueued(at=at, entry=entry.number, run=run, reason="its process was lost")
    change.add(event)


def has_moved(workspace: str, entry: Entry) -> bool:
    """Whether there is something new about an entry that waits: the ledger of its run is longer than it was."""
    ended = entry.ended if entry.status == "waiting" else None
    return ended is not None and size_of(records_of(workspace, entry)) != ended.size


def settle_resting(workspace: str, change: Change, entry: Entry) -> None:
    """Look after an entry whose run moved on: it was answered, or somebody had it go on."""
    rundir = records_of(workspace, entry)
    outcome = of_ledger(rundir)
    at = SystemClock().stamp()
    if outcome and outcome.status != "waiting":
        change.add(EntryEnded(at=at, entry=entry.number, **vars(outcome)))
    else:
        change.add(EntryQueued(at=at, entry=entry.number, run=entry.run, reason="it was answered"))
