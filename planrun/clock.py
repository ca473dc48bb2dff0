"""The machine's two clocks."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time for records, monotonic time for durations and timeouts."""

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""

    def stamp(self) -> str:
        """RFC 3339 UTC with milliseconds, as in `2026-01-31T09:30:00.125Z`."""
        nanoseconds = time.time_ns()
        second = nanoseconds // 1_000_000_000
        if second != self._second:  # the text of a second is made once
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._prefix}.{nanoseconds // 1_000_000 % 1000:03d}Z"

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()
