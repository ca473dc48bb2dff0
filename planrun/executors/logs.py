"""The log files of attempts; an attempt without output gets no file.

Creating a file costs a quarter of a short attempt. So a child writes to a slot, `.slot-N`, which is renamed to the
log's path when the attempt wrote something or has been running for a while; silent attempts share one slot. Where the
last attempts all wrote something, the next one writes into its log at once, which saves the renaming. `.slots`
records the attempt of each slot before the attempt starts, so that `recover` can rename the slots of a killed planrun.

A slot is reused only when no process has it open for writing, which a read lease shows (fcntl(2)): so a leftover
process cannot write into the log of a later attempt. Without leases (macOS, NFS) each attempt has its own file.
"""

from __future__ import annotations

import _signal
import errno
import fcntl
import os

from planrun.errors import RecordsLost
from planrun.sha256 import sha256

HASHED = 1 << 24  # bytes of a log up to which it is hashed; takes some 40 ms
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from planrun.executors.spawn import FileAction

    class Output(Protocol):
        """The output of one attempt on its way into its log.

        `digest`: the SHA-256 of the log, known after settle(); "" for an empty log and for one larger than HASHED.
        """

        digest: str

        @property
        def opening(self) -> list[FileAction]:
            """The actions for the child's descriptors 1 and 2."""

        @property
        def source(self) -> int:
            """The descriptor that receive() reads from; -1 when the child writes into the log itself."""

        @property
        def shown(self) -> bool:
            """Whether the log needs no show() to be followed."""

        def refusal(self) -> RecordsLost | None:
            """Why a child could not take it for its output, when that is so."""

        def begin(self) -> None:
            """Record that the child has started."""

        def main_ended(self, *, failed: bool) -> None:
            """Record that the main process was reaped."""

        def last_errors(self) -> tuple[int, int] | None:
            """Where in the log the last of stderr begins and ends, in bytes; None: there is none.

            A begin of -1: both outputs are mixed up to the end.
            """

        def receive(self) -> bool:
            """Take one piece without waiting; False when nothing more can come. Raises RecordsLost."""

        def size(self) -> int:
            """Bytes that the attempt has written, as far as they have arrived."""

        def read(self, start: int, size: int) -> bytes:
            """Return what is in the log from byte `start` on, at most `size` bytes."""

        def held(self) -> bool:
            """Whether any process still has it open for writing; False where that cannot be known."""

        def held_as(self) -> tuple[int, int] | None:
            """Device and inode by which its writers are to be found; None when it has none."""

        def unfinished(self) -> bool:
            """Whether what is still to come would be lost without receive()."""

        def show(self) -> None:
            """Put the log in its place, also while it is being written."""

        def settle(self) -> int:
            """End its use, nothing of it lost, and return the size of the log in bytes. Raises RecordsLost."""

    class Outputs(Protocol):
        """Hands out an output for each attempt."""

        def open(self, path: str) -> Output:
            """Return the output whose log belongs to `path`.

            Raises RecordsLost, and OSError when descriptors or memory are short.
            """

        def close(self) -> None:
            """Remove unused files."""


