"""The ledger: one JSON line an event, each bound to the line before by its hash.

A line is `{"seq": n, "prev": sha256 of the previous line without its newline, "type": …, …}`; the first one's
`prev` is 64 zeros. The hash of the last line is the head: whoever knows it can tell a rewritten ledger.
"""

from __future__ import annotations

import os

from planrun.errors import RecordsLost
from planrun.model.events import NAMES
from planrun.model.jsontext import dumps
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.events import Event

GENESIS = "0" * 64


class Ledger:
    """The one writer of a ledger file, opened for appending; its run holds the workspace lock."""

    def __init__(self, path: str, *, seq: int = 0, head: str = GENESIS) -> None:
        self.path = path
        self.records = seq
        self.head = head
        self._dirty = False
        self._named = False  # whether its name in its folder is known to survive a power cut
        # For benchmarks only: what durability costs is the difference.
        self._durable = "PLANRUN_NO_SYNC" not in os.environ
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._lost(error) from None

    def append(self, event: Event) -> None:
        """Write one event; on return it survives the death of this process. Raises RecordsLost."""
        self.records += 1
        body = dumps(event.__dict__)
        line = (
            f'{{"seq":{self.records},"prev":"{self.head}","type":"{NAMES[type(event)]}",{body[1:]}'.encode()
        )
        self.head = sha256(line).hexdigest()
        line += b"\n"
        try:
            written = os.write(self._fd, line)
            while written < len(line):  # a full disk or a signal cuts a write short
                line = line[written:]
                written = os.write(self._fd, line)
        except OSError as error:
            raise self._lost(error) from None
        self._dirty = True

    def sync(self) -> None:
        """Make what was appended survive a power cut; does nothing when nothing was. Raises RecordsLost."""
        if not self._dirty:
            return
        self._dirty = False
        if self._durable:
            try:
                _sync(self._fd)
                if not self._named:
                    _sync_folder(os.path.dirname(self.path))
                    self._named = True
            except OSError as error:
                raise self._lost(error) from None

    def close(self) -> None:
        """Sync and close."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1

    def _lost(self, error: OSError) -> RecordsLost:
        return RecordsLost(f"the ledger cannot be written: {self.path}: {error.strerror}")


def _sync_folder(path: str) -> None:
    """Make the names in a folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# macOS has no fdatasync
_sync = getattr(os, "fdatasync", os.fsync)
