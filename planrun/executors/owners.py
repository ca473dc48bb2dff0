"""Whether a process belongs to a step of a run, by its mark, environment or ancestors; and killing of leftovers.

A step that removes its mark, drops its environment, leaves its session and loses its parents looks like any other
process of the same user; such a process could as well change the files of that user.

Leftovers are processes of a run whose planrun is gone or has ended; they are found by mark or by environment.
"""

from __future__ import annotations

# `_signal` and not `signal`: see wait.py.
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

_MOST = 4096  # ancestors: a bound in case process ids are reused during the walk
# Every step of any run has this in its environment; see `scan.COOKIE`.
_RUN = b"PLANRUN_RUN="


def from_step(pid: int) -> bool:
    """Whether a process, an ancestor, or the leader of its session or group belongs to a step of any run.

    A process that is gone counts as one of a step, since that is unknown. So does one that this process started:
    planrun starts only steps.
    """
    if not HAS_PROC or not origin(pid):
        return True
    own = os.getpid()
    return any(
        (other == own and other != pid) or mark_of(other) in MARKS or has_variable(other, _RUN)
        for other in _relations(pid)
    )


def _relations(pid: int) -> Iterator[int]:
    """Yield a process, the leaders of its group and session, its parent, and theirs."""
    seen: set[int] = set()
    waiting = [pid]
    while waiting and len(seen) < _MOST:
        current = waiting.pop()
        if current <= 0 or current in seen:
            continue
        seen.add(current)
        yield current
        waiting += origin(current)


_LIMIT = 1.0  # seconds until it gives up
_PAUSE = 0.002  # seconds between two checks


def kill_leftovers(marks: Marks, owner: Owner, *, earlier: bool) -> int:
    """Kill what this run left; with `earlier`, what any planrun left in the workspace. Return how many were killed."""
    if not HAS_PROC:
        return _kill_groups(owner, earlier=earlier)
    entry = os.fsencode(_entry(owner, earlier=earlier))
    ended: set[tuple[int, int]] = set()
    limit = time.monotonic() + _LIMIT
    while time.monotonic() < limit:
        pids = marked_pids(marks.workspace if earlier else marks.planrun) if marks.works else _carriers(entry)
        living = {(pid, start) for pid in pids if (start := start_time(pid)) >= 0}
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
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if pid != own and carries(pid, (entry,))]


def _kill_groups(owner: Owner, *, earlier: bool) -> int:
    """Kill the groups of processes with the owner in their environment, as ps(1) of macOS shows it."""
    words = ["ps", "-axEww", "-o", "pgid=", "-o", "command="]
    try:
        listed = subprocess.run(words, capture_output=True, check=False).stdout
    except OSError:
        return 0
    entry = os.fsencode(f" {_entry(owner, earlier=earlier)} ")
    groups = {int(line.split(maxsplit=1)[0]) for line in listed.splitlines() if entry in line + b" "}
    groups.discard(os.getpgrp())
    for group in groups:
        try:
            os.killpg(group, _signal.SIGKILL)
        except OSError:  # gone, or it runs as another user
            continue
    return len(groups)
