"""The load by other processes: it slows runs down, and some kinds more than others."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

CALM = 0.10  # share of the processors that other work may use
PATIENCE = 1.0  # seconds to wait for a calm machine before measuring all the same
GLANCE = 0.1  # seconds over which the load is measured


@dataclass(frozen=True)
class Load:
    """Processor seconds of the machine and of this process with its children; `busy` is None without /proc/stat."""

    busy: float | None
    total: float
    own: float

    @classmethod
    def now(cls) -> Load:
        """Read the counters."""
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        try:
            with open("/proc/stat", encoding="ascii") as file:
                ticks = [int(word) for word in file.readline().split()[1:9]]
        except OSError:
            return cls(None, 0, own)
        per_second = os.sysconf("SC_CLK_TCK")
        return cls((sum(ticks) - ticks[3] - ticks[4]) / per_second, sum(ticks) / per_second, own)

    def foreign_since(self, earlier: Load) -> float | None:
        """The share of the processors that others used between two moments, 0 to 1."""
        if self.busy is None or earlier.busy is None or self.total <= earlier.total:
            return None
        others = (self.busy - earlier.busy) - (self.own - earlier.own)
        return max(0.0, min(1.0, others / (self.total - earlier.total)))


def wait_for_calm() -> None:
    """Return as soon as others leave the processors alone, or when patience ends."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        before = Load.now()
        time.sleep(GLANCE)
        share = Load.now().foreign_since(before)
        if share is None or share <= CALM:
            return
