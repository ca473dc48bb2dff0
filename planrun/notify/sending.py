"""The processes that send notifications, seen from planrun: each is started for one target and ends by itself.

They keep HTTP and TLS out of planrun's own process, and a slow server away from its loop.
"""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
import _signal
import json
import os
import select
import sys
import time

from planrun import entry
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Wake(Protocol):
        """What ends a wait: signals to planrun."""

        fd: int

        def take(self) -> list[int]:
            """Return the signals that arrived since the last call."""


READY = b"ready\n"
"""What a process says first, when it can be given secrets."""
_START = 10.0  # seconds until a process is ready for its order, on a machine with much else to do
_LATE = 2.0  # seconds that it may take beside the time of its target
_STOP = 1.5  # seconds that an interrupted process may take to record that
# What a process gets of planrun's environment: proxies and certificates, and what a program needs to run.
_PASSED = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH"),
)


class Order(Record):
    """What one process is to send; `data` is its input, `entry` what the book says of it."""

    data: Mapping[str, Any]
    entry: Mapping[str, Any]
    seconds: float


class Sender:
    """One process that sends one notification; `result` is its entry in the book once it ended.

    It gets its order, which holds secrets, when it has closed itself to the steps that run beside it.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.result: dict[str, Any] | None = None
        self._said = b""
        self._pid, self._in, self.fd = _spawn()
        self.due = time.monotonic() + _START

    @property
    def has_order(self) -> bool:
        """Whether nothing has to be done any more until it ends."""
        return self._in < 0

    def poll(self) -> None:
        """Give it its order if it is ready, without waiting."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        if poll.poll(0):
            self.receive()

    def receive(self) -> None:
        """Take what it said; when that ends, it has ended."""
        data = os.read(self.fd, 1 << 16)
        self._said += data
        if not data:
            self._close()
            _reap(self._pid, time.monotonic() + _STOP)
            self._conclude("its process ended unexpectedly")
        elif not self.has_order and self._said.startswith(READY):
            self._said = self._said.removeprefix(READY)
            self._give(json.dumps(self.order.data).encode())
            self.due = time.monotonic() + self.order.seconds + _LATE

    def _give(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._in, data) :]
        except OSError:  # it ended; its output says so
            pass
        os.close(self._in)
        self._in = -1

    def _close(self) -> None:
        os.close(self.fd)
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def interrupt(self) -> None:
        """Ask it to give up."""
        _kill(self._pid, _signal.SIGTERM)
        self.due = min(self.due, time.monotonic() + _STOP)

    def kill(self) -> None:
        """End it by force."""
        self._close()
        _reap(self._pid, 0.0)
        self._conclude(f"no end within {self.order.seconds:g}s")

    def _conclude(self, otherwise: str) -> None:
        try:
            self.result = dict(json.loads(self._said))
        except ValueError:
            self.result = {
                **self.order.entry,
                "status": "failed",
                "tries": 0,
                "message": otherwise,
                "late": True,
            }


def wait(senders: Sequence[Sender], wake: Wake | None) -> None:
    """Wait until all have ended; a signal to planrun ends them at once."""
    left = [sender for sender in senders if sender.result is None]
    interrupted = False
    while left:
        poll = select.poll()
        for sender in left:
            poll.register(sender.fd, select.POLLIN)
        if wake is not None and wake.fd >= 0 and not interrupted:
            poll.register(wake.fd, select.POLLIN)
        seconds = min(sender.due for sender in left) - time.monotonic()
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        if wake is not None and wake.fd in ready and wake.take():
            interrupted = True
            for sender in left:
                sender.interrupt()
        now = time.monotonic()
        for sender in left:
            if sender.fd in ready:
                sender.receive()
            elif now >= sender.due:
                sender.kill()
        left = [sender for sender in left if sender.result is None]


def _spawn() -> tuple[int, int, int]:
    """Start a process in a session of its own; return its id, its input and its output. Raises OSError."""
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:  # so that none of the pipes lands there
        pass
    os.close(null)
    theirs_in, ours_in = os.pipe()  # closed on exec, as all that is not named below
    ours_out, theirs_out = os.pipe()
    try:
        names = {*_PASSED, *[name.upper() for name in _PASSED]}
        pid = os.posix_spawn(
            sys.executable,
            entry.command("planrun.notify.sender.deliver"),
            {name: value for name, value in os.environ.items() if name in names},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs_in, 0),
                (os.POSIX_SPAWN_DUP2, theirs_out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,  # a Ctrl-C is for planrun, which then ends the process
            setsigmask=(),
            setsigdef=[number for number in _signal.valid_signals() if _ignored(number)],
        )
    except OSError:
        os.close(ours_in)
        os.close(ours_out)
        raise
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return pid, ours_in, ours_out


def _reap(pid: int, until: float) -> None:
    """Wait for a process to end, by force when `until` has passed."""
    try:
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() >= until:
                os.kill(pid, _signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.005)
    except ChildProcessError:  # already reaped by the embedding program
        return


def _kill(pid: int, signum: int) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return


def _ignored(number: int) -> bool:
    return _signal.getsignal(number) == _signal.SIG_IGN
