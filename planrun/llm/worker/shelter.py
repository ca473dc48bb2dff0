"""Closes this process to all others of its user before it is told anything: it will hold credentials."""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4  # prctl(2)
_STATUS = "/proc/self/status"


def take_shelter() -> str:
    """Make memory, environment and descriptors of this process unreadable; returns what became of it.

    hidden: the system granted it. open: it has no such thing (macOS). traced: somebody was faster, and sees everything.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file has the credentials
    if sys.platform != "linux":
        return "open"
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if library.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0):
        return "open"
    return "traced" if _tracer() else "hidden"


def _tracer() -> int:
    """Return the id of a process that has this one under its control since before; 0: there is none."""
    with open(_STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    return 0
