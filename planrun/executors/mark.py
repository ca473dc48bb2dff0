"""The mark of an attempt: a number that each of its processes inherits and does not lose by accident.

It is stored in RLIMIT_LOCKS, a limit that Linux has ignored since 2.4.25 (getrlimit(2)). Every child inherits it,
independent of its parents, session, environment and descriptors, and every process may read it. Only a process that
sets this limit loses it. Other systems have no equivalent.

A mark has 19 decimal digits, so that a shell can compare them: 9 for the workspace, 4 for the planrun process, 6 for
the attempt.
"""

from __future__ import annotations

import os
import sys

from planrun.model.record import Record
from planrun.sha256 import sha256

if sys.platform == "linux":
    import resource

_LOCKS = 10  # RLIMIT_LOCKS on every architecture; Python has no name for it
_WORKSPACES = 8 * 10**8  # the largest mark must stay below 2**63
_PLANRUNS = 10**4
_ATTEMPTS = 10**6
MARKS = range(10**8 * _PLANRUNS * _ATTEMPTS, (10**8 + _WORKSPACES) * _PLANRUNS * _ATTEMPTS)
"""Every possible mark, of all workspaces."""
_FEW = 200  # up to so many process ids, checking each is faster than listing all processes


class Owner(Record):
    """The owner of processes: a run's id, and the path of the workspace that the run has locked.

    `listing`: a file that names the existing copies of scripts; "" for none.
    `engine`: the program that runs containers, if a step may use one. `runs`: the folder of all runs.
    """

    run: str
    workspace: str
    listing: str = ""
    engine: str = ""
    runs: str = ""


class Marks:
    """The marks of one planrun process; `workspace`: the folder that one run at a time uses, "" for none.

    `works` is false where processes cannot be marked.
    """

    __slots__ = ("_checked", "_given", "_hard", "_own", "_planrun", "_workspace", "works")

    def __init__(self, workspace: str = "") -> None:
        self._workspace = _number(workspace)
        self._planrun = self._workspace * _PLANRUNS + os.getpid() % _PLANRUNS
        self._given = 0
        self._checked = False
        self._own = self._hard = -1
        self.works = sys.platform == "linux" and self._try()

    @property
    def planrun(self) -> range:
        """Every mark of this planrun process."""
        return range(self._planrun * _ATTEMPTS, (self._planrun + 1) * _ATTEMPTS)

    @property
    def workspace(self) -> range:
        """Every mark of all planrun processes in this workspace, past and present."""
        size = _PLANRUNS * _ATTEMPTS
        return range(self._workspace * size, (self._workspace + 1) * size)

    @property
    def prefix(self) -> str:
        """The digits with which exactly the marks of this planrun process begin; empty without marks."""
        return str(self._planrun) if self.works else ""

    def new(self) -> int:
        """Return the mark of the next attempt; 0 without marks."""
        if not self.works:
            return 0
        self._given = self._given % (_ATTEMPTS - 1) + 1
        return self._planrun * _ATTEMPTS + self._given

    def apply(self, mark: int) -> None:
        """Give children started from now on this mark; 0: the mark that this process was started with."""
        if self.works and sys.platform == "linux":
            resource.setrlimit(_LOCKS, (mark or self._own, self._hard))

    def clear(self) -> None:
        """Give children started from now on no mark, not even that of an outer planrun."""
        self.apply(self._hard)

    def check(self, pid: int, mark: int) -> None:
        """Check once whether a child has its mark: some kernels only emulate Linux."""
        if not self._checked:
            self._checked = True
            self.works = self.works and mark_of(pid) == mark

    def may_exist(self, marks: range, pids: range | None = None) -> bool:
        """Whether processes with one of these marks may exist; `pids` as in is_any_marked()."""
        return not self.works or is_any_marked(marks, pids)

    def _try(self) -> bool:
        if sys.platform == "linux":
            try:
                self._own, self._hard = resource.getrlimit(_LOCKS)
                resource.setrlimit(_LOCKS, (self._planrun * _ATTEMPTS, self._hard))
                resource.setrlimit(_LOCKS, (self._own, self._hard))
            except (OSError, ValueError):  # a sandbox refuses it, or the hard limit is lower
                return False
        return True


def mark_of(pid: int) -> int:
    """Return the mark of a process or thread, zombies included; 0 when it is gone or has none."""
    try:
        return resource.prlimit(pid, _LOCKS)[0] if sys.platform == "linux" else 0
    except PermissionError:  # it runs as another user
        return _written_mark(pid)
    except OSError:
        return 0


def marked_pids(marks: range) -> list[int]:
    """Return the ids of the processes with one of these marks, zombies included, this process excluded."""
    own = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if mark_of(pid) in marks and pid != own]


def is_any_marked(marks: range, pids: range | None) -> bool:
    """Whether a process has one of these marks; `pids`: the only ids it can have, None: any."""
    if pids is None or len(pids) > _FEW:
        return bool(marked_pids(marks))
    return any(mark_of(pid) in marks for pid in pids)


def _written_mark(pid: int) -> int:
    """Read the mark from /proc/PID/limits, which every user may read."""
    try:
        with open(f"/proc/{pid}/limits", "rb", buffering=0) as file:
            return soft_limit(file.read())
    except OSError:
        return 0


def soft_limit(text: bytes) -> int:
    """Return the limit that holds marks from the text of /proc/PID/limits; 0 if it is missing.

    The text is empty when the process is reaped between opening and reading.
    """
    words = text.partition(b"\nMax file locks ")[2].split(maxsplit=1)
    return int(words[0]) if words and words[0].isdigit() else 0


def _number(folder: str) -> int:
    """Return nine digits that identify a folder, independent of how its path is spelled."""
    if folder:
        stat = os.stat(folder)
        name = f"{stat.st_dev} {stat.st_ino}".encode()
    else:
        name = os.urandom(8)
    return 10**8 + int.from_bytes(sha256(name).digest()[:8]) % _WORKSPACES
