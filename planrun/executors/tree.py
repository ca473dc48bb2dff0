"""The processes of one attempt: find them, signal them, and never touch a stranger that got an old number.

Whether anybody was born: the process ids that the kernel gave since one of ours began.

A step that started no process is by far the most frequent one, and to look for its children among all processes
costs as much as a quarter of it. /proc/loadavg ends with the last process id given (proc_loadavg(5)): when the ids
since the step's own all went to other steps, it has no child.
"""

from __future__ import annotations

import os
import time

from planrun.executors.mark import is_any_marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.scan import Scan
    from planrun.model.job import Job

# `_signal` and not `signal`: see signals.py.


HAS_PROC = os.path.exists("/proc/self/stat")


class Scans:
    """The scan of this turn, and when there may be another one; times are monotonic seconds.

    The next one has to wait as long as the last one took: however many steps end, half of planrun's time is left.
    """

    __slots__ = ("_scan", "_since", "next")

    def __init__(self) -> None:
        self._scan: Scan | None = None
        self._since = -1
        self.next = 0.0

    def expire(self) -> None:
        """Forget the scan: processes ended or were started since."""
        self._scan = None

    def may(self, now: float) -> bool:
        """Whether there is a scan of this turn, or there may be one."""
        return self._scan is not None or now >= self.next

    def take(self) -> Scan:
        """Return the scan of this turn."""
        if self._scan is None:
            from planrun.executors.scan import Scan, start_time  # most steps end without one

            began = time.monotonic()
            if self._since < 0:
                self._since = start_time(os.getpid())
            self._scan = Scan(self._since)
            ended = time.monotonic()
            self.next = ended + (ended - began)
        return self._scan


class ProcessTree:
    """The main process of an attempt, and all that came from it.

    A process belongs to it by its mark, and whether or not there are marks: by its session, its group, its cookie
    in the environment, or by having a parent that does. Without /proc it is the group alone.
    """

    __slots__ = ("_births", "_environment", "_known", "_mark", "_number", "_scans", "leader", "leading")

    def __init__(
        self,
        leader: int,
        job: Job,
        *,
        mark: int = 0,
        births: SpawnedPids | None = None,
        scans: Scans | None = None,
    ) -> None:
        self.leader = leader
        self.leading = True  # the main process is not reaped yet, so its number cannot be anybody else's
        self._environment = job.env
        self._mark = mark
        self._births = births
        self._scans = scans or Scans()
        self._number = births.ours(leader) if births else 0
        self._known: dict[int, int] = {}  # process id to start time: together they are never used twice

    def childless(self) -> bool:
        """Whether it is certain that the main process never had a child, by one system call."""
        return self._births is not None and self._births.since(self.leader, self._number) == range(0)

    def suspected(self) -> bool:
        """Whether anybody may be left outside the group; who is, look() tells."""
        if not HAS_PROC:
            return False
        if not self._mark:
            return True
        born = self._births.since(self.leader, self._number) if self._births else None
        return is_any_marked(range(self._mark, self._mark + 1), born)

    def has_group(self) -> bool:
        """Whether anybody is left in the group, by one system call; a stranger's group only by rare chance.

        As long as one member lives, its kernel gives the group's number to nobody else.
        """
        try:
            os.killpg(self.leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # a member that runs as somebody else
            return True
        return True

    def may_look(self, now: float) -> bool:
        """Whether look() may search now; `next_look` says when it may again."""
        return not HAS_PROC or self._scans.may(now)

    @property
    def next_look(self) -> float:
        """When look() may search again, in monotonic seconds."""
        return self._scans.next

    def look(self, log: tuple[int, int] | None = None, *, thorough: bool = False) -> int:
        """Search the whole system for members, main process excepted; return how many live.

        With `log` (device and inode) also those count that have this file open for writing: where there are no
        others, or always when it is to be `thorough`.
        """
        if not HAS_PROC:
            return int(not self.leading and self.has_group())
        self.remaining()
        scan = self._scans.take()
        processes = scan.processes
        # Alive after it was reaped: the number went to a stranger, and so did group and session.
        leader = 0 if self.leader in processes and not self.leading else self.leader
        family = {leader, *self._known} - {0}
        if leader:
            family.update(scan.related(leader))
        if self._mark:
            family.update(scan.marked(self._mark))
        if cookie := self._cookie():
            family.update(scan.carriers(cookie))
        family = scan.descendants(family)
        if log and (thorough or not (family & processes.keys()) - {self.leader}):
            family = scan.descendants(family.union(scan.writers(log)))
        found = {pid: processes[pid].start for pid in (family & processes.keys()) - {self.leader}}
        self._known.update(found)
        return self.remaining()

    def remaining(self) -> int:
        """How many of the members found before are still alive."""
        if not HAS_PROC:
            return int(self.has_group())
        if self._known:
            from planrun.executors.scan import start_time  # most steps leave nobody

            self._known = {pid: start for pid, start in self._known.items() if start_time(pid) == start}
        return len(self._known)

    def members(self) -> tuple[int, ...]:
        """Their process ids, as found before."""
        return tuple(sorted(self._known))

    def signal(self, signum: int) -> None:
        """Signal the group while its number is certain, and every member that was found one by one."""
        group = self.leading or not HAS_PROC
        if group:
            _quietly_killpg(self.leader, signum)
        if not self._known:
            return
        from planrun.executors.scan import signal_exactly

        for pid, start in self._known.items():
            if not (group and _group_of(pid) == self.leader):
                signal_exactly(pid, start, signum)

    def _cookie(self) -> tuple[bytes, ...]:
        """The entries that only this attempt's processes have in their environment; none when one is missing."""
        from planrun.executors.scan import COOKIE

        if any(name not in self._environment for name in COOKIE):
            return ()
        return tuple(os.fsencode(f"{name}={self._environment[name]}") for name in COOKIE)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _quietly_killpg(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except OSError:  # gone, or all of it runs as somebody else (sudo)
        return


_FILE = "/proc/loadavg"


class SpawnedPids:
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
