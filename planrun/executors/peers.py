"""Whether a process belongs to a step of a run: by the mark it was born with, its environment, or where it came from.

A step that takes its own mark off, drops its environment, leaves its session and loses its parents looks like anybody
else of the same user; it could as well write into the files of that user.
"""

from __future__ import annotations

import os

from planrun.executors.mark import MARKS, mark_of
from planrun.executors.scan import has_variable, origin
from planrun.executors.tree import HAS_PROC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
