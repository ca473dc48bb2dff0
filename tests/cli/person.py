"""A person at a terminal: starts commands in a pseudo-terminal, reads what is shown and types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PATIENCE = 30.0
"""Seconds within which something is shown; only what hangs takes so long."""
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]")


class Person:
    """One command on a terminal of its own, `width` columns wide; it is killed when the block ends."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str] | None = None,
        width: int = 80,
    ) -> None:
        environ = {**os.environ, "TERM": "xterm-256color", **(variables or {})}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                os.execve(words[0], list(words), environ)
            finally:
                os._exit(127)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.raw = b""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    @property
    def text(self) -> str:
        """All that was shown, without terminal sequences."""
        return _SEQUENCE.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def sees(self, wanted: str, seconds: float = PATIENCE) -> str:
        """Wait until a text is shown that was not waited for before; returns what was shown up to it."""
        limit = time.monotonic() + seconds
        while (at := self.text.find(wanted, self._seen)) < 0:
            if time.monotonic() > limit or not self._read(limit):
                raise AssertionError(f"{wanted!r} is not shown in:\n{self.text}")
        self._seen, before = at + len(wanted), self._seen
        return self.text[before : self._seen]

    def types(self, text: str) -> None:
        """Type text; a newline is Enter."""
        os.write(self.terminal, text.encode())

    def ends(self) -> int:
        """Wait for the end of the command; returns its exit code."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit):
            assert time.monotonic() < limit, self.text
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return code if code >= 0 else 128 - code

    def rests(self, seconds: float) -> None:
        """Read for some time what is shown."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and self._read(limit):
            pass

    def _read(self, limit: float) -> bool:
        """Read what is shown now; False once nothing can be shown any more."""
        if not select.select([self.terminal], [], [], max(0.0, min(0.2, limit - time.monotonic())))[0]:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # the last process that had the terminal is gone
            return False
        self.raw += data
        return bool(data)


def planrun(*words: str) -> list[str]:
    """Return the words that start planrun."""
    return [sys.executable, "-m", "planrun", *words]
