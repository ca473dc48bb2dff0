"""Who works in a workspace now: the run that the lock names, as long as its process really holds the lock."""

from __future__ import annotations

import fcntl
import os

from planrun.model.record import Record
from planrun.records import rundir as records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 400  # bytes of a lock's text


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
    if found.is_here:
        try:
            with open("/proc/locks", encoding="ascii", errors="replace") as file:
                return _is_listed(file, found.pid, os.fstat(fd).st_ino)
        except OSError:  # not Linux
            pass
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back when the file is closed
    except OSError:
        return True
    return False


def _is_listed(rows: Iterable[str], pid: int, inode: int) -> bool:
    """Say whether a process holds a lock on a file.

    `1: FLOCK  ADVISORY  WRITE 4711 08:01:393 0 EOF`; a process that waits has `->` in its second column.
    """
    for row in rows:
        words = row.split()
        if words[1] == "FLOCK" and words[4] == str(pid) and words[5].rpartition(":")[2] == str(inode):
            return True
    return False
