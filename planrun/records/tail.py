"""What is added to the ledger of a run while another process executes it."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.model.events import EVENTS
from planrun.opening import open_record
from planrun.records.ledger import GENESIS
from planrun.records.logfiles import PIECE
from planrun.records.reading import event_of
from planrun.records.rundir import LEDGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.events import Event
    from planrun.records.reading import Reading


class LedgerTail:
    """Reads the events of a run as they are written, from the start or behind those that are `known`."""

    def __init__(self, rundir: str, known: Reading | None = None) -> None:
        self._path = os.path.join(rundir, LEDGER)
        try:
            self._fd = open_record(self._path)
        except OSError as error:
            raise InvalidInput(f"cannot read the ledger: {self._path}: {error.strerror}") from None
        self._at = known.size if known else 0
        self._number = len(known.events) if known else 0
        self._head = known.head if known else GENESIS

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

    def is_whole(self) -> bool:
        """Return whether the file is still there, and has all that was read from it."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(status, os.fstat(self._fd)) and status.st_size >= self._at

    @property
    def size(self) -> int:
        """Bytes that were read."""
        return self._at

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
