"""Wait for main processes to end, for output and for signals, in one `poll`: by pidfds, or else by SIGCHLD."""

from __future__ import annotations

# `_signal` and not `signal`: see signals.py.
import _signal
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from planrun.executors.signals import SignalInbox

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


class Listening:
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


class PidfdWatch(Listening):
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


class ChildSignalWatch(Listening):
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
