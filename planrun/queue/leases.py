"""Leases of a queue that machines share: a runner gives signs of life, others wait until they stay out for long enough.

A sign of life is an object with a number that grows. No clocks of two machines are compared: a runner counts its lease
from the moment before it wrote a sign, an observer from the moment at which it saw the sign first, which is later.
"""

from __future__ import annotations

import os
import time

from planrun.errors import InvalidInput
from planrun.records.machine import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.queue import Worker
    from planrun.places.place import Place

LEASE = 60.0
"""Seconds of a lease, unless PLANRUN_QUEUE_LEASE says otherwise."""
LEAST = 3.0
VARIABLE = "PLANRUN_QUEUE_LEASE"
_SIGNS = 6  # signs of life within a lease


def lease_seconds() -> float:
    """Return how long leases of this runner are; raises InvalidInput for a wrong PLANRUN_QUEUE_LEASE."""
    text = os.environ.get(VARIABLE, "")
    whole, _, rest = text.partition(".")
    if text and not ((whole + rest).isdecimal() and len(text) < 8 and float(text) >= LEAST):
        raise InvalidInput(f'{VARIABLE} takes a number of seconds from {LEAST:g} up, not "{text}"')
    return float(text) if text else LEASE


def now() -> float:
    """Return seconds by a clock that nobody sets, and that counts while the machine sleeps where the system has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """The lease of this runner; `until`: when it is over, by `now`."""

    def __init__(self, place: Place, seconds: float) -> None:
        self.runner = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.seconds = seconds
        self.signed = 0.0  # before the last sign of life was written
        self._place = place
        self._count = 0

    def worker(self, process: Worker, workspace: str) -> Worker:
        """Return a process of this runner as the queue records it."""
        return process.but(
            host=machine(), runner=self.runner, lease=self.seconds, folder=os.path.realpath(workspace)
        )

    @property
    def is_due(self) -> bool:
        """Whether a sign of life is due."""
        return now() - self.signed > self.seconds / _SIGNS

    def sign(self) -> None:
        """Give a sign of life; raises RemoteError."""
        began = now()
        self._count += 1
        self._place.write(f"runners/{self.runner}", str(self._count).encode())
        self.signed = began

    def end(self) -> None:
        """Remove the signs of life; raises RemoteError."""
        self._place.remove(f"runners/{self.runner}")


class Watch:
    """The runners of other machines, as far as they were seen."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._seen: dict[str, tuple[bytes | None, float]] = {}  # the last sign, and when it was seen first
        self._asked: dict[str, float] = {}

    def is_over(self, runner: str, lease: float) -> bool:
        """Return whether a runner gave no sign of life for a whole lease; raises RemoteError."""
        moment = now()
        if moment - self._asked.get(runner, -lease) >= lease / _SIGNS / 2:
            sign = self._place.read(f"runners/{runner}")
            self._asked[runner] = moment
            if runner not in self._seen or self._seen[runner][0] != sign:
                self._seen[runner] = (sign, now())
        return moment - self._seen[runner][1] > lease
