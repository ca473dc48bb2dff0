"""Locks of this user on this host, for steps and for whole runs: tickets, served in order, that end with the process.

A ticket is a numbered file that names the requested locks and the capacity of each. Its process holds a flock on it
until it ends, and no other process ever has that descriptor. A ticket is served when for each of its locks fewer
earlier tickets exist than its capacity. So there is no server and no stale state, and the order is first come, first
served. One mutex, held briefly, guards the creation and the check of tickets.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from planrun.errors import RecordsLost
from planrun.folders import make_private
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan.cache import folder as plans_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FOLDER = "locks"
_MUTEX = "door"
_ENDING = ".ticket"
_SOONEST, _LATEST = 0.05, 0.5  # seconds between two checks, longer for later tickets


class _Ticket:
    """The ticket of a step or of a run."""

    def __init__(self, number: int, path: str, fd: int, slots: Mapping[str, int]) -> None:
        self.number = number
        self.path = path
        self.fd = fd
        self.slots = slots
        self.served = False
        self.message = ""
        self.looked = 0.0
        self.pause = _SOONEST


class Other(Record):
    """An earlier ticket."""

    number: int
    slots: Mapping[str, int]
    who: str


class HostLocks:
    """The tickets of one run; `slots`: capacities of locks, where not 1."""

    def __init__(self, run: str, slots: Mapping[str, int], folder: str = "") -> None:
        self._run = run
        self._slots = slots
        self._folder = folder or _own_folder()
        self._tickets: dict[str, _Ticket] = {}

    def claim(self, step: str, names: tuple[str, ...], kind: str = "lock") -> str:
        """Return "" when a step gets all these locks, otherwise why it must wait.

        The first call takes a ticket, later ones check whether it is served; rapid calls repeat the answer.
        """
        ticket = self._tickets.get(step)
        now = time.monotonic()
        if ticket is not None and (ticket.served or now - ticket.looked < ticket.pause):
            return ticket.message
        try:
            with _Mutex(self._folder):
                if ticket is None:
                    slots = {f"{kind} {name}": self._slots.get(name, 1) for name in names}
                    number = max([number for number, _ in _numbered(self._folder)], default=0) + 1
                    path = os.path.join(self._folder, f"{number:012d}{_ENDING}")
                    fd = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
                    )
                    try:
                        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        who = f"run {self._run}, process {os.getpid()}" + (f", step {step}" if step else "")
                        os.write(fd, dumps({"slots": dict(slots), "who": who}).encode())
                    except OSError:
                        os.unlink(path)
                        os.close(fd)
                        raise
                    ticket = self._tickets[step] = _Ticket(number, path, fd, slots)
                self._look(ticket)
        except OSError as error:
            why = f'the lock "{", ".join(names)}" cannot be had: {error.strerror}'
            if ticket is not None:
                ticket.message, ticket.looked = why, now
            return why
        return ticket.message

    def release(self, step: str) -> None:
        """Release the locks of a step, or its ticket."""
        ticket = self._tickets.pop(step, None)
        if ticket is None:
            return
        try:
            os.unlink(ticket.path)
        except OSError:  # the next process sees that no process holds it
            pass
        os.close(ticket.fd)

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again."""
        now = time.monotonic()
        waits = [ticket.looked + ticket.pause - now for ticket in self._tickets.values() if not ticket.served]
        return max(0.01, min(waits, default=_LATEST))

    def close(self) -> None:
        """Release everything."""
        for step in list(self._tickets):
            self.release(step)

    def _look(self, ticket: _Ticket) -> None:
        before = [
            other
            for other in _living(self._folder, ticket.number)
            if ticket.slots.keys() & other.slots.keys()
        ]
        ticket.looked = time.monotonic()
        for name, slots in ticket.slots.items():
            rivals = [other for other in before if name in other.slots]
            # Plans that disagree about a capacity: the smallest counts.
            most = min([slots, *[other.slots[name] for other in rivals]])
            if len(rivals) >= most:
                ticket.pause = min(_LATEST, _SOONEST * (1 + len(rivals) - most))
                kind, _, plain = name.partition(" ")
                sort = "lock" if kind == "lock" else "concurrency group"
                more = f" and {len(rivals) - 1} more" if len(rivals) > 1 else ""
                ticket.message = f'waiting for {sort} "{plain}", held by {rivals[0].who}{more}'
                return
        ticket.served, ticket.message = True, ""


class _Mutex:
    """A mutex between processes; programs started meanwhile do not inherit the descriptor."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _MUTEX)
        self._fd = -1

    def __enter__(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError:
            os.close(self._fd)
            raise

    def __exit__(self, *_exception: object) -> None:
        os.close(self._fd)


def _numbered(folder: str) -> Iterator[tuple[int, str]]:
    for name in os.listdir(folder):
        digits = name.removesuffix(_ENDING)
        if digits != name and digits.isdecimal():
            yield int(digits), os.path.join(folder, name)


def _living(folder: str, below: int) -> Iterator[Other]:
    """Yield the tickets with lower numbers whose processes are alive, oldest first, and remove the others."""
    for number, path in sorted(_numbered(folder)):
        if number >= below:
            return
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # released at this moment: that needs no mutex
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = _read(fd, number)
            if other is not None:
                yield other
        else:
            os.unlink(path)
        finally:
            os.close(fd)


def _read(fd: int, number: int) -> Other | None:
    """Parse a ticket; an empty one, written on a full disk, blocks no other."""
    try:
        fields = json.loads(os.pread(fd, 1 << 16, 0))
        return Other(number=number, slots=dict(fields["slots"]), who=str(fields["who"]))
    except (ValueError, KeyError, TypeError):
        return None


def _own_folder() -> str:
    """Return the folder of this user's tickets, created with mode 0700; raises RecordsLost.

    It is beside the compiled plans and not in $XDG_RUNTIME_DIR: that is removed at logout, and
    processes of CI systems often have none.
    """
    plans = plans_folder()
    if not plans:
        raise RecordsLost("there is no place for locks: set PLANRUN_CACHE_DIR, XDG_CACHE_HOME or HOME")
    folder = os.path.join(os.path.dirname(plans), _FOLDER)
    try:
        make_private(os.path.dirname(folder))
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        status = os.stat(folder, follow_symlinks=False)
    except OSError as error:
        raise RecordsLost(f"cannot keep locks in {folder}: {error.strerror}") from None
    if os.path.islink(folder) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RecordsLost(f"cannot keep locks in {folder}: others may write there")
    return folder
