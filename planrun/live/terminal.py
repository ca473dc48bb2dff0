"""The terminal as a screen: its modes, its keys, and what is drawn on it; whatever ends planrun, it is put back."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, Self

# Another screen, no cursor, no wrapping; and back.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
# A terminal that knows them shows what stands between both at once.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x1b": "escape", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x03": "interrupt",
    "\x04": "quit", "\t": "tab",
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-9;?]*[A-Za-z~]|\x1bO[A-Za-z]|[\s\S]")
_ESCAPE_REST = 0.05  # seconds in which the rest of a sequence may come
_LEAST = (20, 6)  # columns and rows of a terminal that is told smaller, or nothing


class Ended(BaseException):
    """A signal asks planrun to end; no handler of errors takes it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class FullScreen:
    """The terminal on descriptors 0 and 1 while a run is watched; within `with` it is a screen of its own."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._drawn: list[str] = []
        self._size = (0, 0)

    @staticmethod
    def is_there() -> bool:
        """Return whether stdin and stdout are a terminal that can be drawn on."""
        try:
            both = sys.stdin is not None and sys.stdout is not None and os.isatty(0) and os.isatty(1)
        except ValueError:  # closed
            return False
        return both and os.environ.get("TERM", "") not in ("", "dumb")

    def __enter__(self) -> Self:
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self._handlers[signum] = signal.signal(signum, self._end)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)
        self._take()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._give_back()
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)

    def _take(self) -> None:
        self._before = termios.tcgetattr(0)
        tty.setcbreak(0, termios.TCSADRAIN)
        _write(_ENTER)
        self._drawn, self._size = [], (0, 0)

    def _give_back(self) -> None:
        if self._before is not None:
            try:
                _write(_LEAVE)
                termios.tcsetattr(0, termios.TCSADRAIN, self._before)
            except (OSError, termios.error):  # the terminal is gone
                pass
            self._before = None

    def _end(self, signum: int, _frame: FrameType | None) -> None:
        for each in self._handlers:
            if each != signal.SIGTSTP:
                signal.signal(each, signal.SIG_IGN)  # nothing ends the way back
        raise Ended(signum)

    def _stop(self, _signum: int, _frame: FrameType | None) -> None:
        """Put the terminal back before the shell has it, and take it again when planrun goes on."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stop)
        self._take()

    def size(self) -> tuple[int, int]:
        """Return columns and rows as they are now."""
        try:
            found = os.get_terminal_size(1)
        except OSError:
            return _LEAST
        return max(_LEAST[0], found.columns), max(_LEAST[1], found.lines)

    def draw(self, lines: Sequence[str]) -> None:
        """Draw one line in each row, and only those that differ from what is there."""
        size = self.size()
        if size != self._size:
            self._drawn, self._size = [], size
        known = [*self._drawn, *[None] * (len(lines) - len(self._drawn))]
        parts = [
            f"\x1b[{row};1H\x1b[K{text}\x1b[0m"  # erased first: in the last column the cursor stays on a character
            for row, (text, old) in enumerate(zip(lines, known, strict=False), 1)
            if text != old
        ]
        if not self._drawn:
            parts.insert(0, "\x1b[2J")
        if parts:
            text = "".join([_BEGIN, *parts, _END])
            _write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        self._drawn = list(lines)

    def keys(self, seconds: float) -> list[str]:
        """Return the keys that were pressed, by name or as the letter; waits for the first one at most so long."""
        if not select.select([0], [], [], seconds)[0]:
            return []
        data = os.read(0, 4096)
        if not data:
            return ["quit"]  # the terminal is gone
        if data.endswith(b"\x1b") and select.select([0], [], [], _ESCAPE_REST)[0]:
            data += os.read(0, 4096)
        text = data.decode("utf-8", "ignore")
        return [_NAMES.get(key, key) for key in _KEY.findall(text) if key in _NAMES or key.isprintable()]


def _write(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            select.select([], [1], [])
