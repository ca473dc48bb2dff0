"""Whether anybody was born: the process ids that the kernel gave since one of ours began.

A step that started no process is by far the most frequent one, and to look for its children among all processes
costs as much as a quarter of it. /proc/loadavg ends with the last process id given (proc_loadavg(5)): when the ids
since the step's own all went to other steps, it has no child.
"""

from __future__ import annotations

import os

_FILE = "/proc/loadavg"


class Births:
    """The process ids given since this object was made; one read of a kept descriptor tells."""

    __slots__ = ("_fd", "_ours")

    def __init__(self) -> None:
        self._ours = 0
        self._fd = _open()

    def ours(self, pid: int) -> int:
        """Take note of a child that was just started and return its number among ours."""
        self._ours += 1
        if self._ours == 1 and self._fd >= 0 and self._last() < pid:
            self.close()  # a kernel that only acts like Linux; or the ids just began anew, and looking costs little
        return self._ours

    def since(self, pid: int, number: int) -> range | None:
        """Return the ids given after this child of ours, empty when all went to ours; None when nobody can say."""
        if self._fd < 0:
            return None
        last = self._last()
        if last - pid == self._ours - number:
            return range(0)
        # Below: they began anew meanwhile.
        return range(pid + 1, last + 1) if last > pid else None

    def close(self) -> None:
        """Give the descriptor back; from then on nobody can say."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _last(self) -> int:
        return int(os.pread(self._fd, 128, 0).rpartition(b" ")[2])


def _open() -> int:
    """Open the file where it is the kernel's own: containers may have another one in its place (lxcfs)."""
    try:
        fd = os.open(_FILE, os.O_RDONLY)
    except OSError:
        return -1
    if os.fstat(fd).st_dev == os.stat("/proc").st_dev:
        return fd
    os.close(fd)
    return -1
