"""A place at a URL, through a process of its own that knows fsspec: its libraries start threads, and may hang.

Requests and replies are a header of JSON and bytes, on a pair of sockets; files are passed as open descriptors. A
process that does not answer in time is killed, and the next call starts another one.
"""

from __future__ import annotations

import array
import importlib.util
import json
import os
import select
import socket
import subprocess
import time

from planrun import entry
from planrun.errors import InvalidInput, RemoteError
from planrun.places.addresses import masked
from planrun.places.keys import Found, check_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST = 64 << 20
"""Bytes of an object that is read into memory."""
_SLICE = 0.25  # seconds between two questions whether to stop
_RATE = 256 << 10  # bytes a second that a connection has at least
_HEAD = 8
# What the libraries of object stores read. It is sent, so that the environment of the process, which other processes
# of the user can read, has no credentials.
_NAMES = ("HOME", "USER", "LANG", "PATH", "TMPDIR", "XDG_CONFIG_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PREFIXES = ("AWS_", "BOTO", "GOOGLE_", "GCLOUD_", "GCSFS_", "AZURE_", "FSSPEC_", "SSH_", "HTTP", "NO_PROXY")
_WHOLE = ("list", "now")  # what may be about the whole place
_BARE = ("HOME", "LANG", "PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")


class Remote:
    """Objects at a URL."""

    def __init__(self, url: str, limit: float, stopped: Callable[[], bool] | None = None) -> None:
        self.url = masked(url)
        self._address = url
        self._limit = limit
        self._stopped = stopped
        self._socket: socket.socket | None = None
        self._atomic = False
        self._process: subprocess.Popen[bytes] | None = None

    def require(self) -> None:
        """Raise InvalidInput when a package for this URL is missing; a place that does not answer is no error here."""
        try:
            self._connect()
        except RemoteError:
            return

    @property
    def atomic(self) -> bool:
        """Whether of several concurrent `create` calls one alone succeeds."""
        self._connect()
        return self._atomic

    def read(self, key: str, most: int = MOST) -> bytes | None:
        """Return the bytes of an object; None when there is none. Raises RemoteError."""
        said, data = self._call("read", key, most=most)
        return data if said["found"] else None

    def write(self, key: str, data: bytes) -> None:
        """Create or replace an object; raises RemoteError."""
        self._call("write", key, data)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object if there is none; return whether it was created. Raises RemoteError."""
        return bool(self._call("create", key, data)[0]["created"])

    def fetch(self, key: str, target: int, most: int) -> bool:
        """Write the bytes of an object into an open file; raises RemoteError."""
        return bool(self._call("fetch", key, fd=target, size=most, most=most)[0]["found"])

    def send(self, key: str, source: int) -> None:
        """Create or replace an object by the bytes of an open file; raises RemoteError."""
        os.lseek(source, 0, os.SEEK_SET)
        self._call("send", key, fd=source, size=os.fstat(source).st_size)

    def list(self, prefix: str) -> dict[str, Found]:
        """Return the objects whose keys begin with `prefix` and a slash; raises RemoteError."""
        rows = json.loads(self._call("list", prefix)[1])
        return {key: Found(bytes=size, modified=modified) for key, size, modified in rows}

    def find(self, key: str) -> Found | None:
        """Return size and age of an object; None when there is none. Raises RemoteError."""
        said, _ = self._call("find", key)
        return Found(bytes=said["bytes"], modified=said["modified"]) if said["found"] else None

    def remove(self, key: str) -> None:
        """Remove an object; raises RemoteError."""
        self._call("remove", key)

    def now(self) -> float:
        """Return the time by the clock of the place; raises RemoteError."""
        return float(self._call("now", "")[0]["now"])

    def close(self) -> None:
        """End the process."""
        if self._socket:
            self._socket.close()
            self._socket = None
        if self._process:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __del__(self) -> None:
        self.close()

    def _call(
        self, verb: str, key: str, data: bytes = b"", *, fd: int = -1, size: int = 0, **more: int
    ) -> tuple[dict[str, Any], bytes]:
        if key or verb not in _WHOLE:
            check_key(key)
        self._connect()
        return self._exchange({"verb": verb, "key": key, **more}, data, fd, self._limit + size / _RATE)

    def _connect(self) -> None:
        """Start the process where there is none, and have it load what the URL needs; raises InvalidInput."""
        if self._socket is not None:
            return
        if importlib.util.find_spec("fsspec") is None:
            raise InvalidInput(f"{self.url} needs the extra shared: pip install 'planrun[shared]'")
        ours, theirs = socket.socketpair()
        with theirs:
            env = {name: os.environ[name] for name in _BARE if name in os.environ}
            self._process = subprocess.Popen(
                entry.command("planrun.places.client.serve"),
                env=env,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for planrun
            )
        ours.setblocking(False)
        self._socket = ours
        environ = {
            name: value
            for name, value in os.environ.items()
            if name in _NAMES or name.upper().startswith(_PREFIXES) or name.upper().endswith("_PROXY")
        }
        hello = {"verb": "open", "url": self._address, "environ": environ, "limit": self._limit}
        try:
            said, _ = self._exchange(hello, b"", -1, self._limit)
        except RemoteError:
            self._abandon()  # it has no connection; the next call starts another one
            raise
        self._atomic = said["atomic"]

    def _exchange(
        self, header: dict[str, Any], data: bytes, fd: int, limit: float
    ) -> tuple[dict[str, Any], bytes]:
        until = time.monotonic() + limit
        head = json.dumps(header).encode()
        try:
            self._put(len(head).to_bytes(4, "big") + len(data).to_bytes(4, "big") + head + data, fd, until)
            sizes = self._get(_HEAD, until)
            said = json.loads(self._get(int.from_bytes(sizes[:4], "big"), until))
            body = self._get(int.from_bytes(sizes[4:], "big"), until)
        except RemoteError:
            self._abandon()
            raise
        except (OSError, EOFError):
            self._abandon()
            raise RemoteError(f"{self.url}: the process that speaks to it ended") from None
        if "unusable" in said:
            self.close()
            raise InvalidInput(f"{self.url}: {said['unusable']}")
        if "failed" in said:
            raise RemoteError(f"{self.url}: {said['failed']}")
        return said, body

    def _put(self, data: bytes, fd: int, until: float) -> None:
        rest = memoryview(data)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd >= 0 else []
        assert self._socket is not None
        while rest:
            self._await(select.POLLOUT, until)
            rest = rest[self._socket.sendmsg([rest], rights) :]
            rights = []

    def _get(self, size: int, until: float) -> bytes:
        data = bytearray()
        assert self._socket is not None
        while len(data) < size:
            self._await(select.POLLIN, until)
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _await(self, event: int, until: float) -> None:
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, event)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise RemoteError(f"{self.url}: no answer within {self._limit:g} s")
            if poll.poll(min(left, _SLICE) * 1000):
                return
            if self._stopped is not None and self._stopped():
                raise RemoteError(f"{self.url}: stopped by a signal")

    def _abandon(self) -> None:
        if self._process:
            self._process.kill()
        self.close()
