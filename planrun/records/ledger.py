"""The ledger: one JSON line an event, each with a hash over itself and the hash of the line before.

A line is `{"seq":n,"type":"…",…,"hash":"…"}`. Its hash is the sha256, in hex, of the hash of the line before
(64 zeros before the first) followed by the bytes of the line up to `,"hash"`. So a changed line is known by itself,
and a moved or missing one by the next. The hash of the last line is the head: whoever knows it can tell a rewritten
ledger.
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
        fields = dumps(event.__dict__)
        body = f'{{"seq":{self.records},"type":"{NAMES[type(event)]}",{fields[1:-1]}'
        self.head = sha256((self.head + body).encode()).hexdigest()
        line = f'{body},"hash":"{self.head}"}}\n'.encode()
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
