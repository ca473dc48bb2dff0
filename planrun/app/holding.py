"""Who works in a workspace now: the run that the lock names, as long as its process really holds the lock."""

from __future__ import annotations

import fcntl
import os

from planrun.model.record import Record
from planrun.records import rundir as records
from planrun.records.lock import locking

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
    pid = locking(os.fstat(fd).st_ino) if found.is_here else None
    if pid is not None:
        return pid == found.pid
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back when the file is closed
    except OSError:
        return True
    return False
