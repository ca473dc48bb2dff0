"""What is added to the ledger and to the logs of a run while another process executes it."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.executors.logs import elsewhere
from planrun.logs.attempts import Attempt, parts_of
from planrun.logs.files import PIECE, open_log, start_of_last
from planrun.model.events import EVENTS
from planrun.records.ledger import GENESIS
from planrun.records.reading import event_of
from planrun.records.rundir import LEDGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.logs.writing import Writer
    from planrun.model.events import Event

_TURN = 1 << 22
"""Bytes of one log that are printed before the next log gets its turn."""


class LedgerTail:
    """Reads the events of a run as they are written."""

    def __init__(self, rundir: str) -> None:
        self._path = os.path.join(rundir, LEDGER)
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise InvalidInput(f"cannot read the ledger: {self._path}: {error.strerror}") from None
        self._at = 0
        self._number = 0
        self._head = GENESIS

    def news(self) -> list[Event]:
        """Return the events since the last call; raises InvalidInput when the ledger is not sound."""
        parts = []
        at = self._at
        while piece := os.pread(self._fd, PIECE, at):
            parts.append(piece)
            at += len(piece)
        *lines, _ = b"".join(parts).split(b"\n")  # the last one is being written
        events: list[Event] = []
        for row in lines:
            try:
                events.append(event_of(EVENTS, row, self._number + 1, self._head))
            except ValueError as error:
                if events:
                    break  # the next call reports it
                raise InvalidInput(
                    f"the ledger cannot be followed: {self._path}:{self._number + 1}: {error}"
                ) from None
            self._number += 1
            self._head = row[-66:-2].decode()
            self._at += len(row) + 1
        return events

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


class _Part:
    """One log of an attempt that grows, wherever it is now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.at = 0
        self._is_placed = False

    def open(self, rundir: str, log: str, slots: dict[str, str], tail: int | None) -> bool:
        """Open it; False while there is nothing of it."""
        if self.fd < 0:
            self.fd = open_log(rundir, log, slots)
            if self.fd >= 0 and tail is not None:
                self.at = start_of_last(self.fd, tail)
        return self.fd >= 0

    def read(self, folder: str) -> bytes:
        """Return what came since; nothing, and closed, when what was opened belongs to another log by now."""
        data = os.pread(self.fd, PIECE, self.at)
        if data and not self._is_placed and not self._is_ours(folder):
            self.close()
            return b""
        self.at += len(data)
        return data

    def _is_ours(self, folder: str) -> bool:
        self._is_placed = _same(self.path, self.fd)
        return (
            self._is_placed
            or _same(elsewhere(folder).get(self.path, ""), self.fd)
            or _same(self.path, self.fd)
        )

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.at = -1, 0


def _same(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(fd))
    except OSError:
        return False


class Growing:
    """The logs of an attempt that may still grow; `attempt` is set anew when it has ended."""

    def __init__(self, rundir: str, attempt: Attempt, writer: Writer, tail: int | None) -> None:
        self.attempt = attempt
        self._rundir = rundir
        self._folder = os.path.join(rundir, "logs")
        self._writer = writer
        self._tail = tail
        self._parts: dict[str, _Part] = {}

    def move(self, slots: dict[str, str]) -> bool:
        """Print what came since the last call; return whether anything did."""
        moved = False
        for name, log in parts_of(self._rundir, self.attempt, slots):
            part = self._parts.get(name)
            if part is None:
                part = _Part(os.path.join(self._rundir, log))
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
