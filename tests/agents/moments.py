"""A clock that only tests move."""

from __future__ import annotations

from planrun.clock import later

START = "2026-01-31T09:30:00.000Z"


class Moments:
    """Stamps that stand still until `pass_by` is called."""

    def __init__(self) -> None:
        self.now = START

    def stamp(self) -> str:
        """Return the moment."""
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now = later(self.now, seconds)
