"""The process between a runner and the planrun of an entry: it ends that planrun when the runner's lease runs out.

`keeper LEASE FD WORD…`: from FD it reads the moments of signs of life, 8 bytes each, by the clock of `leases.now`.
It sends SIGTERM at half of the lease after the last one, and SIGKILL at three quarters, so that nothing runs when the
lease is over. When FD is closed, its runner is dead. When the keeper itself is killed, the kernel kills its planrun,
whose guardian then kills the steps. Signals to the keeper go to its planrun, and the keeper ends as that ends.
"""

from __future__ import annotations

import _signal
import os
import select
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

FORM = "d"
_SIZE = struct.calcsize(FORM)
_PR_SET_PDEATHSIG = 1
_GRACE = 8.0  # seconds from SIGTERM to SIGKILL after the death of the runner; planrun needs less than seven
_TURN = 0.05  # seconds between two looks at the child
_PASSED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGUSR1)


def main(words: list[str]) -> int:
    """Run the command and return its exit code; a signal that ended it ends this process, too."""
    lease, fd, began = float(words[0]), int(words[1]), float(words[2])
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _die_with(parent)
            os.close(fd)
            os.execv(words[3], words[3:])
        finally:
            os._exit(127)

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        os.kill(child, signum)

    for signum in _PASSED_ON:
        _signal.signal(signum, pass_on)
    status = _Keeper(child, fd, lease, began).wait()
    if os.WIFSIGNALED(status):
        ended_by = os.WTERMSIG(status)
        if ended_by in _PASSED_ON:
            _signal.signal(ended_by, _signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    return os.waitstatus_to_exitcode(status)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def _now() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _Keeper:
    def __init__(self, child: int, fd: int, lease: float, began: float) -> None:
        self._child = child
        self._fd = fd
        self._lease = lease
        self._ends_at = began + lease / 2
        self._kills_at = began + lease * 3 / 4
        self._is_ending = False

    def wait(self) -> int:
        """Wait for the child, and end it when the lease runs out; returns its wait status."""
        while True:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                return status
            self._enforce()
            descriptors = [self._fd] if self._fd >= 0 else []
            if select.select(descriptors, [], [], _TURN)[0]:
                self._enforce()  # first: a sign that comes too late, as after a sleep of the machine, extends nothing
                self._read()

    def _read(self) -> None:
        data = os.read(self._fd, 4096)
        if not data:  # the runner is dead: no one will give signs of life
            os.close(self._fd)
            self._fd = -1
            self._ends_at = min(self._ends_at, _now())
            self._kills_at = min(self._kills_at, _now() + _GRACE)
            return
        # Writes of 8 bytes into a pipe are never cut.
        (signed,) = struct.unpack(FORM, data[-_SIZE:])
        if not self._is_ending:
            self._ends_at = signed + self._lease / 2
            self._kills_at = signed + self._lease * 3 / 4

    def _enforce(self) -> None:
        moment = _now()
        if moment >= self._kills_at:
            os.kill(self._child, _signal.SIGKILL)
        elif moment >= self._ends_at and not self._is_ending:
            self._is_ending = True
            os.kill(self._child, _signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
