"""A terminal as a person sees it: what `planrun watch` draws, row by row, at any size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import pyte

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

KEYS = {
    "down": "\x1b[B",
    "up": "\x1b[A",
    "left": "\x1b[D",
    "right": "\x1b[C",
    "page down": "\x1b[6~",
    "end": "\x1b[F",
    "enter": "\r",
    "escape": "\x1b",
}


class Watched:
    """`planrun watch` on a terminal of its own; it is killed when the block ends."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        size: tuple[int, int] = (80, 24),
        variables: dict[str, str] | None = None,
    ) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        environ = {**os.environ, "TERM": "xterm-256color", **(variables or {})}
        argv = [sys.executable, "-m", "planrun", "watch", *words]
        self._leader, follower = pty.openpty()
        self._resize(follower, size)
        self.modes = termios.tcgetattr(follower)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
                for number in range(3):
                    os.dup2(follower, number)
                os.chdir(folder)
                os.execve(argv[0], argv, environ)
            finally:
                os._exit(127)
        self._follower = follower  # stays open, so that its modes can be read at the end
        self._code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._leader)
        os.close(self._follower)

    @property
    def rows(self) -> list[str]:
        """What is on the screen now."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """The rows as one text."""
        return "\n".join(self.rows)

    @property
    def chosen(self) -> str:
        """The row of the chosen step."""
        return next((row for row in self.rows if row.startswith(">")), "")

    def sees(self, wanted: str | Callable[[Watched], object]) -> Any:
        """Wait until a text is on the screen, or something holds of it; return what it says."""
        limit = time.monotonic() + LIMIT
        while True:
            found = wanted in self.text if isinstance(wanted, str) else wanted(self)
            if found:
                return found
            assert time.monotonic() < limit, f"{wanted!r} is not on the screen:\n{self.text}"
            assert self._read(), f"planrun ended:\n{self.text}"

    def _read(self) -> bool:
        if not select.select([self._leader], [], [], 0.05)[0]:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
            return not ended
        data = os.read(self._leader, 1 << 16)
        self.raw += data
        self._stream.feed(data)
        return True

    def types(self, *keys: str) -> None:
        """Press keys, each by its name or as a text."""
        for key in keys:
            os.write(self._leader, KEYS.get(key, key).encode())

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal so large."""
        self._screen.resize(rows, columns)
        self._screen.erase_in_display(2)
        self._resize(self._follower, (columns, rows))

    @staticmethod
    def _resize(fd: int, size: tuple[int, int]) -> None:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def ends(self) -> int:
        """Wait for the end; the terminal must be as it was. Returns the exit code."""
        limit = time.monotonic() + LIMIT
        while self._code is None:
            assert time.monotonic() < limit, self.text
            self._read()
        while select.select([self._leader], [], [], 0)[0]:
            self.raw += os.read(self._leader, 1 << 16)
        assert termios.tcgetattr(self._follower) == self.modes
        assert self.raw.rstrip().endswith(b"\x1b[?1049l"), self.raw[-80:]
        assert self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")
        return self._code
