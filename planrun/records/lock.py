"""The workspace lock: one run at a time; the kernel releases the lock when its holder dies.

The holder of a workspace is the run that the lock file names, if its process really holds the lock.
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

_MOST = 400  # bytes of the holder's name
# Seconds to wait for the name of the holder, which it writes right after it took the lock.
_NAMED_BY = 1.0
_PAUSE = 0.005
_READINGS = 3  # of /proc/locks, before a lock counts as free
# Errors of flock without a lock service (NFS without a lock daemon) or without locks at all.
_UNABLE = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


class WorkspaceHeld(InvalidInput):
    """Another run has the workspace; `holder` names run, process, machine and start time, `ways` what can be done."""

    def __init__(self, holder: str, ways: str = "") -> None:
        super().__init__(f"another run holds this workspace: {holder}{ways}")
        self.holder = holder


class WorkspaceLock:
    """An exclusive `flock` on `.planrun/lock`; the text in the file names the holder for users."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "lock")
        self.used_before = False  # an earlier run used this workspace
        self._fd = -1

    def acquire(self, owner: str) -> None:
        """Take the lock and write `owner` into it.

        Raises WorkspaceHeld when another run holds it, RecordsLost when locking fails.
        """
        try:
            self._take()
            status = os.fstat(self._fd)
            self.used_before = status.st_size > 0
            text = owner.encode()
            # In this order: ext4 flushes a file on close after it was truncated to zero.
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
        except WorkspaceHeld:
            self.release()
            raise
        except OSError as error:
            self.release()
            raise _refused(self.path, error) from None

    def _take(self) -> None:
        """Lock the file at the path; a file that was removed meanwhile does not count."""
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
                # The text may still be that of an earlier run, so it must name the process that the kernel reports.
                # Where the kernel reports none (not Linux, another process namespace), only the text is used.
                fd = self._fd
                last = time.monotonic() > limit
                text = os.pread(fd, _MOST, 0).decode("utf-8", "replace").strip()
                pid = lock_holder_pid(os.fstat(fd).st_ino)
                if pid == 0 and not last:
                    holder = ""  # the holder just released it
                elif pid and not last and not _lives(pid):
                    holder = ""  # a step that was starting when its planrun died holds the lock until exec
                elif not pid or f"process {pid} " in text:
                    holder = text or ("unknown" if last else "")
                else:
                    holder = f"process {pid}" if last else ""
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
        """Release the lock; closing is enough."""
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


def _lives(pid: int) -> bool:
    """Whether a process is alive and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def lock_holder_pid(inode: int) -> int | None:
    """Return the process that holds a flock on a file with this inode number; 0: no process, None: unknown.

    The kernel lists locks in pieces of a page, and a lock that ends meanwhile can hide another one between two pieces
    (measured: 12 of 9,020 readings under load). So a missing lock is searched again.
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
        """Whether it runs on this machine, by its host name."""
        return self.host == os.uname().nodename


def holder(workspace: str) -> Holder | None:
    """Return the holder of a workspace ("": this folder); None when there is none.

    A process of this machine is searched in the kernel's list of locks: taking the lock would make a run fail that
    starts at this moment. It is taken only where there is no such list or the holder is on another machine.
    """
    from planrun.opening import open_record  # a run takes the lock, and asks for no holder

    try:
        fd = open_record(os.path.join(workspace, records.HOME, "lock"))
    except OSError:
        return None
    try:
        # Parse the text of a lock: `run R, process P on HOST, since …`
        text = os.pread(fd, _MOST, 0).decode("utf-8", "replace")
        run, _, rest = text.partition(", process ")
        pid, _, rest = rest.partition(" on ")
        host = rest.partition(", since ")[0]
        if not (run.startswith("run ") and pid.isdecimal() and host):
            named = None
        else:
            named = Holder(run=run.removeprefix("run "), pid=int(pid), host=host)
        return named if named and _holds(named, fd) else None
    finally:
        os.close(fd)


def _holds(named: Holder, fd: int) -> bool:
    pid = lock_holder_pid(os.fstat(fd).st_ino) if named.is_here else None
    if pid is not None:
        return pid == named.pid
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released when the file is closed
    except OSError:
        return True
    return False
