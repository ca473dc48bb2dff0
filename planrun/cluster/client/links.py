"""The connections from the client to the workers, one each: its signs of life, what it is told and what it says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

from distributed.comm import connect

from planrun.cluster import SETTLING, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from distributed import Client
    from distributed.comm.core import Comm

_QUIET = 3.0  # seconds without a sign of life after which a worker gets nothing new
_LOOK = 0.02  # seconds between two looks for the end of a runner
_OPENING = 20.0  # seconds for a runner to start
_ROOM = 1 << 20  # bytes for a worker that wait to be sent


class Refused(Exception):
    """A worker that cannot be used; the message says why."""


class Link:
    """The connection to one worker; `on_line(link, mapping)` gets what runner and worker say."""

    def __init__(self, address: str, facts: Mapping[str, Any], on_line: Callable[[Link, Any], None]) -> None:
        self.address = address
        self.name: str = facts["name"]
        self.threads: int = facts["threads"]
        self.labels = frozenset(facts["labels"])
        self._scratch: str = facts["scratch"]
        self.tokens: set[str] = set()  # attempts that it was given
        self.alive = False
        self.apart = ""  # why its files are its own; empty: it shares the workspace with planrun
        self.told = 0  # changes of the tree that were sent
        self._on_line = on_line
        self._lines = wire.Lines()
        self._comm: Comm | None = None
        self._heard = 0.0
        self._file = ""
        self._lease = 0.0
        self._lines_out = bytearray()  # for the runner, as far as not sent
        self._over: list[str] = []  # tasks that are to end
        self._unsent = asyncio.Event()
        self._sent = asyncio.Event()
        self._is_closing = False
        self._is_over = False  # its runner and its steps have ended
        self._opened: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_usable(self) -> bool:
        """Whether it may get new attempts."""
        return self.alive and time.monotonic() - self._heard < _QUIET

    @property
    def has_expired(self) -> bool:
        """Whether its lease has certainly run out."""
        return time.monotonic() > self._heard + self._lease + SETTLING

    @property
    def quiet(self) -> float:
        """Seconds since its last sign of life."""
        return time.monotonic() - self._heard

    async def open(self, client: Client, opening: Mapping[str, Any]) -> None:
        """Connect, and start the runner; raises Refused."""
        runner = os.urandom(6).hex()
        self._lease = opening["lease"]
        self._file = os.path.join(opening["folder"], f"runner-{runner}")
        try:
            self._comm = await connect(self.address, timeout=10, **client.connection_args)
            await self._comm.write({"op": "planrun", "session": opening["session"], "file": self._file})
        except OSError as error:
            raise Refused(f"planrun cannot connect to it at {self.address}: {error}") from None
        self._heard = time.monotonic()
        self._tasks = [
            asyncio.create_task(self._read(self._comm)),
            asyncio.create_task(self._write(self._comm)),
        ]
        self.tell({**opening, "runner": runner, "scratch": self._scratch})
        awaited: list[asyncio.Future[Any]] = [self._opened, self._tasks[0]]
        await asyncio.wait(awaited, timeout=_OPENING, return_when=asyncio.FIRST_COMPLETED)
        if not self._opened.done():
            self.close()
            raise Refused("its runner did not start")
        said = self._opened.result()
        self.apart = said["opened"]["apart"]
        if self.apart:
            self._mark()
        self.alive = True

    def _mark(self) -> None:
        """Put the file that a runner with the same folder makes itself."""
        try:
            os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError as error:
            self.close()
            raise Refused(f"planrun cannot write {self._file}: {error.strerror}") from None

    def tell(self, said: Mapping[str, Any]) -> None:
        """Send a line to its runner."""
        self._lines_out += wire.line(said)
        self._unsent.set()

    async def has_room(self) -> None:
        """Wait until little waits to be sent."""
        while len(self._lines_out) > _ROOM:
            self._sent.clear()
            await self._sent.wait()

    def free(self, token: str) -> None:
        """Let a task of Dask's end."""
        self._over.append(token)
        self._unsent.set()

    def leave(self) -> None:
        """Have the runner end its steps, and say when it has."""
        self.alive = False
        self._is_closing = True
        self._unsent.set()

    def close(self) -> None:
        """Break the connection: the runner ends its steps."""
        self.alive = False
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if self._comm:
            self._comm.abort()

    async def ended(self, seconds: float) -> None:
        """Wait until no step of it can run: its runner says so, or its lease has run out; at most `seconds`."""
        limit = time.monotonic() + seconds
        while not self._has_ended() and not self.has_expired and time.monotonic() < limit:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)  # another machine removes the file: nothing tells of it
        if self.has_expired or (self.apart and self._has_ended()):
            with contextlib.suppress(OSError):  # it was removed meanwhile
                os.unlink(self._file)

    def _has_ended(self) -> bool:
        if self.apart:
            return self._is_over or not self.tokens  # what it was not given cannot run there
        return not os.path.lexists(self._file)

    async def _write(self, comm: Comm) -> None:
        try:
            while True:
                await self._unsent.wait()
                self._unsent.clear()
                data, self._lines_out = bytes(self._lines_out), bytearray()
                over, self._over = self._over, []
                await comm.write({"data": data, "free": over, "close": self._is_closing})
                self._sent.set()
        except OSError:  # _read finds it closed
            return

    async def _read(self, comm: Comm) -> None:
        try:
            while True:
                said = await comm.read()
                if not isinstance(said, dict):
                    break
                if "data" in said:
                    for each in self._lines.feed(said["data"]):
                        self._take(each)
                elif "ended" in said:
                    self._is_over = True
                else:
                    self._on_line(self, said)
        except OSError:  # the connection is broken
            pass
        if self.alive:
            self._on_line(self, {"broken": True})

    def _take(self, said: dict[str, Any]) -> None:
        if "beat" in said:
            self._heard = time.monotonic()
            self.tell({"lease": said["beat"]})
        elif "opened" in said:
            if not self._opened.done():
                self._opened.set_result(said)
        else:
            self._on_line(self, said)
