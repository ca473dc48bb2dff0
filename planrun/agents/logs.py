"""The log of an attempt of an agent, and the part of it that belongs to an agent which it asked."""

from __future__ import annotations

import os

from planrun.folders import make_private
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from planrun.ports import Masks

    class Log(Protocol):
        """What an agent writes into."""

        def write(self, text: str) -> None:
            """Write a line, and the lines of a longer text."""

        def close(self) -> tuple[int, str]:
            """Close it; returns its bytes and their hash."""


class AttemptLog:
    """The log of an attempt of an agent: what it called and reported, a line each."""

    def __init__(self, path: str, masks: Masks | None) -> None:
        self._path = path
        self._masks = masks
        self._digest = sha256()
        self._size = 0
        make_private(os.path.dirname(path))
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, text: str) -> None:
        """Write a line, and the lines of a longer text."""
        if self._fd < 0:
            return
        masked = self._masks.mask_text(text) if self._masks else text
        data = f"{masked}\n".encode("utf-8", "backslashreplace")
        self._digest.update(data)
        self._size += len(data)
        while data:
            data = data[os.write(self._fd, data) :]

    def read(self, start: int, size: int) -> bytes:
        """Return what is in it from byte `start` on."""
        return os.pread(self._fd, size, start) if self._fd >= 0 else b""

    def close(self) -> tuple[int, str]:
        """Close it; returns its bytes and their hash."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return self._size, str(self._digest.hexdigest())


class SubLog:
    """The lines of an agent of some type in the log of the one that waits for it."""

    def __init__(self, log: Log, role: str) -> None:
        self._log = log
        self._role = role

    def write(self, text: str) -> None:
        """Write a line, and the lines of a longer text."""
        self._log.write("\n".join([f"  [{self._role}] {line}" for line in text.split("\n")]))

    def close(self) -> tuple[int, str]:
        """Leave the log open for the agent above."""
        return 0, ""
