"""Whether a process belongs to a step of a run: by the mark it was born with, its environment, or where it came from.

A step that takes its own mark off, drops its environment, leaves its session and loses its parents looks like anybody
else of the same user; it could as well write into the files of that user.

What is left of a run although its planrun is gone or done: found by mark or by environment, and killed.
"""

from __future__ import annotations

import _signal
import os
import subprocess
import time

from planrun.executors.mark import MARKS, mark_of, marked_pids
from planrun.executors.scan import carries, has_variable, origin, signal_exactly, start_time
from planrun.executors.tree import HAS_PROC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.executors.mark import Marks, Owner

_MOST = 4096  # ancestors: more than any system has, where process ids are used again while they are looked at
# What every step of any run has in its environment, whatever else; see `scan.COOKIE`.
_RUN = b"PLANRUN_RUN="


def from_step(pid: int) -> bool:
    """Whether a process, an ancestor of it, or who leads its session or group belongs to a step, of whatever run.

    A process that is gone counts as one of a step: nobody can tell. What this process itself started does, too:
    planrun starts nothing but steps.
    """
    if not HAS_PROC or not origin(pid):
        return True
    own = os.getpid()
    return any(
        (found == own and found != pid) or mark_of(found) in MARKS or has_variable(found, _RUN)
        for found in _relations(pid)
    )


def _relations(pid: int) -> Iterator[int]:
    """Yield a process, the leaders of its group and session, its parent, and theirs."""
    seen: set[int] = set()
    waiting = [pid]
    while waiting and len(seen) < _MOST:
        found = waiting.pop()
        if found <= 0 or found in seen:
            continue
        seen.add(found)
        yield found
        waiting += origin(found)


# `_signal` and not `signal`: see signals.py.


_LIMIT = 1.0  # seconds until killing is given up
_PAUSE = 0.002  # seconds between two looks


def kill_leftovers(marks: Marks, owner: Owner, *, earlier: bool) -> int:
    """Kill what this run left; with `earlier` what any planrun left in the workspace. Returns how many ended."""
    if not HAS_PROC:
        return _kill_groups(owner, earlier=earlier)
    entry = os.fsencode(_entry(owner, earlier=earlier))
    ended: set[tuple[int, int]] = set()
    limit = time.monotonic() + _LIMIT
    while time.monotonic() < limit:
        found = (
            marked_pids(marks.workspace if earlier else marks.planrun) if marks.works else _carriers(entry)
        )
        living = {(pid, start) for pid in found if (start := start_time(pid)) >= 0}
        if not living:
            break
        for pid, start in living:
            signal_exactly(pid, start, _signal.SIGKILL)
        ended |= living
        time.sleep(_PAUSE)
    return len(ended)


def _entry(owner: Owner, *, earlier: bool) -> str:
    return f"PLANRUN_WORKSPACE={owner.workspace}" if earlier else f"PLANRUN_RUN={owner.run}"


def _carriers(entry: bytes) -> list[int]:
    own = os.getpid()
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in found if pid != own and carries(pid, (entry,))]


def _kill_groups(owner: Owner, *, earlier: bool) -> int:
    """Kill the groups of processes with the owner in their environment, as ps(1) of macOS shows it."""
    words = ["ps", "-axEww", "-o", "pgid=", "-o", "command="]
    try:
        listed = subprocess.run(words, capture_output=True, check=False).stdout
    except OSError:
        return 0
    entry = os.fsencode(f" {_entry(owner, earlier=earlier)} ")
    found = {int(line.split(maxsplit=1)[0]) for line in listed.splitlines() if entry in line + b" "}
    found.discard(os.getpgrp())
    for group in found:
        try:
            os.killpg(group, _signal.SIGKILL)
        except OSError:  # gone, or it runs as somebody else
            continue
    return len(found)
