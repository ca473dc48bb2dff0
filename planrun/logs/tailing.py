"""What is added to the logs of a run while another process executes it."""

from __future__ import annotations

import os

from planrun.app.logtail import GrowingLog
from planrun.logs.attempts import Attempt, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.logs.writing import Writer

_TURN = 1 << 22
"""Bytes of one log that are printed before the next log gets its turn."""


class Growing:
    """The logs of an attempt that may still grow; `attempt` is set anew when it has ended."""

    def __init__(self, rundir: str, attempt: Attempt, writer: Writer, tail: int | None) -> None:
        self.attempt = attempt
        self._rundir = rundir
        self._folder = os.path.join(rundir, "logs")
        self._writer = writer
        self._tail = tail
        self._parts: dict[str, GrowingLog] = {}

    def move(self, slots: dict[str, str]) -> bool:
        """Print what came since the last call; return whether anything did."""
        moved = False
        for name, log in parts_of(self._rundir, self.attempt, slots):
            part = self._parts.get(name)
            if part is None:
                part = GrowingLog(os.path.join(self._rundir, log))
            if not part.open(self._rundir, log, slots, self._tail):
                continue
            limit = part.at + _TURN
            while part.at < limit and (data := part.read(self._folder)):
                if name not in self._parts:
                    self._writer.begin(self.attempt, name)
                    self._parts[name] = part
                self._writer.write(self.attempt, name, data)
                moved = True
            if name not in self._parts:
                part.close()  # it is empty so far
        return moved

    def finish(self, attempt: Attempt, slots: dict[str, str]) -> None:
        """Print the rest of the logs of an attempt that has ended."""
        self.attempt = attempt
        while self.move(slots):
            pass
        for name, part in self._parts.items():
            self._writer.end(attempt, name)
            part.close()
        self._parts = {}
