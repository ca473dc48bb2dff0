"""What is left of a run although its planrun is gone or done: found by mark or by environment, and killed."""

from __future__ import annotations

# `_signal` and not `signal`: see signals.py.
import _signal
import os
import time

from planrun.executors.mark import bearers
from planrun.executors.scan import carries, signal_exactly, start_time
from planrun.executors.tree import HAS_PROC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.mark import Marks, Owner

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
        found = bearers(marks.workspace if earlier else marks.planrun) if marks.works else _carriers(entry)
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
    import subprocess  # 10 ms; systems without /proc only, once or twice in a run

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
