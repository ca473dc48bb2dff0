"""An executor that starts no processes: the caller gives the outcome of each attempt; the clock moves only by waiting.

With it the real scheduler simulates a run for a replay or a what-if.
"""

from __future__ import annotations

import time
from heapq import heappop, heappush

from planrun.clock import between
from planrun.model.job import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from planrun.errors import RecordsLost
    from planrun.model.job import Job


class VirtualClock:
    """A clock that begins at `start` (RFC 3339) and moves only when it is set."""

    def __init__(self, start: str = "2000-01-01T00:00:00.000Z") -> None:
        self.now = 0.0
        self._start = between("1970-01-01T00:00:00.000Z", start)

    def stamp(self) -> str:
        """RFC 3339 UTC with milliseconds."""
        seconds, thousandths = divmod(round((self._start + self.now) * 1000), 1000)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{thousandths:03d}Z"

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self.now


class VirtualExecutor:
    """The port `Executor`: `play` returns at the start of an attempt its outcome, which comes `duration` seconds later.

    `moments`: times of other events, in order; no wait goes past the next one of them.
    """

    def __init__(
        self, clock: VirtualClock, play: Callable[[Job], Outcome], moments: tuple[float, ...] = ()
    ) -> None:
        self.lost: RecordsLost | None = None
        self._clock = clock
        self._play = play
        self._moments = list(moments)
        self._live: dict[str, tuple[Job, Outcome]] = {}
        self._ends: list[tuple[float, int, Job]] = []
        self._started = 0

    @property
    def running(self) -> tuple[str, ...]:
        """The steps whose attempt has no outcome yet."""
        return tuple(self._live)

    def start(self, job: Job) -> None:
        """Start an attempt."""
        outcome = self._play(job)
        self._live[job.step] = (job, outcome)
        self._end(job, self._clock.now + outcome.duration)

    def _end(self, job: Job, at: float) -> None:
        self._started += 1
        heappush(self._ends, (at, self._started, job))

    def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        """Move the clock to the next end, `timeout` seconds at most, and return what ended then."""
        while self._moments and self._moments[0] <= self._clock.now:
            self._moments.pop(0)
        ends = [self._ends[0][0]] if self._ends else []
        if timeout is not None:
            ends.append(self._clock.now + timeout)
        until = min([*ends, *self._moments[:1]], default=self._clock.now)
        self._clock.now = max(self._clock.now, until)
        ended = []
        while self._ends and self._ends[0][0] <= self._clock.now:
            job = heappop(self._ends)[2]
            live = self._live.get(job.step)
            if live is not None and live[0] is job:
                ended.append(self._live.pop(job.step))
        return ended

    def attend(self) -> None:
        """Do nothing: the clock stands still between waits."""

    def output(self, _step: str, _start: int, _size: int) -> bytes | None:
        """Return None: no process writes anything."""
        return None

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """End an attempt at once."""
        job, _ = self._live[step]
        status: Literal["failed", "cancelled"] = "failed" if reason == "timeout" else "cancelled"
        self._live[step] = (job, Outcome(status=status, reason=reason))
        self._end(job, self._clock.now)

    def signal_all(self, _signum: int) -> None:
        """End every attempt at once: the effect of a signal on a process cannot be simulated."""
        for step in list(self._live):
            self.stop(step, "cancelled")

    def kill_all(self) -> None:
        """End every attempt at once."""
        self.signal_all(9)

    def close(self) -> None:
        """Leave nothing running."""
        self._live.clear()
