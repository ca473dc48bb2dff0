"""Protects the memory of this process from the steps it starts, which are processes of the same user.

Linux gives the memory, the environment and the open files of a process (/proc/PID/mem, environ, fd, ptrace(2)) to
every process of its user, and to those with CAP_SYS_PTRACE. A process that is not dumpable is closed to the former
(prctl(2), PR_SET_DUMPABLE), and its children never have that capability when the bounding and the inheritable set
lack it (capabilities(7)). Steps may still trace their own children.

On newer kernels CAP_SYS_ADMIN suffices to read the environment a process was started with, and steps that mount
file systems as root need that capability. So secrets are erased there; os.environ is a copy elsewhere in memory.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    Enforced = Literal["hidden", "open to root", "open"]
    Call = Callable[..., int]

# prctl(2), capabilities(7), capset(2)
_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4
_PR_CAPBSET_DROP = 24
_CAP_SYS_PTRACE = 19
_CAPABILITY_VERSION = 0x20080522
_STATUS = "/proc/self/status"


def harden(names: Iterable[str]) -> Enforced:
    """Close this process to the steps that start from now on, and return the level of protection.

    `names`: variables to erase from its original environment. "open to root": a step that is or becomes root can
    read this process. "open": every step can. Steps write no core files unless they enable them (`ulimit -c`),
    since a core file holds the environment. This cannot be undone.
    """
    if sys.platform != "linux":
        return "open"
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        # The ctypes package around it takes many times as long to load, in every run with secrets.
        import _ctypes
    except ImportError:  # a Python built without libffi
        return "open"
    erased = _erase(names)  # first: afterwards an ordinary user may not open the process's memory
    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # the program itself, as in dlopen(3)

    def call(name: str, *words: int | bytes) -> int:
        return int(_ctypes.call_function(_ctypes.dlsym(library, name), words))

    call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
    if call("prctl", _PR_GET_DUMPABLE, 0, 0, 0, 0):
        return "open"
    return "hidden" if _drop_ptrace(call) and erased else "open to root"


def _erase(names: Iterable[str]) -> bool:
    """Erase the values of these variables from /proc/self/environ; return whether that worked."""
    wanted = {os.fsencode(name) for name in names if name in os.environ}
    for name in wanted:
        os.putenv(name, os.environb[name])  # the C library makes a copy and uses that from now on
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            # From the state on, which is the third field; 50 and 51 are env_start and env_end (proc_pid_stat(5)).
            fields = file.read().rpartition(b") ")[2].split()
        place, end = int(fields[47]), int(fields[48])
        memory = os.open("/proc/self/mem", os.O_RDWR)
    except OSError:
        return False
    try:
        for entry in os.pread(memory, end - place, place).split(b"\0"):
            name, _, value = entry.partition(b"=")
            if value and name in wanted:
                os.pwrite(memory, bytes(len(value)), place + len(name) + 1)
            place += len(entry) + 1
    except OSError:
        return False
    finally:
        os.close(memory)
    return True


def _drop_ptrace(call: Call) -> bool:
    """Drop CAP_SYS_PTRACE for children; return whether they certainly cannot have it."""
    tracing = 1 << _CAP_SYS_PTRACE
    before = _privileges()
    if before["CapInh"] & tracing:
        inheritable = before["CapInh"] & ~tracing
        words = [
            word >> half & 0xFFFFFFFF
            for half in (0, 32)
            for word in (before["CapEff"], before["CapPrm"], inheritable)
        ]
        header = _CAPABILITY_VERSION.to_bytes(4, sys.byteorder) + bytes(4)  # and this thread
        call("capset", header, b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    if before["CapBnd"] & tracing:
        call("prctl", _PR_CAPBSET_DROP, _CAP_SYS_PTRACE, 0, 0, 0)
    now = _privileges()
    # An ordinary user may not change the bounding set, which matters for setuid programs.
    return not now["CapInh"] & tracing and (not now["CapBnd"] & tracing or bool(now["NoNewPrivs"]))


def _privileges() -> dict[str, int]:
    """Return the capability sets of this process and NoNewPrivs, as the kernel prints them."""
    sets = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs"), 0)
    with open(_STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in sets:
                sets[name] = int(value, 16)
    return sets
