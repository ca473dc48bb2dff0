"""The queue of plans, as the fold of its events: entries in their order, what holds each up, what may start next.

An entry is `queued`, `running`, `waiting` (its run wants an answer, or was paused), `completed`, `failed`,
`cancelled`, or `lost`: its machine does not answer, and no other one can see what its run did. `blocked` is not
stored: it is what a queued entry is as long as one that it comes after failed, was cancelled or lost, or is blocked
itself; so a retry of that one also unblocks all that come after it.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

FAULTS = ("failed", "cancelled", "lost", "blocked")
"""The ends of an entry that block later entries."""


class QueueBegun(Record):
    """First line of a queue that was cleared: the highest number that was given so far, since none is given twice."""

    at: str
    last: int


class EntryAdded(Record):
    """A plan was queued."""

    at: str
    entry: int
    plan: str  # path, from the queue's workspace unless absolute
    folder: str  # where it runs, from the queue's workspace unless absolute
    options: tuple[str, ...] = ()  # words of `planrun execute`
    priority: int = 0
    after: tuple[int, ...] = ()  # entries that have to be completed first
    sha256: str = ""  # of the plan's bytes; empty: whatever the file holds when the entry starts
    repeatable: bool = False  # another machine may run it from its beginning when its machine is lost


class Worker(Record):
    """A process that works on an entry; pid, host and start time together identify it for good."""

    pid: int
    born: str  # its start time, as the system reports it
    boot: str  # the id of the boot; empty where the system has none
    host: str
    runner: str = ""  # of a queue that machines share: the process of `queue run`, which holds a lease
    lease: float = 0.0  # seconds after its last sign of life in which the runner may still work
    folder: str = ""  # the workspace of the runner on its machine


class EntryStarted(Record):
    """A process was made that works on a run as soon as this line is written, and not before."""

    at: str
    entry: int
    verb: str  # execute, resume
    run: str
    worker: dict[str, Any]  # fields of Worker


class EntryCancelling(Record):
    """A user asked to cancel a running entry."""

    at: str
    entry: int


class EntryEnded(Record):
    """The result of an entry; `waiting` is no end, but no process works on it."""

    at: str
    entry: int
    status: str
    reason: str = ""
    exit_code: int | None = None
    size: int = 0  # bytes of the ledger of a run that waits: more of them may be an answer


class EntryQueued(Record):
    """An entry is queued again: its process was lost, or a user retries it; `run`: the one to resume, if any."""

    at: str
    entry: int
    run: str = ""
    reason: str = ""


class QueuePaused(Record):
    """Nothing more starts."""

    at: str


class QueueResumed(Record):
    """Entries start again."""

    at: str


QueueEvent = (
    QueueBegun
    | EntryAdded
    | EntryStarted
    | EntryCancelling
    | EntryEnded
    | EntryQueued
    | QueuePaused
    | QueueResumed
)
EVENTS: dict[str, type[QueueEvent]] = {
    "queue_begun": QueueBegun,
    "entry_added": EntryAdded,
    "entry_started": EntryStarted,
    "entry_cancelling": EntryCancelling,
    "entry_ended": EntryEnded,
    "entry_queued": EntryQueued,
    "queue_paused": QueuePaused,
    "queue_resumed": QueueResumed,
}
NAMES: dict[type[QueueEvent], str] = {event: name for name, event in EVENTS.items()}


class Entry:
    """One queued plan and how far it is."""

    __slots__ = ("added", "cancelling", "ended", "reason", "run", "started", "status")

    def __init__(self, added: EntryAdded) -> None:
        self.added = added
        self.status = "queued"
        self.reason = ""
        self.run = ""  # the run it has, or is to go on with
        self.started: EntryStarted | None = None
        self.ended: EntryEnded | None = None
        self.cancelling = False

    @property
    def number(self) -> int:
        """Its name for users."""
        return self.added.entry

    @property
    def worker(self) -> Worker | None:
        """The process that works on it; None when none does."""
        if self.status != "running" or self.started is None:
            return None
        return Worker(**self.started.worker)


class Queue:
    """All entries; the only writer is `apply`."""

    def __init__(self, events: Iterable[QueueEvent] = ()) -> None:
        self.entries: dict[int, Entry] = {}
        self.last = 0
        self.paused = False
        for event in events:
            self.apply(event)

    def apply(self, event: QueueEvent) -> None:
        """Take one event in; one about an entry that is not there changes nothing."""
        if isinstance(event, EntryAdded):
            self.entries[event.entry] = Entry(event)
            self.last = max(self.last, event.entry)
        elif isinstance(event, QueueBegun):
            self.last = event.last
        elif isinstance(event, QueuePaused | QueueResumed):
            self.paused = isinstance(event, QueuePaused)
        elif event.entry in self.entries:
            entry = self.entries[event.entry]
            if isinstance(event, EntryStarted):
                entry.status, entry.started, entry.run = "running", event, event.run
                entry.reason, entry.cancelling, entry.ended = "", False, None
            elif isinstance(event, EntryCancelling):
                entry.cancelling = True
            elif isinstance(event, EntryEnded):
                entry.status, entry.ended, entry.reason = event.status, event, event.reason
            else:
                entry.status, entry.run, entry.reason, entry.ended = "queued", event.run, event.reason, None
                entry.cancelling = False

    def statuses(self) -> dict[int, str]:
        """The status of each entry, with `blocked` for those behind an entry that failed."""
        found: dict[int, str] = {}
        for number in sorted(self.entries):  # whatever an entry comes after has a lower number
            entry = self.entries[number]
            blocked = entry.status == "queued" and any(
                found.get(before) in FAULTS for before in entry.added.after
            )
            found[number] = "blocked" if blocked else entry.status
        return found

    def ranked(self) -> list[Entry]:
        """All entries: highest priority first, and of one priority the oldest."""
        return sorted(self.entries.values(), key=lambda entry: (-entry.added.priority, entry.number))

    def startable(self) -> Iterator[Entry]:
        """Yield what may start now, in this order; folders that are in use are the caller's concern."""
        if self.paused:
            return
        statuses = self.statuses()
        for entry in self.ranked():
            if statuses[entry.number] == "queued" and not self.before(entry, statuses):
                yield entry

    def before(self, entry: Entry, statuses: Mapping[int, str]) -> tuple[int, ...]:
        """The entries that keep this one waiting, or from running at all."""
        return tuple(
            number for number in entry.added.after if statuses.get(number, "completed") != "completed"
        )
