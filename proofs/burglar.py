"""What a hostile step tries to learn of planrun; a program of its own, which needs nothing but Python.

    burglar.py loot.json look      tries every way to read what planrun knows
    burglar.py loot.json crash     makes planrun leave a core file, if it can

What was tried, what it came to and what was found is written into the file, as JSON.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Loot = dict[str, str | list[str]]

PLANTED = re.compile(rb"planted-\d\d-[0-9a-f]{16}")
_MOST = 1 << 28  # bytes of one region of memory
_ATTACH, _DETACH = 16, 17  # ptrace(2)
_WALL = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Region(ctypes.Structure):
    """A `struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read(path: str) -> bytes:
    """Everything in a file."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def regions(pid: int) -> Iterator[tuple[int, int]]:
    """Where the memory of a process is."""
    for line in read(f"/proc/{pid}/maps").decode().splitlines():
        span, rights, *_ = line.split()
        first, last = (int(word, 16) for word in span.split("-"))
        if "r" in rights and last - first < _MOST:
            yield first, last - first


def memory(pid: int) -> bytes:
    """All of it, by /proc/PID/mem."""
    found: list[bytes] = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for first, length in regions(pid):
            try:
                file.seek(first)
                found.append(file.read(length))
            except (OSError, OverflowError):  # [vvar], [vsyscall]
                continue
    return b"".join(found)


def memory_by_call(pid: int) -> bytes:
    """All of it, by process_vm_readv(2)."""
    found = []
    for first, length in regions(pid):
        here = ctypes.create_string_buffer(length)
        mine, its = Region(ctypes.addressof(here), length), Region(first, length)
        got = _LIBC.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(its), 1, 0)
        if got < 0 and ctypes.get_errno() != 14:  # EFAULT: nothing is there
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        found.append(here.raw[: max(got, 0)])
    return b"".join(found)


def memory_by_tracing(pid: int) -> bytes:
    """All of it, as a debugger reads it."""
    if _LIBC.ptrace(_ATTACH, pid, None, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.waitpid(pid, _WALL)
    try:
        return b"attached" + memory(pid)
    finally:
        _LIBC.ptrace(_DETACH, pid, None, None)


def files(pid: int) -> bytes:
    """What is in the files that a process has open."""
    found = b""
    for name in os.listdir(f"/proc/{pid}/fd"):
        link = f"/proc/{pid}/fd/{name}"
        os.readlink(link)
        if os.path.isfile(link):
            found += read(link)
    return found


def inherited() -> bytes:
    """What is in the files that planrun left open for this process."""
    opened = [int(name) for name in os.listdir("/proc/self/fd")]
    found = b""
    for descriptor in opened:
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the folder itself
            continue
        if descriptor > 2:
            found += target.encode()
            if os.path.isfile(target):
                found += read(target)
    return found


def guardian() -> int:
    """The process that guards this run."""
    run = os.environ["PLANRUN_RUN"].encode()
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = read(path).split(b"\0")
        except OSError:
            continue
        if run in words and any(word.endswith(b"guardian.sh") for word in words):
            return int(path.split("/")[2])
    raise ProcessLookupError(3, "there is no guardian")


def everybody() -> bytes:
    """The environment and the command line of every process but this one, as far as they can be read."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            for name in ("environ", "cmdline"):
                try:
                    found.append(read(f"/proc/{pid}/{name}"))
                except OSError:
                    continue
    return b"".join(found)


def core_files(since: float) -> bytes:
    """What is in core files, in the folder where they are left by default."""
    return b"".join(read(path) for path in glob.glob("core*") if os.path.getmtime(path) >= since)


def own_core() -> bytes:
    """What a process leaves that a fault ends; it has the environment of this one."""
    since = time.time() - 1
    child = os.fork()
    if not child:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
        os._exit(1)
    if os.WCOREDUMP(os.waitpid(child, 0)[1]):
        return b"the system left a core file" + core_files(since)
    return b""


def tried(way: Callable[[], bytes]) -> Loot:
    """What one way came to."""
    try:
        data = way()
    except OSError as error:
        return {"says": str(error.strerror), "found": []}
    return {"says": f"{len(data)} bytes", "found": sorted({one.decode() for one in PLANTED.findall(data)})}


def look(planrun: int) -> dict[str, Loot]:
    """Try every way."""
    ways = {
        "own environment": lambda: read("/proc/self/environ"),
        "inherited files": inherited,
        "environ of planrun": lambda: read(f"/proc/{planrun}/environ"),
        "cmdline of planrun": lambda: read(f"/proc/{planrun}/cmdline"),
        "maps of planrun": lambda: read(f"/proc/{planrun}/maps"),
        "memory of planrun": lambda: memory(planrun),
        "the same by process_vm_readv": lambda: memory_by_call(planrun),
        "the same by ptrace": lambda: memory_by_tracing(planrun),
        "files of planrun": lambda: files(planrun),
        "environ of the guardian": lambda: read(f"/proc/{guardian()}/environ"),
        "memory of the guardian": lambda: memory(guardian()),
        "files of the guardian": lambda: files(guardian()),
        "environ of everybody": everybody,
        "own core file": own_core,
    }
    return {name: tried(way) for name, way in ways.items()}


def crash(planrun: int) -> dict[str, Loot]:
    """Let planrun leave a core file of any size, and end it as a fault would."""
    try:
        hard = resource.prlimit(planrun, resource.RLIMIT_CORE)[1]
        resource.prlimit(planrun, resource.RLIMIT_CORE, (hard, hard))
    except OSError as error:
        return {"limit of planrun's core files": {"says": str(error.strerror), "found": []}}
    os.kill(planrun, signal.SIGSEGV)
    return {"limit of planrun's core files": {"says": f"raised to {hard}", "found": []}}


if __name__ == "__main__":
    print(dict(os.environ))
    loot = (crash if sys.argv[2] == "crash" else look)(os.getppid())
    with open(sys.argv[1], "w", encoding="ascii") as output:
        json.dump(loot, output)
