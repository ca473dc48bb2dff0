"""The terminal on which a run asks: whether planrun may read it, and the lines that are typed there.

It is read from descriptor 0 in the mode in which it is, which is line by line. Steps have another session and no
terminal: their stdin is /dev/null, and /dev/tty cannot be opened by them.
"""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
import _signal
import os
import select
import sys
import termios

from planrun.approval.control import refuse_steps
from planrun.errors import Denied
from planrun.reports.ci import vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

STDIN = 0
_LONGEST = 1 << 16  # bytes of one line
_STOPPING = (_signal.SIGTTIN, _signal.SIGTTOU)  # type: ignore[attr-defined]


def may_ask(environ: Mapping[str, str]) -> bool:
    """Return whether a person is at the terminal of this process: not in CI, not in a step, not in the background."""
    try:
        refuse_steps("ask")
    except Denied:
        return False
    return not vendor(environ) and Terminal.is_person()


class Terminal:
    """Descriptor 0 as a terminal; `continued` is set when planrun was stopped and goes on."""

    def __init__(self, descriptor: int = STDIN) -> None:
        self.descriptor = descriptor
        self.continued = False
        self._data = b""
        self._before: object = None
        self._is_open = False

    @staticmethod
    def is_person() -> bool:
        """Return whether stdin and stderr are terminals, and planrun is what the terminal's user works with."""
        try:
            return os.isatty(STDIN) and sys.stderr is not None and sys.stderr.isatty()
        except ValueError:  # closed
            return False

    @property
    def is_foreground(self) -> bool:
        """Whether it is the terminal of this process, and this process is not in the background."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:  # no terminal, that of another session, or gone
            return False

    def open(self) -> None:
        """Notice when planrun goes on after it was stopped; outside the main thread Python allows no handlers."""
        try:
            self._before = _signal.signal(_signal.SIGCONT, self._goes_on)
            self._is_open = True
        except ValueError:
            return

    def close(self) -> None:
        """Restore the handler."""
        if self._is_open:
            before = self._before
            _signal.signal(_signal.SIGCONT, _signal.SIG_DFL if before is None else before)  # type: ignore[arg-type]
            self._is_open = False

    def flush(self) -> None:
        """Drop what was typed so far."""
        self._data = b""
        with _Blocked():
            try:
                termios.tcflush(self.descriptor, termios.TCIFLUSH)
            except (termios.error, OSError):  # gone
                return

    def line(self) -> str | None:
        """Return the next line with its end, "" at the end of input, None when nothing was typed; never waits."""
        while b"\n" not in self._data:
            if not select.select([self.descriptor], [], [], 0)[0] or not self.is_foreground:
                return None
            data = self._read()
            if data is None:
                return None
            if not data or len(self._data) > _LONGEST:
                return ""
            self._data += data.replace(b"\r", b"\n")
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("utf-8", "replace") + "\n"

    def _read(self) -> bytes | None:
        with _Blocked():
            try:
                return os.read(self.descriptor, 4096)
            except OSError:  # EIO: planrun is in the background now, or the terminal is gone
                return b"" if self.is_foreground else None

    def _goes_on(self, _signum: int, _frame: object) -> None:
        self.continued = True


class _Blocked:
    """Within it, the terminal answers a process in the background with an error, and does not stop it."""

    def __enter__(self) -> None:
        self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _STOPPING)  # type: ignore[attr-defined]

    def __exit__(self, *_exception: object) -> None:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)  # type: ignore[attr-defined]
