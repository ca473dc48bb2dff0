"""The processes of one attempt: find them, signal them, and never touch a stranger that got an old number."""

from __future__ import annotations

# `_signal` and not `signal`: see signals.py.
import _signal
import os

from planrun.executors.mark import borne, mark_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.executors.births import Births
    from planrun.model.job import Job

# What SPEC calls the environment cookie: together these name one attempt of one run.
COOKIE = ("PLANRUN_RUN", "PLANRUN_STEP", "PLANRUN_ATTEMPT")
HAS_PROC = os.path.exists("/proc/self/stat")
_GONE = (b"Z", b"X", b"x")  # a zombie whose parent does not reap it is as good as gone


class ProcessTree:
    """The main process of an attempt, and all that came from it.

    A process belongs to it by its mark, and whether or not there are marks: by its session, its group, its cookie
    in the environment, or by having a parent that does. Without /proc it is the group alone.
    """

    __slots__ = ("_births", "_environment", "_known", "_mark", "_number", "leader", "leading")

    def __init__(self, leader: int, job: Job, *, mark: int = 0, births: Births | None = None) -> None:
        self.leader = leader
        self.leading = True  # the main process is not reaped yet, so its number cannot be anybody else's
        self._environment = job.env
        self._mark = mark
        self._births = births
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
        return borne(range(self._mark, self._mark + 1), born)

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

    def look(self, log: tuple[int, int] | None = None) -> int:
        """Search the whole system for members, main process excepted; return how many live.

        With `log` (device and inode) also those count that have this file open for writing.
        """
        if not HAS_PROC:
            return int(not self.leading and self.has_group())
        self._known = {pid: start for pid, start in self._known.items() if start_time(pid) == start}
        rows = {row[0]: row for row in _processes()}
        # Alive after it was reaped: the number went to a stranger, and so did group and session.
        leader = 0 if self.leader in rows and not self.leading else self.leader
        family = {leader, *self._known} - {0}
        cookie = self._cookie()
        for pid, (_, _, group, session, _) in rows.items():
            if (
                (leader and leader in (session, group))
                or (self._mark and mark_of(pid) == self._mark)
                or (cookie and carries(pid, cookie))
                or (log and _writes(pid, log))
            ):
                family.add(pid)
        while children := {pid for pid, row in rows.items() if row[1] in family} - family:
            family |= children
        self._known.update((pid, rows[pid][4]) for pid in (family & rows.keys()) - {self.leader})
        return len(self._known)

    def remaining(self) -> int:
        """How many of the members found before are still alive."""
        if not HAS_PROC:
            return int(self.has_group())
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
        for pid, start in self._known.items():
            if not (group and _group_of(pid) == self.leader):
                signal_exactly(pid, start, signum)

    def _cookie(self) -> tuple[bytes, ...]:
        """The entries that only this attempt's processes have in their environment; none when one is missing."""
        if any(name not in self._environment for name in COOKIE):
            return ()
        return tuple(os.fsencode(f"{name}={self._environment[name]}") for name in COOKIE)


def _processes() -> Iterator[tuple[int, int, int, int, int]]:
    """Every living process but this one: id, parent, group, session, start time (clock ticks since boot)."""
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own and (stat := _stat(int(name))):
            yield int(name), int(stat[1]), int(stat[2]), int(stat[3]), int(stat[19])


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on (proc_pid_stat(5)); none when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return []
    # The name before it may hold spaces and brackets of its own.
    fields = text[text.rindex(b")") + 2 :].split()
    return [] if fields[0] in _GONE else fields


def origin(pid: int) -> tuple[int, ...]:
    """Return parent, group and session of a process; empty when it is gone or a zombie."""
    stat = _stat(pid)
    return (int(stat[1]), int(stat[2]), int(stat[3])) if stat else ()


def start_time(pid: int) -> int:
    """When a process began, in clock ticks since boot; -1 when it is gone or a zombie."""
    stat = _stat(pid)
    return int(stat[19]) if stat else -1


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def carries(pid: int, cookie: tuple[bytes, ...]) -> bool:
    """Whether a process was started with all these entries in its environment."""
    environment = _environment(pid)
    return bool(environment) and all(entry in environment for entry in cookie)


def has_variable(pid: int, begin: bytes) -> bool:
    """Whether a process was started with an entry that begins so in its environment."""
    return any(entry.startswith(begin) for entry in _environment(pid))


def _environment(pid: int) -> list[bytes]:
    """Return what a process was started with; nothing for one that is gone, or somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _writes(pid: int, log: tuple[int, int]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            # The link's own mode says how the file is open; a reader (`tail -f`) is no member.
            if os.lstat(f"{folder}/{name}").st_mode & 0o200:
                target = os.stat(f"{folder}/{name}")
                if (target.st_dev, target.st_ino) == log:
                    return True
    except OSError:
        return False
    return False


def _quietly_killpg(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except OSError:  # gone, or all of it runs as somebody else (sudo)
        return


def signal_exactly(pid: int, start: int, signum: int) -> None:
    """Signal the process with this number that began at this time, and no other that got its number since."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):
        handle = -1
    try:
        if start_time(pid) != start:
            return
        if handle >= 0:
            _signal.pidfd_send_signal(handle, signum)
        else:
            os.kill(pid, signum)
    except OSError:  # gone meanwhile, or somebody else's
        pass
    finally:
        if handle >= 0:
            os.close(handle)
