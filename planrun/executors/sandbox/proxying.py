"""planrun's side of the proxy through which sandboxed steps reach the hosts that they may."""

from __future__ import annotations

import _socket
import marshal
import os
import struct
import sys

_SOCKET = 3  # as in proxy.py
_MAIN = (
    "import sys; sys.path.insert(0, sys.argv[1]); from planrun.executors.sandbox.proxy import main; main()"
)


class Proxy:
    """A process with one listening socket for each running step; it ends when stop() is called or this process ends."""

    def __init__(self, root: str) -> None:
        ours, theirs = _socket.socketpair()
        self._socket = ours
        self._number = 0
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                (sys.executable, "-I", "-S", "-c", _MAIN, root),
                {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET),
                    *[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)],
                ],
                setsid=True,
            )
        finally:
            os.close(null)
            theirs.close()

    def open(self, listener: int, hosts: tuple[str, ...]) -> int:
        """Serve a listening socket, which is closed here, for these hosts; return the number to close it with."""
        self._number += 1
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))]
        try:
            self._send({"open": self._number, "hosts": hosts}, rights)
        finally:
            os.close(listener)
        return self._number

    def close(self, number: int) -> None:
        """Serve a step no longer."""
        self._send({"close": number}, [])

    def _send(self, message: dict[str, object], rights: list[tuple[int, int, bytes]]) -> None:
        data = marshal.dumps(message)
        try:
            self._socket.sendmsg([struct.pack("=I", len(data)) + data], rights)
        except OSError:  # it was killed: the step reaches no host
            return

    def stop(self) -> None:
        """End it."""
        self._socket.close()
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # the program around us waits for any child
            return
