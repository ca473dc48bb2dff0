"""One run at a time in a workspace, by a lock that the kernel gives back when its holder dies.

Who works in a workspace now: the run that the lock names, as long as its process really holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from planrun.errors import InvalidInput, RecordsLost
from planrun.model.record import Record
from planrun.records import rundir as records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_MOST = 400  # bytes of the text that names the holder
# A holder writes its name right after it took the lock; so long who is refused waits to read it, in seconds.
_NAMED_BY = 1.0
_PAUSE = 0.005
_READINGS = 3  # of the list of locks, before a lock counts as free
# What flock says where there is nobody to ask (NFS without a lock daemon) or no such thing as a lock.
_UNABLE = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


class WorkspaceHeld(InvalidInput):
    """Another run has the workspace; `holder` says which, by which process of which machine, and since when."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"another run holds this workspace: {holder}")
        self.holder = holder


class WorkspaceLock:
    """An exclusive `flock` on `.planrun/lock`; the text in the file only tells people who holds it."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "lock")
        self.used_before = False  # whether there was a run in this workspace before the one that has the lock
        self._fd = -1

    def acquire(self, owner: str) -> None:
        """Take the lock and write `owner` into it.

        Raises WorkspaceHeld when it is taken, RecordsLost when it cannot be had at all.
        """
        try:
            self._take()
            status = os.fstat(self._fd)
            self.used_before = status.st_size > 0
            text = owner.encode()
            # In this order: ext4 writes a file out at once when it is closed after it was cut to nothing.
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
        except WorkspaceHeld:
            self.release()
            raise
        except OSError as error:
            self.release()
            raise _refused(self.path, error) from None

    def _take(self) -> None:
        """Lock the file that is in its place once it is locked: one that was removed meanwhile keeps nobody out."""
        limit = 0.0
        while True:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                limit = limit or time.monotonic() + _NAMED_BY
                holder = _holder(self._fd, last=time.monotonic() > limit)
                if holder:
                    raise WorkspaceHeld(holder) from None
                time.sleep(_PAUSE)
                continue
            if self._in_place():
                return
            self.release()

    def _in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock back; closing is enough."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()


def _refused(path: str, error: OSError) -> RecordsLost:
    if error.errno in _UNABLE:
        return RecordsLost(
            f"this file system has no locks: {path}: {error.strerror}; planrun keeps two runs from writing to one "
            "folder by flock: use a folder on a local disk, or mount this one with locks"
        )
    return RecordsLost(f"cannot lock this workspace: {path}: {error.strerror}")


def _holder(fd: int, *, last: bool) -> str:
    """Say who holds the lock; empty when that is not known yet or about to change, unless this is the `last` time.

    The text may still be that of the run before, so it has to name the process that the kernel names. Where the
    kernel does not say (not Linux, another process namespace), the text is all there is.
    """
    text = os.pread(fd, _MOST, 0).decode("utf-8", "replace").strip()
    pid = lock_holder_pid(os.fstat(fd).st_ino)
    if pid == 0 and not last:
        return ""  # whoever had it gave it back just now
    if pid and not last and not _lives(pid):
        return ""  # a step that was being born when its planrun died has the lock until it begins its program
    if not pid or f"process {pid} " in text:
        return text or ("it has not said which it is" if last else "")
    return f"process {pid}" if last else ""


def _lives(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def lock_holder_pid(inode: int) -> int | None:
    """Return the process that holds a flock on a file with this inode number; 0: no process, None: unknown.

    The kernel lists locks in pieces of a page, and a lock that ends meanwhile can hide another one between two pieces
    (measured: 12 of 9,020 readings under load). So a lock that is not listed is looked for again.
    """
    for _ in range(_READINGS):
        try:
            with open("/proc/locks", encoding="ascii", errors="replace") as file:
                # `1: FLOCK  ADVISORY  WRITE 4711 08:01:393 0 EOF`; a waiting process has `->` in its second column.
                rows = [row.split() for row in file]
        except OSError:
            return None
        for row in rows:
            if row[1] == "FLOCK" and row[5].rpartition(":")[2] == str(inode):
                return int(row[4]) if int(row[4]) > 0 else None
    return 0


class Holder(Record):
    """A process that works on a run; `host` is the machine it runs on."""

    run: str
    pid: int
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, as far as names tell."""
        return self.host == os.uname().nodename


def holder(workspace: str) -> Holder | None:
    """Return who has a workspace now ("": this folder); None when nobody has.

    A process of this machine is looked for among the locks that the kernel lists: asking for the lock would turn a
    run away that starts at this moment. That is done only where there is no such list or another machine is named.
    """
    path = os.path.join(workspace, records.HOME, "lock")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = _parsed(os.pread(fd, _MOST, 0).decode("utf-8", "replace"))
        return found if found and _holds(found, fd) else None
    finally:
        os.close(fd)


def _parsed(text: str) -> Holder | None:
    """Return what a lock's text names: `run R, process P on HOST, since …`."""
    run, _, rest = text.partition(", process ")
    pid, _, rest = rest.partition(" on ")
    host = rest.partition(", since ")[0]
    if not (run.startswith("run ") and pid.isdecimal() and host):
        return None
    return Holder(run=run.removeprefix("run "), pid=int(pid), host=host)


def _holds(found: Holder, fd: int) -> bool:
    pid = lock_holder_pid(os.fstat(fd).st_ino) if found.is_here else None
    if pid is not None:
        return pid == found.pid
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back when the file is closed
    except OSError:
        return True
    return False
