"""The mark of an attempt: a number that each of its processes has from birth and does not lose by accident.

It stands in RLIMIT_LOCKS, a limit that Linux has not looked at since 2.4.25 (getrlimit(2)). Every child inherits
it, whatever becomes of its parents, its session, its environment and its descriptors, and anybody may read it.
Only a process that sets this very limit is without. Other systems have nothing like it.

A mark has 19 decimal digits, so that a shell can tell them apart: 9 for the workspace, 4 for the planrun, 6 for
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
_WORKSPACES = 8 * 10**8  # as many as leave the largest mark below 2**63
_PLANRUNS = 10**4
_ATTEMPTS = 10**6
MARKS = range(10**8 * _PLANRUNS * _ATTEMPTS, (10**8 + _WORKSPACES) * _PLANRUNS * _ATTEMPTS)
"""Every mark that there is, of whatever workspace."""
_FEW = 200  # process ids that are faster looked at one by one than by listing all there are


class Owner(Record):
    """Whose processes these are: a run's id, and the path of the workspace that it has for itself.

    `listing`: a file that names the copies of scripts which are in place; "" for none.
    `engine`: the program that runs containers, where a step may be in one. `runs`: the folder of all runs.
    """

    run: str
    workspace: str
    listing: str = ""
    engine: str = ""
    runs: str = ""


class Marks:
    """The marks of one planrun; `workspace`: the folder that one run at a time uses, "" for none.

    `works` is false where no process can be marked.
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
        """Every mark of this planrun."""
        return range(self._planrun * _ATTEMPTS, (self._planrun + 1) * _ATTEMPTS)

    @property
    def workspace(self) -> range:
        """Every mark of any planrun in this workspace, now and before."""
        size = _PLANRUNS * _ATTEMPTS
        return range(self._workspace * size, (self._workspace + 1) * size)

    @property
    def prefix(self) -> str:
        """The digits with which every mark of this planrun begins, and no other; empty without marks."""
        return str(self._planrun) if self.works else ""

    def new(self) -> int:
        """Return the mark of the next attempt; 0 without marks."""
        if not self.works:
            return 0
        self._given = self._given % (_ATTEMPTS - 1) + 1
        return self._planrun * _ATTEMPTS + self._given

    def wear(self, mark: int) -> None:
        """Give the children born from now on this mark; 0 for the one that this process was started with."""
        if self.works and sys.platform == "linux":
            resource.setrlimit(_LOCKS, (mark or self._own, self._hard))

    def shed(self) -> None:
        """Have the children born from now on bear no mark, not even that of a planrun which runs this one."""
        self.wear(self._hard)

    def check(self, pid: int, mark: int) -> None:
        """See once whether a child has the mark it was born with: there are kernels that only act like Linux."""
        if not self._checked:
            self._checked = True
            self.works = self.works and mark_of(pid) == mark

    def possible(self, marks: range, born: range | None = None) -> bool:
        """Whether there can be processes that ought to have one of these marks; `born` as in borne()."""
        return not self.works or is_any_marked(marks, born)

    def _try(self) -> bool:
        if sys.platform == "linux":
            try:
                self._own, self._hard = resource.getrlimit(_LOCKS)
                resource.setrlimit(_LOCKS, (self._planrun * _ATTEMPTS, self._hard))
                resource.setrlimit(_LOCKS, (self._own, self._hard))
            except (OSError, ValueError):  # refused by a sandbox; a lower hard limit
                return False
        return True


def mark_of(pid: int) -> int:
    """Return the mark of a process or thread, zombies included; no mark for one that is gone or has none."""
    try:
        return resource.prlimit(pid, _LOCKS)[0] if sys.platform == "linux" else 0
    except PermissionError:  # it runs as somebody else
        return _written_mark(pid)
    except OSError:
        return 0


def marked_pids(marks: range) -> list[int]:
    """Return the ids of the processes with one of these marks, zombies included, this process excluded."""
    own = os.getpid()
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in found if mark_of(pid) in marks and pid != own]


def is_any_marked(marks: range, born: range | None) -> bool:
    """Whether a process has one of these marks; `born`: the only ids it can have, None when it can have any."""
    if born is None or len(born) > _FEW:
        return bool(marked_pids(marks))
    return any(mark_of(pid) in marks for pid in born)


def _written_mark(pid: int) -> int:
    """Read the mark from the text that everybody may read."""
    try:
        with open(f"/proc/{pid}/limits", "rb", buffering=0) as file:
            return soft_limit(file.read())
    except OSError:
        return 0


def soft_limit(text: bytes) -> int:
    """Return the limit that carries marks from the text of /proc/PID/limits; 0 where it names none.

    The text is empty when the process is reaped between opening and reading.
    """
    words = text.partition(b"\nMax file locks ")[2].split(maxsplit=1)
    return int(words[0]) if words and words[0].isdigit() else 0


def _number(folder: str) -> int:
    """Nine digits that are the same for everybody who uses this folder, however they spell its path."""
    if folder:
        stat = os.stat(folder)
        name = f"{stat.st_dev} {stat.st_ino}".encode()
    else:
        name = os.urandom(8)
    return 10**8 + int.from_bytes(sha256(name).digest()[:8]) % _WORKSPACES
