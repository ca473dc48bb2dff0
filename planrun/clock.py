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
        """Seconds since an unspecified moment."""
        return time.monotonic()


def later(stamp: str, seconds: float) -> str:
    """Return the moment `seconds` after a stamp, as a stamp."""
    milliseconds = round(_milliseconds(stamp) + seconds * 1000)
    whole, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:03d}Z"


def between(first: str, second: str) -> float:
    """Return the seconds from one stamp to another; negative when the second is the earlier one."""
    return (_milliseconds(second) - _milliseconds(first)) / 1000


def _milliseconds(stamp: str) -> int:
    from calendar import timegm  # few runs reckon with stamps

    return timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")) * 1000 + int(stamp[20:23])
