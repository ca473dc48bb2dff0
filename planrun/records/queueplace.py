"""A queue that several machines share, in a place: objects `events/000000001` and so on, each with lines of a ledger.

A change reads what is there and creates the object with the next number. Of two changes at the same time one alone
can: the other one raises Conflict, and its caller begins again with what is there now. So an event is written on the
state that its writer saw, whoever stalled in between. No lock can be left behind.

An object that begins with `queue_begun` has the whole queue: readers start at the newest one, which `base` names.
Objects are never removed: a writer that stalled could create a removed one again.
"""

from __future__ import annotations

import os
import random
import time

from planrun.clock import SystemClock
from planrun.errors import InvalidInput, RecordsLost, RemoteError
from planrun.model.jsontext import members
from planrun.model.queue import EVENTS, NAMES, Queue, QueueBegun, QueuePaused
from planrun.records.ledger import GENESIS
from planrun.records.queuefile import OUTPUT, stays
from planrun.records.reading import event_of, verify
from planrun.records.rundir import HOME, home
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any, Self, TypeVar

    from planrun.model.queue import QueueEvent
    from planrun.places.place import Place

    Result = TypeVar("Result")

FOLDER = "queue-outputs"
"""In `.planrun`: what entries printed on this machine."""
_WHOLE = 200
"""Objects after which the next change writes the whole queue."""
_BASE = "base"
_TRIES = 200
_PAUSE = 0.05  # seconds before a change is tried again, at most; more with each try


class Conflict(Exception):
    """Another machine changed the queue at the same time."""


def until_done(call: Callable[[], Result]) -> Result:
    """Return what a call returns that changes a queue, called again after a Conflict; raises RemoteError."""
    for attempt in range(_TRIES):
        try:
            return call()
        except Conflict:
            time.sleep(random.random() * _PAUSE * min(attempt + 1, 20))  # noqa: S311 - no secret
    raise RemoteError("the queue changes too often; try again")


class QueuePlace:
    """The queue in a place; entries run in `workspace` on this machine."""

    def __init__(self, workspace: str, place: Place) -> None:
        self.workspace = workspace
        self.place = place
        self.folder = os.path.join(workspace, HOME, FOLDER)
        if not place.atomic:
            raise InvalidInput(
                f"{place.url} cannot hold a queue: two machines could take one entry; use a folder, s3://, gs:// or "
                "sftp://"
            )
        self.next = 1  # number of the object that does not exist yet
        self.whole = 1  # of the newest object with the whole queue
        self.events: tuple[Any, ...] = ()
        self.head = GENESIS
        base = place.read(_BASE)
        if base and base.isdigit():
            self.next = self.whole = int(base)
        self.pull()

    def read(self) -> Queue:
        """Return the current queue; raises InvalidInput when its objects were altered, RemoteError."""
        self.pull()
        return Queue(self.events)

    def prepare(self) -> None:
        """Create the folder for what entries print on this machine; raises RecordsLost."""
        home(self.workspace)
        for folder in (self.folder, os.path.join(self.folder, OUTPUT)):
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
            except OSError as error:
                raise RecordsLost(f"cannot make {folder}: {error.strerror}") from None

    def stamp(self) -> tuple[int, int]:
        """Return a value that changes whenever the queue changes."""
        self.pull()
        return (self.next, 0)

    def output(self, entry: int) -> str:
        """Return the path of the file with the output of an entry that ran on this machine."""
        return os.path.join(self.folder, OUTPUT, f"{entry}.log")

    def change(self) -> PlaceChange:
        """Begin a change, which is written at its end; raises Conflict when another one came first."""
        return PlaceChange(self)

    def pull(self) -> None:
        """Read the objects that are new."""
        while (data := self.place.read(self.key(self.next))) is not None:
            self._take(data)

    def key(self, number: int) -> str:
        """Return the key of an object."""
        return f"events/{number:09d}"

    def _take(self, data: bytes) -> None:
        """Take the next object in; raises InvalidInput."""
        lines = data.partition(b"\n")[2]  # the first line makes it unique
        whole = b'"type":"queue_begun"' in lines.partition(b"\n")[0]
        before: tuple[Any, ...] = () if whole else self.events
        previous = GENESIS if whole else self.head

        def read(line: bytes, number: int, last: str) -> Any:
            return event_of(EVENTS, line, number + len(before), previous if number == 1 else last)

        reading = verify(lines, read=read)
        if reading.condition != "unfinished":
            raise InvalidInput(
                f"the queue is not what was written: {self.place.url}/{self.key(self.next)}: {reading.detail}; "
                "use another address, and add the plans again"
            )
        self.events = (*before, *reading.events)
        self.head = reading.head
        if whole:
            self.whole = self.next
        self.next += 1


class PlaceChange:
    """A change of a shared queue: `with queue.change() as change: change.add(event)`."""

    def __init__(self, source: QueuePlace) -> None:
        self._source = source
        self._events: list[QueueEvent] = []
        self._gone: Collection[int] = ()
        self.queue = Queue()

    def __enter__(self) -> Self:
        self.queue = self._source.read()
        return self

    def add(self, event: QueueEvent) -> None:
        """Add an event, which is written at the end of the change."""
        self._events.append(event)
        self.queue.apply(event)

    def forget(self, numbers: Collection[int]) -> None:
        """Remove entries from the queue."""
        self._gone = numbers

    def __exit__(self, error: object, *_rest: object) -> None:
        if error is not None or not (self._events or self._gone):
            return
        source = self._source
        whole = bool(self._gone) or source.next - source.whole >= _WHOLE
        if whole:
            kept = [event for event in (*source.events, *self._events) if stays(event, self._gone)]
            at = SystemClock().stamp()
            paused = [QueuePaused(at=at)] if self.queue.paused else []
            data = _encoded((QueueBegun(at=at, last=self.queue.last), *kept, *paused), 0, GENESIS)
        else:
            data = _encoded(self._events, len(source.events), source.head)
        data = f"# {os.urandom(12).hex()}\n".encode() + data
        number = source.next
        if not self._create(number, data):
            source.pull()
            raise Conflict
        source.pull()
        if whole:
            source.place.write(_BASE, str(number).encode())

    def _create(self, number: int, data: bytes) -> bool:
        """Create an object; a library that repeats a request may find what it created itself."""
        key = self._source.key(number)
        try:
            if self._source.place.create(key, data):
                return True
        except RemoteError:
            if self._source.place.read(key) != data:
                raise
            return True
        return self._source.place.read(key) == data


def _encoded(events: Sequence[QueueEvent], seq: int, head: str) -> bytes:
    """Return events as lines of a ledger, after `seq` others of which the last one has the hash `head`."""
    lines = []
    for number, event in enumerate(events, seq + 1):
        body = f'{{"seq":{number},"type":"{NAMES[type(event)]}",{members(event.__dict__)}'
        head = sha256((head + body).encode()).hexdigest()
        lines.append(f'{body},"hash":"{head}"}}\n')
    return "".join(lines).encode()
