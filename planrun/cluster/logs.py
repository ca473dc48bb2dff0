"""The log of an attempt that runs on a worker: what arrives, masked and appended."""

from __future__ import annotations

import os

from planrun.errors import RecordsLost
from planrun.folders import make_private
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.ports import Masks

HASHED = 1 << 24  # bytes of a log up to which it is hashed, as the local executor does


class RemoteLog:
    """Takes the output of one attempt in pieces; the file is made with the first one."""

    def __init__(self, path: str, masks: Masks | None) -> None:
        self.path = path
        self.size = 0
        self._stream = masks.stream() if masks else None
        self._digest = sha256()
        self._fd = -1

    def feed(self, data: bytes) -> None:
        """Append a piece; raises RecordsLost."""
        self._append(self._stream.feed(data) if self._stream else data)

    def finish(self) -> tuple[int, str]:
        """Close the log; returns its bytes and their hash. Raises RecordsLost."""
        if self._stream:
            self._append(self._stream.finish())
        self.close()
        return self.size, str(self._digest.hexdigest()) if 0 < self.size <= HASHED else ""

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, start: int, size: int) -> bytes:
        """Return what is in it from byte `start` on, at most `size` bytes."""
        return os.pread(self._fd, size, start) if self._fd >= 0 else b""

    def _append(self, data: bytes) -> None:
        if not data:
            return
        try:
            if self._fd < 0:
                self._open()
            while data:
                written = os.write(self._fd, data)
                if self.size <= HASHED:
                    self._digest.update(data[:written])
                self.size += written
                data = data[written:]
        except OSError as error:
            raise RecordsLost(f"cannot write {self.path}: {error.strerror}") from None

    def _open(self) -> None:
        make_private(os.path.dirname(self.path))
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)
