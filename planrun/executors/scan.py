"""All processes of the machine in one scan of /proc, which attempts share within one iteration of the loop.

A scan costs some ten microseconds for each process of the host.
"""

from __future__ import annotations

# `_signal` and not `signal`: see wait.py.
import _signal
import os

from planrun.executors.mark import mark_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Key = TypeVar("Key")

_GONE = (b"Z", b"X", b"x")  # a zombie counts as gone

# The environment cookie: together these variables identify one attempt of one run.
COOKIE = ("PLANRUN_RUN", "PLANRUN_STEP", "PLANRUN_ATTEMPT")
_ENTRIES = tuple([name.encode() + b"=" for name in COOKIE])


class Process:
    """A row of /proc: parent, group, session, and the start time in clock ticks since boot."""

    __slots__ = ("group", "parent", "session", "start")

    def __init__(self, stat: list[bytes]) -> None:
        self.parent, self.group, self.session = int(stat[1]), int(stat[2]), int(stat[3])
        self.start = int(stat[19])


class Scan:
    """One scan; data that costs more than the rows is read on first use.

    `since`: the start time of this process. A process that started before cannot come from one of its steps.
    """

    __slots__ = ("_carriers", "_children", "_groups", "_marked", "_sessions", "_writers", "processes")

    def __init__(self, since: int) -> None:
        rows = [(pid, stat) for pid in pids() if (stat := stat_of(pid)) and int(stat[19]) >= since]
        self.processes = {pid: Process(stat) for pid, stat in rows}
        self._children: dict[int, list[int]] | None = None
        self._groups: dict[int, list[int]] | None = None
        self._sessions: dict[int, list[int]] | None = None
        self._marked: dict[int, list[int]] | None = None
        self._carriers: dict[tuple[bytes, ...], list[int]] | None = None
        self._writers: dict[tuple[int, int], list[int]] | None = None

    def related(self, leader: int) -> list[int]:
        """Return the processes of a leader's session and group."""
        if self._groups is None or self._sessions is None:
            self._groups = self._index(lambda pid: self.processes[pid].group)
            self._sessions = self._index(lambda pid: self.processes[pid].session)
        return [*self._groups.get(leader, ()), *self._sessions.get(leader, ())]

    def marked(self, mark: int) -> list[int]:
        """Return the processes with a mark."""
        if self._marked is None:
            self._marked = self._index(mark_of)
        return self._marked.get(mark, [])

    def carriers(self, cookie: tuple[bytes, ...]) -> list[int]:
        """Return the processes that have the entries of a cookie in their environment."""
        if self._carriers is None:
            self._carriers = self._index(_cookie_of)
        return self._carriers.get(cookie, [])

    def descendants(self, family: set[int]) -> set[int]:
        """Return a family with all its descendants."""
        if self._children is None:
            self._children = self._index(lambda pid: self.processes[pid].parent)
        result, waiting = set(family), list(family)
        while waiting:
            fresh = [pid for pid in self._children.get(waiting.pop(), ()) if pid not in result]
            result.update(fresh)
            waiting += fresh
        return result

    def writers(self, file: tuple[int, int]) -> list[int]:
        """Return the processes that have a file (device and inode) open for writing, whenever they started.

        A process of another tree can have received the descriptor.
        """
        if self._writers is None:
            self._writers = {}
            for pid in pids():
                for opened in _written(pid):
                    self._writers.setdefault(opened, []).append(pid)
        writers = self._writers.get(file, [])
        for pid in writers:
            if pid not in self.processes and (stat := stat_of(pid)):
                self.processes[pid] = Process(stat)
        return [pid for pid in writers if pid in self.processes]

    def _index(self, key: Callable[[int], Key]) -> dict[Key, list[int]]:
        index: dict[Key, list[int]] = {}
        for pid in self.processes:
            index.setdefault(key(pid), []).append(pid)
        return index


def pids() -> list[int]:
    """Return the ids of all processes but this one, zombies included."""
    own = os.getpid()
    return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) != own]


def stat_of(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on (proc_pid_stat(5)); none when the process is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:
        return []
    # The name before it may contain spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return [] if fields[0] in _GONE else fields


def start_time(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; -1 when it is gone or a zombie."""
    stat = stat_of(pid)
    return int(stat[19]) if stat else -1


def origin(pid: int) -> tuple[int, ...]:
    """Return parent, group and session of a process; empty when it is gone or a zombie."""
    stat = stat_of(pid)
    return (int(stat[1]), int(stat[2]), int(stat[3])) if stat else ()


def environment(pid: int) -> list[bytes]:
    """Return the environment a process was started with; empty when it is gone or belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def carries(pid: int, cookie: tuple[bytes, ...]) -> bool:
    """Whether a process was started with all these entries in its environment."""
    entries = environment(pid)
    return bool(entries) and all(entry in entries for entry in cookie)


def has_variable(pid: int, begin: bytes) -> bool:
    """Whether a process was started with an environment entry that begins with `begin`."""
    return any(entry.startswith(begin) for entry in environment(pid))


def signal_exactly(pid: int, start: int, signum: int) -> None:
    """Signal the process with this id and start time, and no other that reused the id."""
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
    except OSError:  # gone meanwhile, or of another user
        pass
    finally:
        if handle >= 0:
            os.close(handle)


def _cookie_of(pid: int) -> tuple[bytes, ...]:
    entries = environment(pid)
    return tuple([entry for name in _ENTRIES for entry in entries if entry.startswith(name)])


def _written(pid: int) -> set[tuple[int, int]]:
    """Return device and inode of the files that a process has open for writing."""
    folder = f"/proc/{pid}/fd"
    files: set[tuple[int, int]] = set()
    try:
        names = os.listdir(folder)
    except OSError:  # it belongs to another user, or ended meanwhile
        return files
    for name in names:
        try:
            # The mode of the link shows how the file is open; a reader (`tail -f`) is not a member.
            if os.lstat(f"{folder}/{name}").st_mode & 0o200:
                target = os.stat(f"{folder}/{name}")
                files.add((target.st_dev, target.st_ino))
        except OSError:  # closed meanwhile
            continue
    return files
