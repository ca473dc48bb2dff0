"""Signals to planrun, turned into bytes in a pipe that the one loop waits on."""

from __future__ import annotations

# `_signal` is what `signal` wraps into enums; the wrapping costs 4 ms, a third of a cached start.
import _signal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self

    Disposition = Callable[[int, FrameType | None], object] | int | None

CANCELLING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
PAUSING = _signal.SIGUSR1


class SignalInbox:
    """Catches SIGINT, SIGTERM, SIGHUP and SIGUSR1 while it is open and hands them out in the order they came.

    `fd` is readable when something came. A signal that cancels and that the caller had set to be ignored (nohup, a
    shell's `&`) stays ignored. Outside the main thread Python allows no handlers: the inbox then stays empty.
    """

    def __init__(self, signals: tuple[int, ...] = (*CANCELLING, PAUSING)) -> None:
        self._signals = signals
        self._arrived: list[int] = []
        self._before: list[tuple[int, Disposition]] = []
        self._wakeup_before: int | None = None  # None: nothing is caught
        self._write_end = -1
        self.fd = -1
        self.child_ended = False  # a SIGCHLD came; whoever looks after the children sets it back

    def open(self) -> None:
        """Install the handlers."""
        self.fd, self._write_end = os.pipe()  # both ends are closed on exec
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_end, False)
        try:
            self._wakeup_before = _signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        except ValueError:  # not the main thread
            return
        for signum in self._signals:
            self._catch(signum)

    def catch_children(self) -> bool:
        """Have SIGCHLD wake the loop as well; False where that is not possible."""
        return self._wakeup_before is not None and self._catch(_signal.SIGCHLD)

    def drain(self) -> bool:
        """Empty the pipe without blocking; True when there is something to take."""
        try:
            arrived = os.read(self.fd, 4096)
        except BlockingIOError:
            arrived = b""
        for signum in arrived:
            if signum == _signal.SIGCHLD:
                self.child_ended = True
            elif signum in self._signals:  # Python notes every signal that has a handler, timers included
                self._arrived.append(signum)
        return bool(self._arrived)

    @property
    def waits(self) -> bool:
        """Whether there is something to take, as far as the pipe was emptied."""
        return bool(self._arrived)

    def take(self) -> list[int]:
        """Return the numbers of the signals that came since the last call, oldest first."""
        self.drain()
        arrived, self._arrived = self._arrived, []
        return arrived

    def close(self) -> None:
        """Put back the handlers that were there before."""
        while self._before:
            signum, disposition = self._before.pop()
            # None: set by something that is not Python, which cannot be put back.
            _signal.signal(signum, _signal.SIG_DFL if disposition is None else disposition)
        if self._wakeup_before is not None:
            _signal.set_wakeup_fd(self._wakeup_before)
            self._wakeup_before = None
        if self.fd >= 0:
            os.close(self.fd)
            os.close(self._write_end)
            self.fd = self._write_end = -1

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _catch(self, signum: int) -> bool:
        disposition = _signal.getsignal(signum)
        if disposition == _signal.SIG_IGN and signum not in (_signal.SIGCHLD, PAUSING):
            return False
        _signal.signal(signum, _noted)
        self._before.append((signum, disposition))
        return True


def _noted(_signum: int, _frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the number into the pipe, and a handler must never raise."""
