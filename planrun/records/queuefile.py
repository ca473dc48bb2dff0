"""The file of a queue: `.planrun/queue/queue.jsonl`, events in the form of a ledger, with many writers one at a time.

Every change reads what is there and adds to it under a lock of its own, which is held for moments. Readers need none:
half of a last line is one that is being written. Clearing writes a new file and puts it in the place of the old one.
"""

from __future__ import annotations

import fcntl
import os

from planrun.clock import SystemClock
from planrun.errors import InvalidInput, RecordsLost
from planrun.model.queue import EVENTS, NAMES, Queue, QueueBegun, QueuePaused
from planrun.opening import read_record
from planrun.records.ledger import Ledger, sync_path
from planrun.records.reading import event_of, verify
from planrun.records.rundir import HOME, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, Self

    from planrun.model.queue import QueueEvent
    from planrun.records.reading import Reading

FOLDER = "queue"
FILE = "queue.jsonl"
OUTPUT = "output"
"""In the queue's folder: the output of entries that ran concurrently."""
_LOCK = "change"
_NEW = FILE + ".new"


def exists(workspace: str) -> bool:
    """Whether a workspace has a queue; does not create it."""
    return os.path.exists(os.path.join(workspace, HOME, FOLDER, FILE))


class _Journal(Ledger):
    """A ledger of the events of a queue."""

    _names: Mapping[type[Any], str] = NAMES


class QueueFile:
    """The queue of a workspace."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        self.folder = os.path.join(home(workspace), FOLDER)
        self.path = os.path.join(self.folder, FILE)
        for folder in (self.folder, os.path.join(self.folder, OUTPUT)):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                if os.path.islink(folder):
                    raise RecordsLost(f"cannot keep a queue in {folder}: it is a symbolic link") from None
            except OSError as error:
                raise RecordsLost(f"cannot make {folder}: {error.strerror}") from None

    def read(self) -> Queue:
        """Return the current queue; raises InvalidInput when its file was altered."""
        return Queue(_events(_reading(self.path)))

    def stamp(self) -> tuple[int, int]:
        """Return a value that changes whenever the file changes."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return (0, 0)
        return (status.st_ino, status.st_size)

    def output(self, entry: int) -> str:
        """Return the path of the file with the output of an entry."""
        return os.path.join(self.folder, OUTPUT, f"{entry}.log")

    def change(self) -> Change:
        """Begin a change; until it ends, no other process changes the queue."""
        return Change(self)


class Change:
    """The queue under its lock: `with file.change() as change: change.add(event)`."""

    def __init__(self, file: QueueFile) -> None:
        self._file = file
        self._fd = -1
        self._journal: _Journal | None = None
        self.queue = Queue()

    def __enter__(self) -> Self:
        path = os.path.join(self._file.folder, _LOCK)
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            self._let_go()
            raise RecordsLost(f"cannot lock the queue: {path}: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self._let_go()
            raise
        return self

    def _open(self) -> None:
        reading = _reading(self._file.path)
        if reading.condition == "torn":  # its writer was killed; no other process writes now
            path = self._file.path
            try:
                os.truncate(path, reading.size)
            except OSError as error:
                raise RecordsLost(
                    f"the torn end of the queue cannot be cut off: {path}: {error.strerror}"
                ) from None
        events = _events(reading)
        self.queue = Queue(events)
        self._journal = _Journal(
            self._file.path,
            seq=len(events),
            head=reading.head,
            beside=(self._file.folder,) if not events else (),
        )

    def add(self, event: QueueEvent) -> None:
        """Record an event durably; raises RecordsLost."""
        assert self._journal is not None
        self._journal.append(event)
        self._journal.sync()
        if self._journal.lost:
            raise self._journal.lost
        self.queue.apply(event)

    def forget(self, numbers: Collection[int]) -> None:
        """Remove entries from the queue: a new file without them replaces the old one."""
        assert self._journal is not None
        kept = [event for event in _events(_reading(self._file.path)) if stays(event, numbers)]
        begun = QueueBegun(at=_now(), last=self.queue.last)
        paused = [QueuePaused(at=_now())] if self.queue.paused else []
        path = os.path.join(self._file.folder, _NEW)
        _remove(path)
        journal = _Journal(path)
        for event in (begun, *kept, *paused):
            journal.append(event)
        journal.close()
        if journal.lost:
            raise journal.lost
        self._journal.close()
        try:
            os.replace(path, self._file.path)
            sync_path(self._file.folder)
        except OSError as error:
            raise RecordsLost(f"the queue cannot be written: {self._file.path}: {error.strerror}") from None
        for number in numbers:
            _remove(self._file.output(number))
        self._open()

    def __exit__(self, *_exception: object) -> None:
        if self._journal is not None:
            self._journal.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def stays(event: QueueEvent, gone: Collection[int]) -> bool:
    """Whether an event is about an entry that stays; the state of the queue as a whole is written anew."""
    return getattr(event, "entry", None) not in (*gone, None)


def _now() -> str:
    return SystemClock().stamp()


def _reading(path: str) -> Reading:
    try:
        data = read_record(path)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise InvalidInput(f"cannot read the queue: {path}: {error.strerror}") from None
    reading = verify(data, read=_event)
    if reading.condition == "newer":
        raise InvalidInput(f"the queue is of a later version: {path}:{reading.line}: {reading.detail}")
    if reading.condition == "altered":
        raise InvalidInput(
            f"the queue is not what was written: {path}:{reading.line}: {reading.detail}; "
            "mend or remove the file, and add the plans again"
        )
    return reading


def _event(line: bytes, number: int, previous: str) -> Any:
    return event_of(EVENTS, line, number, previous)


def _events(reading: Reading) -> tuple[Any, ...]:
    return reading.events


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordsLost(f"cannot remove {path}: {error.strerror}") from None
