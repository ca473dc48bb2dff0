"""Signals to planrun, turned into bytes in a pipe that the one loop waits on.

Wait for main processes to end, for output and for signals, in one `poll`: by pidfds, or else by SIGCHLD.
"""

from __future__ import annotations

import _signal
import os
import select

TYPE_CHECKING = False

# `_signal` is what `signal` wraps into enums; the wrapping costs 4 ms, a third of a cached start.

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


# `_signal` and not `signal`: see signals.py.

if TYPE_CHECKING:
    from typing import Protocol

    class Watch(Protocol):
        """What waits: it reaps each main process it was told of and says how it ended."""

        woken: bool
        readable: list[int]

        def add(self, pid: int) -> None:
            """Look after a child; raises OSError when that is not possible."""

        def wait(self, delay: float | None) -> list[tuple[int, int | None]]:
            """Return (process id, wait status) of those that ended, after `delay` seconds at the latest.

            The status is None when somebody else in this process took it. `woken` says whether a signal
            waits in the inbox, `readable` which of the descriptors that it listens to have something.
            """

        def listen(self, descriptor: int) -> None:
            """Have a descriptor end the wait when it can be read or has ended."""

        def ignore(self, descriptor: int) -> None:
            """Take that back; to be called before the descriptor is closed."""

        def close(self) -> None:
            """Give the descriptors back."""


# Where neither a pidfd nor SIGCHLD is to be had (a foreign thread on macOS), seconds between two looks.
_TICK = 0.02


class PollingWatch:
    """What both ways of waiting share: one `poll`, and descriptors whose output ends it."""

    def __init__(self) -> None:
        self.woken = False
        self.readable: list[int] = []
        self._sources: set[int] = set()
        self._poll = select.poll()

    def listen(self, descriptor: int) -> None:
        """Have a descriptor end the wait."""
        self._sources.add(descriptor)
        self._poll.register(descriptor, select.POLLIN)

    def ignore(self, descriptor: int) -> None:
        """Take that back."""
        self._sources.discard(descriptor)
        self._poll.unregister(descriptor)


class PidfdWatch(PollingWatch):
    """One descriptor per process; Linux 5.3 and newer."""

    def __init__(self, inbox: SignalInbox | None) -> None:
        super().__init__()
        self._inbox = inbox
        self._pids: dict[int, int] = {}
        if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
            # Whoever started us ignores it, and with that the kernel throws away how our children end.
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        if inbox:
            self._poll.register(inbox.fd, select.POLLIN)

    @staticmethod
    def possible() -> bool:
        """Whether the kernel and its filters let this process have a pidfd."""
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return False
        return True

    def add(self, pid: int) -> None:
        """Look after a child."""
        descriptor = os.pidfd_open(pid)
        self._pids[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, delay: float | None) -> list[tuple[int, int | None]]:
        """Return what ended within `delay` seconds."""
        ended: list[tuple[int, int | None]] = []
        self.readable = []
        inbox, came = self._inbox, False
        for descriptor, _ in self._poll.poll(None if delay is None else delay * 1000):
            came = came or (inbox is not None and descriptor == inbox.fd)
            pid = self._pids.pop(descriptor, 0)
            if not pid:
                if descriptor in self._sources:
                    self.readable.append(descriptor)
                continue
            # Out of the poll set before it is closed: a number that is open again must not be taken for it.
            self._poll.unregister(descriptor)
            os.close(descriptor)
            ended.append((pid, _reap(pid, 0)[1]))
        self.woken = inbox is not None and (inbox.drain() if came else inbox.waits)
        return ended

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in self._pids:
            os.close(descriptor)
        self._pids.clear()


class ChildSignalWatch(PollingWatch):
    """SIGCHLD in the inbox, then one look at each child; for macOS and for kernels without pidfds."""

    def __init__(self, inbox: SignalInbox) -> None:
        super().__init__()
        self._inbox = inbox
        self._pids: set[int] = set()
        self._signalled = inbox.catch_children()
        self._poll.register(inbox.fd, select.POLLIN)

    def add(self, pid: int) -> None:
        """Look after a child."""
        self._pids.add(pid)

    def wait(self, delay: float | None) -> list[tuple[int, int | None]]:
        """Return what ended within `delay` seconds."""
        if not self._signalled:
            delay = _TICK if delay is None else min(delay, _TICK)
        if self._inbox.child_ended:  # it came while somebody else emptied the inbox
            delay = 0
        ready = self._poll.poll(None if delay is None else delay * 1000)
        self.readable = [descriptor for descriptor, _ in ready if descriptor in self._sources]
        self.woken = self._inbox.drain()
        if self._signalled and not self._inbox.child_ended:
            return []
        self._inbox.child_ended = False
        looks = [(pid, *_reap(pid, os.WNOHANG)) for pid in self._pids]
        ended = [(pid, status) for pid, reaped, status in looks if reaped]
        self._pids.difference_update(pid for pid, _ in ended)
        return ended

    def close(self) -> None:
        """Forget the children."""
        self._pids.clear()


def _reap(pid: int, options: int) -> tuple[bool, int | None]:
    try:
        reaped, status = os.waitpid(pid, options)
    except ChildProcessError:  # the program around us waits for any child, or ignores SIGCHLD
        return True, None
    return bool(reaped), status
