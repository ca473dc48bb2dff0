"""Wait for main processes to end, for output and for signals, in one `poll`: by pidfds, or else by SIGCHLD.

Signals to planrun become bytes in a pipe that the loop polls.
"""

from __future__ import annotations

import _signal
import os
import select

TYPE_CHECKING = False

# `_signal` and not `signal`, whose enums cost 4 ms: a third of a warm start.

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self

    Disposition = Callable[[int, FrameType | None], object] | int | None

    from typing import Protocol

    class Watch(Protocol):
        """Waits for main processes, reaps them and returns how they ended."""

        woken: bool
        readable: list[int]

        def add(self, pid: int) -> None:
            """Wait for a child, too; raises OSError when that is not possible."""

        def wait(self, delay: float | None) -> list[tuple[int, int | None]]:
            """Return (process id, wait status) of those that ended, after `delay` seconds at the latest.

            The status is None when other code in this process reaped it. `woken`: whether a signal is in the
            inbox. `readable`: which of the descriptors it listens to can be read.
            """

        def listen(self, descriptor: int) -> None:
            """Let a descriptor end the wait when it can be read or was closed at the other end."""

        def ignore(self, descriptor: int) -> None:
            """Stop listening to a descriptor; call it before the descriptor is closed."""

        def close(self) -> None:
            """Close the descriptors."""


CANCELLING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
PAUSING = _signal.SIGUSR1


class SignalInbox:
    """Receives SIGINT, SIGTERM, SIGHUP and SIGUSR1 while it is open and returns them in order of arrival.

    `fd` is readable when a signal arrived. A cancelling signal that the parent process set to be ignored (nohup, a
    shell's `&`) stays ignored. Outside the main thread Python allows no handlers: the inbox then stays empty.
    """

    def __init__(self, signals: tuple[int, ...] = (*CANCELLING, PAUSING)) -> None:
        self._signals = signals
        self._arrived: list[int] = []
        self._is_noted = False  # a handler ran since the pipe was last read
        self._before: list[tuple[int, Disposition]] = []
        self._wakeup_before: int | None = None  # None: no handlers are installed
        self._write_end = -1
        self.fd = -1
        self.child_ended = False  # a SIGCHLD arrived; the watch resets it

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
        """Let SIGCHLD wake the loop too; False where that is not possible."""
        return self._wakeup_before is not None and self._catch(_signal.SIGCHLD)

    def drain(self) -> bool:
        """Empty the pipe without blocking; True when take() has something to return."""
        self._is_noted = False
        try:
            arrived = os.read(self.fd, 4096)
        except BlockingIOError:
            arrived = b""
        for signum in arrived:
            if signum == _signal.SIGCHLD:
                self.child_ended = True
            elif signum in self._signals:  # Python reports every signal that has a handler, also timers
                self._arrived.append(signum)
        return bool(self._arrived)

    @property
    def has_signals(self) -> bool:
        """Whether take() has something to return, without reading the pipe."""
        return bool(self._arrived)

    def take(self) -> list[int]:
        """Return the numbers of the signals that arrived since the last call, oldest first."""
        if self._is_noted:
            self.drain()
        arrived, self._arrived = self._arrived, []
        return arrived

    def close(self) -> None:
        """Restore the previous handlers."""
        while self._before:
            signum, disposition = self._before.pop()
            # None: not set by Python, which cannot restore it.
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

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        """Note that the interpreter has written a number into the pipe; a handler must never raise."""
        self._is_noted = True

    def _catch(self, signum: int) -> bool:
        disposition = _signal.getsignal(signum)
        if disposition == _signal.SIG_IGN and signum not in (_signal.SIGCHLD, PAUSING):
            return False
        _signal.signal(signum, self._note)
        self._before.append((signum, disposition))
        return True


# Seconds between two checks where neither pidfds nor SIGCHLD are available (another thread on macOS).
_TICK = 0.02


class PollingWatch:
    """The common part of both ways to wait: one `poll`, and descriptors whose output ends it."""

    def __init__(self) -> None:
        self.woken = False
        self.readable: list[int] = []
        self._sources: set[int] = set()
        self._poll = select.poll()

    def listen(self, descriptor: int) -> None:
        """Let a descriptor end the wait."""
        self._sources.add(descriptor)
        self._poll.register(descriptor, select.POLLIN)

    def ignore(self, descriptor: int) -> None:
        """Stop listening to a descriptor."""
        self._sources.discard(descriptor)
        self._poll.unregister(descriptor)


class PidfdWatch(PollingWatch):
    """One descriptor per process; Linux 5.3 and newer."""

    def __init__(self, inbox: SignalInbox | None) -> None:
        super().__init__()
        self._inbox = inbox
        self._pids: dict[int, int] = {}
        if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
            # The parent process ignores it, and then the kernel discards the exit statuses of our children.
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        if inbox:
            self._poll.register(inbox.fd, select.POLLIN)

    @staticmethod
    def possible() -> bool:
        """Whether the kernel and its filters allow pidfds."""
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return False
        return True

    def add(self, pid: int) -> None:
        """Wait for a child, too."""
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
            # Removed from the poll set before it is closed: the number may be reused.
            self._poll.unregister(descriptor)
            os.close(descriptor)
            ended.append((pid, _reap(pid, 0)[1]))
        self.woken = inbox is not None and (inbox.drain() if came else inbox.has_signals)
        return ended

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self._pids:
            os.close(descriptor)
        self._pids.clear()


class ChildSignalWatch(PollingWatch):
    """SIGCHLD in the inbox, then one check of each child; for macOS and for kernels without pidfds."""

    def __init__(self, inbox: SignalInbox) -> None:
        super().__init__()
        self._inbox = inbox
        self._pids: set[int] = set()
        self._signalled = inbox.catch_children()
        self._poll.register(inbox.fd, select.POLLIN)

    def add(self, pid: int) -> None:
        """Wait for a child, too."""
        self._pids.add(pid)

    def wait(self, delay: float | None) -> list[tuple[int, int | None]]:
        """Return what ended within `delay` seconds."""
        if not self._signalled:
            delay = _TICK if delay is None else min(delay, _TICK)
        if self._inbox.child_ended:  # it arrived while take() emptied the inbox
            delay = 0
        ready = self._poll.poll(None if delay is None else delay * 1000)
        self.readable = [descriptor for descriptor, _ in ready if descriptor in self._sources]
        self.woken = self._inbox.drain()
        if self._signalled and not self._inbox.child_ended:
            return []
        self._inbox.child_ended = False
        checks = [(pid, *_reap(pid, os.WNOHANG)) for pid in self._pids]
        ended = [(pid, status) for pid, reaped, status in checks if reaped]
        self._pids.difference_update(pid for pid, _ in ended)
        return ended

    def close(self) -> None:
        """Forget the children."""
        self._pids.clear()


def _reap(pid: int, options: int) -> tuple[bool, int | None]:
    try:
        reaped, status = os.waitpid(pid, options)
    except ChildProcessError:  # other code in this process waits for any child, or ignores SIGCHLD
        return True, None
    return bool(reaped), status
