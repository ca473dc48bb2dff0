"""The processes of one attempt: find them, signal them, and never signal another process that reused a process id.

Most steps start no further process, and a search for children among all processes costs as much as a quarter of such
a step. /proc/loadavg ends with the last process id that the kernel gave (proc_loadavg(5)): when all ids since the
step's own went to other steps, the step has no child.
"""

from __future__ import annotations

import os
import time

from planrun.executors.mark import is_any_marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.scan import Scan
    from planrun.model.job import Job

HAS_PROC = os.path.exists("/proc/self/stat")


class Scans:
    """The scan of this iteration of the loop, and when the next one may start; times are monotonic seconds.

    The next scan starts no earlier than the last one took, so that scans use at most half of the time.
    """

    __slots__ = ("_scan", "_since", "next")

    def __init__(self) -> None:
        self._scan: Scan | None = None
        self._since = -1
        self.next = 0.0

    def expire(self) -> None:
        """Forget the scan: processes ended or started since."""
        self._scan = None

    def may(self, now: float) -> bool:
        """Whether there is a scan of this iteration, or there may be one."""
        return self._scan is not None or now >= self.next

    def take(self) -> Scan:
        """Return the scan of this iteration."""
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
    """The main process of an attempt and its descendants.

    A process belongs to it by its mark or, also without marks, by its session, its group, the cookie in its
    environment, or a parent that belongs to it. Without /proc only the group counts.
    """

    __slots__ = ("_environment", "_known", "_mark", "_number", "_scans", "_spawned_pids", "leader", "leading")

    def __init__(
        self,
        leader: int,
        job: Job,
        *,
        mark: int = 0,
        spawned_pids: SpawnedPids | None = None,
        scans: Scans | None = None,
    ) -> None:
        self.leader = leader
        self.leading = True  # the main process is not reaped yet, so its process id is not reused
        self._environment = job.env
        self._mark = mark
        self._spawned_pids = spawned_pids
        self._scans = scans or Scans()
        self._number = spawned_pids.ours(leader) if spawned_pids else 0
        self._known: dict[int, int] = {}  # process id to start time: the pair is unique

    def childless(self) -> bool:
        """Whether the main process certainly never had a child; one system call."""
        return self._spawned_pids is not None and self._spawned_pids.since(
            self.leader, self._number
        ) == range(0)

    def suspected(self) -> bool:
        """Whether processes may be left outside the group; search() finds them."""
        if not HAS_PROC:
            return False
        if not self._mark:
            return True
        spawned = self._spawned_pids.since(self.leader, self._number) if self._spawned_pids else None
        return is_any_marked(range(self._mark, self._mark + 1), spawned)

    def has_group(self) -> bool:
        """Whether a process is left in the group; one system call.

        The kernel does not reuse the id of a group while a member lives.
        """
        try:
            os.killpg(self.leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # a member that runs as another user
            return True
        return True

    def may_search(self, now: float) -> bool:
        """Whether search() may run now; `next_search` is when it may run again."""
        return not HAS_PROC or self._scans.may(now)

    @property
    def next_search(self) -> float:
        """When search() may run again, in monotonic seconds."""
        return self._scans.next

    def search(self, log: tuple[int, int] | None = None, *, thorough: bool = False) -> int:
        """Search the whole system for members other than the main process; return how many are alive.

        `log` (device and inode): processes that have this file open for writing count too, if there are no other
        members or with `thorough`.
        """
        if not HAS_PROC:
            return int(not self.leading and self.has_group())
        self.remaining()
        scan = self._scans.take()
        processes = scan.processes
        # Alive after it was reaped: the process id was reused, and so were group and session.
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
        members = (family & processes.keys()) - {self.leader}
        self._known.update({pid: processes[pid].start for pid in members})
        return self.remaining()

    def remaining(self) -> int:
        """Return how many known members are still alive."""
        if not HAS_PROC:
            return int(self.has_group())
        if self._known:
            from planrun.executors.scan import start_time  # most steps leave no process

            self._known = {pid: start for pid, start in self._known.items() if start_time(pid) == start}
        return len(self._known)

    def members(self) -> tuple[int, ...]:
        """Return the process ids of the known members."""
        return tuple(sorted(self._known))

    def signal(self, signum: int) -> None:
        """Signal the group while its id is certain, and every known member outside it."""
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
        """Return the environment entries that identify this attempt; none when one is missing."""
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
    except OSError:  # gone, or all of it runs as another user (sudo)
        return


_FILE = "/proc/loadavg"


class SpawnedPids:
    """The process ids that the kernel gave since this object was made, by one read of an open descriptor."""

    __slots__ = ("_fd", "_ours")

    def __init__(self) -> None:
        self._ours = 0
        self._fd = _open()

    def ours(self, pid: int) -> int:
        """Record a child that was just started and return its ordinal among our children."""
        self._ours += 1
        if self._ours == 1 and self._fd >= 0 and self._last() < pid:
            self.close()  # an emulated Linux; or the ids wrapped around, and then a search costs little
        return self._ours

    def since(self, pid: int, number: int) -> range | None:
        """Return the ids given after this child, empty when all went to our children; None when that is unknown."""
        if self._fd < 0:
            return None
        last = self._last()
        if last - pid == self._ours - number:
            return range(0)
        # Lower: the ids wrapped around meanwhile.
        return range(pid + 1, last + 1) if last > pid else None

    def close(self) -> None:
        """Close the descriptor; from then on since() returns None."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _last(self) -> int:
        return int(os.pread(self._fd, 128, 0).rpartition(b" ")[2])


def _open() -> int:
    """Open the file if it is the kernel's own: containers may have another one mounted over it (lxcfs)."""
    try:
        fd = os.open(_FILE, os.O_RDONLY)
    except OSError:
        return -1
    if os.fstat(fd).st_dev == os.stat("/proc").st_dev:
        return fd
    os.close(fd)
    return -1