_INDEX = ".slots"
_SLOT = ".slot-"
_RECORD = 512  # bytes of the index for one slot: the log's path below the folder, then newlines
_CHILD_OPENS = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
# With this many files open the child opens the log itself: planrun may have 1024 (ulimit -n), and an attempt needs two
# descriptors at least.
_MANY = 400
_LONGEST_LINE = 2048  # bytes of the last line that a process wrote to stderr
# A step may have put a named pipe in the log's place: unlike O_WRONLY, O_RDWR does not block on it.
_SHARED = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW
_PRINTING = 3  # so many attempts with output in a row: the next one will probably have some, too
# Not an error of the disk, but a temporary shortage.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Log:
    """The file one attempt writes into, open for reading here.

    The child's stdout and stderr are two openings of it, both for appending, that this process shares: after a write
    the position of an opening is the end of that write. So the order of all output is kept, and what was written last
    to stderr can still be found. They are closed when the main process has ended, so that a lease sees other writers.
    """

    __slots__ = (
        "_ends",
        "_fd",
        "_logs",
        "_positions",
        "_released",
        "_slot",
        "_where",
        "digest",
        "opening",
        "path",
    )

    source = -1  # nothing passes through planrun

    def __init__(self, logs: Logs, where: str, slot: int | None) -> None:
        self.path = where  # where it belongs
        self.digest = ""
        self._logs = logs
        self._where = where
        self._slot = slot  # its number; None: it is in its place
        self._released = False  # no writer is left, and without a writer none can come
        # An existing slot holds the output of another attempt.
        self._fd = create(where, os.O_RDONLY | (os.O_TRUNC if slot is None else os.O_EXCL))
        self.opening: list[FileAction] = []  # actions of the child on its descriptors 1 and 2
        self._ends: tuple[int, ...] = ()  # stdout and stderr, shared with the child
        self._positions = (0, 0)

    @property
    def shown(self) -> bool:
        """Whether it is in its place."""
        return self._slot is None

    def refusal(self) -> RecordsLost | None:
        """Why a child cannot open it, when that is so: a step may have removed its folder or taken its rights."""
        try:
            os.close(os.open(self._where, _CHILD_OPENS))
        except OSError as error:
            return None if error.errno in _PASSING else lost(self.path, error)
        return None

    def connect(self) -> None:
        """Open it for the child that is about to start; raises OSError."""
        self._positions = (0, 0)
        if self._fd >= _MANY:
            self.opening = [
                (os.POSIX_SPAWN_OPEN, 1, self._where, _CHILD_OPENS, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ]
            return
        self._ends = (os.open(self._where, _SHARED),)
        self._ends = (*self._ends, os.open(self._where, _SHARED))
        self.opening = [(os.POSIX_SPAWN_DUP2, self._ends[0], 1), (os.POSIX_SPAWN_DUP2, self._ends[1], 2)]

    def begin(self) -> None:
        """Do nothing: the child writes into the file itself."""

    def main_ended(self, *, failed: bool) -> None:
        """Record the positions of both outputs of a failed attempt, and close planrun's descriptors."""
        if failed and len(self._ends) == 2:
            out, err = self._ends
            self._positions = (os.lseek(out, 0, os.SEEK_CUR), os.lseek(err, 0, os.SEEK_CUR))
        self._disconnect()

    def _disconnect(self) -> None:
        ends, self._ends = self._ends, ()
        if len(ends) == 2 and ends[1] == ends[0] + 1:
            os.closerange(ends[0], ends[1] + 1)  # one system call
            return
        for end in ends:
            os.close(end)

    def last_errors(self) -> tuple[int, int] | None:
        """Return where the last of stderr begins and ends, in bytes; None when the main process wrote none.

        What follows the end of stdout is stderr; where stdout ends later, only the last line of stderr is certain.
        """
        out, end = self._positions
        if not end:
            return None
        if end > out:
            return out, end
        start = max(0, end - _LONGEST_LINE)
        before = os.pread(self._fd, end - 1 - start, start)
        return start + before.rfind(b"\n") + 1, end

    def receive(self) -> bool:
        """Do nothing: the child writes into the file itself."""
        return False

    def unfinished(self) -> bool:
        """Whether planrun would have to wait for more: never, late output arrives in the log anyway."""
        return False

    def size(self) -> int:
        """Bytes written so far."""
        return os.fstat(self._fd).st_size

    def read(self, start: int, size: int) -> bytes:
        """Return what is in the log from byte `start` on, at most `size` bytes."""
        return os.pread(self._fd, size, start)

    def held_as(self) -> tuple[int, int] | None:
        """Device and inode by which its writers are to be found; None when it has none."""
        if not self.held():
            return None
        stat = os.fstat(self._fd)
        return stat.st_dev, stat.st_ino

    def held(self) -> bool:
        """Whether any process still has it open for writing; False where that cannot be known."""
        if not self._released:
            self._released = not self._logs.leased or _lease(self._fd)
        return not self._released

    def show(self) -> None:
        """Put it in its place, also while it is being written."""
        if self._slot is not None:
            _move(self._where, self.path)
            self._logs.give_back(self._slot)
            self._where, self._slot = self.path, None

    def settle(self) -> int:
        """End its use and return its size in bytes: an empty log is deleted, any other is in its place."""
        self._disconnect()
        stat = os.fstat(self._fd)
        size = stat.st_size
        self._logs.printing = self._logs.printing + 1 if size else 0
        if not stat.st_nlink:
            self.remove()
            if size:
                os.close(self._fd)
                raise removed(self.path, size)
        elif size:
            self.show()
            self.digest = digest(self._fd, size)
        elif self._slot is not None and not self.held():
            self._logs.keep(self)
            return 0
        else:
            self.remove()
        os.close(self._fd)
        return size

    def remove(self) -> None:
        """Unlink it, and its folder if nothing else is in it."""
        _remove(self._where)
        if self._slot is not None:
            self._logs.give_back(self._slot)
            self._slot = None
        else:
            _remove_folder(os.path.dirname(self._where))

    def works_with_leases(self) -> bool:
        """Whether a lease on it is refused while there is a writer and granted when there is none."""
        if not hasattr(fcntl, "F_SETLEASE"):
            return False
        try:
            # A writer that comes while a lease is held makes the kernel send SIGIO, which would end us.
            if _signal.getsignal(_signal.SIGIO) == _signal.SIG_DFL:
                _signal.signal(_signal.SIGIO, _signal.SIG_IGN)
        except ValueError:  # not the main thread
            return False
        writer = os.open(self._where, _CHILD_OPENS)
        refused = not _lease(self._fd)
        os.close(writer)
        return refused and _lease(self._fd)

    def assign(self, path: str, index: int, name: bytes) -> None:
        """Make it the log that belongs to `path`, and record that in the index."""
        self.path = path
        self._released = False
        os.pwrite(index, name.ljust(_RECORD, b"\n"), (self._slot or 0) * _RECORD)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


class Logs:
    """Hands out logs; `folder` is where the slots live and all logs below it, "" for none.

    What cannot be written raises RecordsLost; OSError only when descriptors or memory are short.
    """

    def __init__(self, folder: str = "") -> None:
        self.leased = False  # leases work here; known when the first log was handed out
        self.printing = 0  # how many attempts in a row had output
        self._folder = folder
        self._tried = not folder
        self._free: list[Log] = []
        self._slots: set[int] = set()  # numbers in use
        self._unused: list[int] = []  # numbers that were
        self._next = 0
        self._index = -1

    def open(self, path: str) -> Log:
        """Return an empty log for an attempt whose output belongs to `path`."""
        try:
            if not self._tried:
                self._try_leases()
            name = b"" if self.printing >= _PRINTING else self._slot_name(path)
            if not name and self.printing:
                _try_folder(os.path.dirname(path))
            if name:
                log = self._free.pop() if self._free else self._new_slot()
                log.assign(path, self._index, name)
            else:
                log = Log(self, path, None)
            log.connect()
        except OSError as error:
            if error.errno in _PASSING:
                raise
            raise lost(path, error) from None
        return log

    def keep(self, log: Log) -> None:
        """Make an empty slot available again."""
        self._free.append(log)

    def give_back(self, slot: int) -> None:
        """Make a number available again."""
        self._slots.discard(slot)
        self._unused.append(slot)

    def close(self) -> None:
        """Remove the free slots, and the index unless slots are still in use."""
        while self._free:
            log = self._free.pop()
            log.remove()
            log.close()
        if self._index >= 0:
            os.close(self._index)
            self._index = -1
            if not self._slots:
                _remove(f"{self._folder}/{_INDEX}")

    def _slot_name(self, path: str) -> bytes:
        """The record of `path` in the index; empty when it can have no slot."""
        if not self.leased or not path.startswith(f"{self._folder}/"):
            return b""
        name = os.fsencode(path[len(self._folder) + 1 :])
        return name if len(name) < _RECORD and b"\n" not in name else b""

    def _try_leases(self) -> None:
        recover(self._folder)
        if not os.path.isdir(self._folder):
            _make_folder(self._folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        self._index = os.open(f"{self._folder}/{_INDEX}", flags, 0o600)
        slot = self._new_slot()
        self._free.append(slot)
        self._tried = True
        self.leased = slot.works_with_leases()
        if not self.leased:
            self.close()

    def _new_slot(self) -> Log:
        while True:
            number = self._unused.pop() if self._unused else self._next
            self._next = max(self._next, number + 1)
            try:
                log = Log(self, f"{self._folder}/{_SLOT}{number}", number)
            except FileExistsError:
                continue
            self._slots.add(number)
            return log


def recover(folder: str) -> tuple[str, ...]:
    """Rename the slots of a killed planrun to their logs; return the paths of these logs."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):  # a stranger put something else there
        return ()
    slots = [name for name in names if name.startswith(_SLOT)]
    recovered: list[str] = []
    try:
        if slots or _INDEX in names:
            owners = _owners(folder)
            for slot in slots:
                path = owners.get(slot, "")
                if not os.path.getsize(f"{folder}/{slot}") or (path and os.path.exists(path)):
                    _remove(f"{folder}/{slot}")
                elif path:  # else its attempt is unknown, and it stays
                    _move(f"{folder}/{slot}", path)
                    recovered.append(path)
            _remove(f"{folder}/{_INDEX}")
    except OSError as error:
        raise lost(folder, error) from None
    return tuple(recovered)


def _owners(folder: str) -> dict[str, str]:
    """Return the paths of the slots that the index names."""
    from planrun.opening import NO_RECORD, read_record  # a run itself reads no records

    try:
        records = read_record(f"{folder}/{_INDEX}")
    except OSError as error:
        if error.errno not in NO_RECORD:
            raise
        return {}
    owners = {}
    for number in range(len(records) // _RECORD):
        name = os.fsdecode(records[number * _RECORD : (number + 1) * _RECORD].rstrip(b"\n\0"))
        if name and "\0" not in name and ".." not in name.split("/"):
            owners[f"{_SLOT}{number}"] = f"{folder}/{name}"
    return owners


def elsewhere(folder: str) -> dict[str, str]:
    """Return the slot of each log that has one, by the path of the log: for other processes that read while it runs.

    An entry may be outdated at once: what was read of a slot belongs to the log while the entry is there afterwards,
    or when both are one file by then.
    """
    return {path: f"{folder}/{slot}" for slot, path in _owners(folder).items()}


def create(path: str, how: int) -> int:
    """Create a file for the owner alone, opened with the flags `how`; a link in its place is refused."""
    flags = os.O_CREAT | os.O_NOFOLLOW | how
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def _make_folder(path: str) -> None:
    from planrun.folders import make_private  # the folder of most runs is there

    make_private(path)


def _move(source: str, path: str) -> None:
    try:
        _make_folder(os.path.dirname(path))  # first: most steps have one attempt
        os.rename(source, path)
    except OSError as error:
        raise lost(path, error) from None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # a step may have removed it
        return


def _try_folder(path: str) -> None:
    """Make a folder that is probably missing; what prevents it shows when the log is created."""
    try:
        os.mkdir(path, 0o700)
    except OSError:
        return


def _remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:  # it has logs of other attempts
        return


def lost(path: str, error: OSError) -> RecordsLost:
    """The file cannot be written."""
    return RecordsLost(f"cannot write {path}: {error.strerror}")


def removed(path: str, size: int) -> RecordsLost:
    """The file is gone, and so many bytes with it."""
    return RecordsLost(f"{path} was removed while it was in use; {size} bytes of output are lost")


def digest(fd: int, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes of a log; "" when it is larger than HASHED or cannot be read."""
    if size > HASHED:
        return ""
    try:
        return str(sha256(os.pread(fd, size, 0)).hexdigest())
    except OSError:
        return ""


def _lease(fd: int) -> bool:
    """Take and return a read lease: the kernel grants it when no process has the file open for writing."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
