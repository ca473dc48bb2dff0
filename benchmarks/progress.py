"""What is measured at the moment, on stderr, and about how long the rest takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SECONDS = {
    "P1": 16,
    "P2": 6,
    "P3": 16,
    "P4": 260,
    "P5": 150,
    "P6": 35,
    "P7": 60,
    "P8": 40,
    "P9": 50,
    "P10": 20,
    "S3": 60,
}
"""About how long each goal took on a calm machine of 2 cores. Only their proportions are used, once one has ended."""
QUIET = 5.0  # seconds between two lines where stderr is no terminal


@dataclass
class Progress:
    """One line that is rewritten on a terminal; elsewhere a line from time to time."""

    goals: Sequence[str] = ()
    scale: float = 1.0  # of SECONDS: how much less is measured
    began: float = field(default_factory=time.monotonic)
    goal: str = ""
    _goal_began: float = 0.0
    _done: dict[str, float] = field(default_factory=dict)  # seconds that each goal took
    _printed: float = 0.0

    def start(self, goal: str) -> None:
        """Begin a goal."""
        self.goal, self._goal_began = goal, time.monotonic()

    def end(self) -> None:
        """End a goal."""
        self._done[self.goal] = time.monotonic() - self._goal_began

    def show(self, work: str, number: int, rounds: int, program: str) -> None:
        """Show what is measured; round 0 is the warm-up."""
        now = time.monotonic()
        is_terminal = sys.stderr.isatty()
        if not is_terminal and now - self._printed < QUIET:
            return
        self._printed = now
        turn = f"round {number} of {rounds}" if number else "warm-up"
        rest = remaining(self.goals, self.scale, self._done, self.goal, now - self._goal_began)
        times = f"{clock(now - self.began)} elapsed, about {clock(rest)} left"
        text = f"{self.goal} {work}: {turn}, {program} ({times})"
        print(
            f"\r\033[K{text[:150]}" if is_terminal else text,
            end="" if is_terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def clear(self) -> None:
        """Remove the line, so that a result can be printed."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def remaining(
    goals: Sequence[str], scale: float, done: Mapping[str, float], goal: str, spent: float
) -> float:
    """Seconds that the goals still take, `spent` of them on the current one, at the speed of those that are done."""
    expected = sum(SECONDS[name] for name in done)
    if expected:
        scale = sum(done.values()) / expected
    todo = sum(SECONDS[name] for name in goals if name not in done and name != goal)
    here = SECONDS[goal] if goal else 0
    return todo * scale + max(0.0, here * scale - spent)


def clock(seconds: float) -> str:
    """A duration as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
