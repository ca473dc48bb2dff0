"""The client process, seen from planrun: started, spoken to by lines, ended. Only it loads the library for Dask."""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
import _signal
import os
import select
import sys
import time

from planrun import entry
from planrun.cluster import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_CHUNK = 1 << 16
_PIECES = 16  # that are taken at once
# What Dask and TLS read; planrun's own environment may hold secrets.
_KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "PYTHONPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)


class ClientProcess:
    """A process that speaks to one cluster for one run; `fd` can be read when it said something."""

    def __init__(self) -> None:
        self._unsent = bytearray()
        self._lines = wire.Lines()
        self.is_gone = False
        self._is_ended = False
        theirs_in, self._in = os.pipe()  # closed on exec, as all that is not named below
        self.fd, theirs_out = os.pipe()
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                entry.command("planrun.cluster.client.serve"),
                {
                    name: value
                    for name, value in os.environ.items()
                    if name in _KEPT or name.startswith("DASK_")
                },
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs_in, 0),
                    (os.POSIX_SPAWN_DUP2, theirs_out, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,  # a Ctrl-C is for planrun, which then ends the steps
                setsigmask=(),
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._in, False)
        os.set_blocking(self.fd, False)

    @property
    def is_behind(self) -> bool:
        """Whether something is left to be sent."""
        return bool(self._unsent)

    def send(self, said: Mapping[str, Any]) -> None:
        """Send a mapping; what the pipe does not take is sent later."""
        self.hold(said)
        self.flush()

    def hold(self, said: Mapping[str, Any]) -> None:
        """Send a mapping with the next flush()."""
        self._unsent += wire.line(said)

    def flush(self) -> None:
        """Send what is left to send."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # it has ended; what it said before is still to be read
            self._unsent.clear()

    def receive(self) -> list[dict[str, Any]]:
        """Return what it said, without waiting; `is_gone` is set when nothing more can come."""
        said: list[dict[str, Any]] = []
        for _ in range(_PIECES):
            try:
                data = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                break
            if not data:
                self.is_gone = True
                break
            said += self._lines.feed(data)
        return said

    def wait(self, seconds: float, wake: int = -1) -> list[dict[str, Any]]:
        """Return what it says next; empty after `seconds`, or when `wake` can be read."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        if wake >= 0:
            poll.register(wake, select.POLLIN)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.is_gone:
            self.flush()
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if self.fd in ready and (said := self.receive()):
                return said
            if wake in ready:
                break
        return []

    def end(self, patience: float) -> None:
        """Let it end what runs on workers; after `patience` seconds end it by force. May be called again."""
        if self._is_ended:
            return
        self._is_ended = True
        self.send({"close": True})
        until = time.monotonic() + patience
        while not self.is_gone and (left := until - time.monotonic()) > 0:
            self.wait(left)
        if not self.is_gone:
            os.kill(self._pid, _signal.SIGKILL)
        for descriptor in (self._in, self.fd):
            os.close(descriptor)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # the program around us waits for any child
            return
