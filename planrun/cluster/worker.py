"""What runs in the process of a Dask worker: the tasks, and the connection between planrun's client and a runner.

It keeps nothing of a step. A task asks for attempts, and occupies a thread of the worker until planrun says that it is
over. What the runner and the client say to each other is passed on as bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import sys
import threading

from distributed.core import Status

from planrun import __version__, entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from distributed import Worker
    from distributed.comm.core import Comm

_CHUNK = 1 << 16
_PATIENCE = 15.0  # seconds for a runner to end its steps, before the worker ends it
_GUARDING = 1.0  # seconds in which its guardian has ended the steps of a runner that was killed
_FAREWELL = 2.0  # seconds for the client to take the last message
_SEATS: dict[str, _Seat] = {}


def prepare(dask_worker: Worker) -> dict[str, Any]:
    """Let a worker take planrun's connections; returns what planrun has to know of the worker."""
    dask_worker.handlers["planrun"] = _channel
    return {
        "planrun": __version__,
        "python": platform.python_version(),
        "name": str(dask_worker.name),
        "threads": dask_worker.state.nthreads,
        "labels": sorted(dask_worker.state.total_resources),
        "scratch": dask_worker.local_directory,
    }


def occupy(session: str, token: str) -> str:
    """Ask for attempts, and wait until the task is over: what a task of Dask's does."""
    seat = _SEATS.get(session)
    return seat.occupy(token) if seat else "gone"


async def _channel(comm: Comm, session: str, file: str) -> Status:
    """Serve one planrun until the connection or the runner ends; `file`: of the runner, while it has steps."""
    seat = _SEATS[session] = _Seat(comm)
    try:
        await seat.serve(file)
    finally:
        del _SEATS[session]
        seat.leave()
        comm.abort()
    return Status.dont_reply


class _Seat:
    """One planrun on this worker."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: dict[str, threading.Event] = {}
        self._closed = False
        self._asking: set[asyncio.Task[Any]] = set()

    def occupy(self, token: str) -> str:
        """Ask for attempts and wait for the end of the task; called in a thread of the worker's."""
        over = threading.Event()
        with self._lock:
            if self._closed:
                return "gone"
            self._waiting[token] = over
        self._loop.call_soon_threadsafe(self._ask, token)
        over.wait()
        return "over"

    def leave(self) -> None:
        """Let every task end."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, {}
        for over in waiting.values():
            over.set()

    def _ask(self, token: str) -> None:
        task = self._loop.create_task(self._send({"ask": token}))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _send(self, said: dict[str, Any]) -> None:
        try:
            await self._comm.write(said)
        except OSError:  # serve() finds it closed
            return

    async def serve(self, file: str) -> None:
        """Run the runner, and pass on what is said; `file`: of the runner, while it has steps."""
        process = await asyncio.create_subprocess_exec(
            *entry.command("planrun.cluster.runner.run"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a signal for the worker's group is not for the steps
        )
        forth = asyncio.ensure_future(self._from_client(process))
        back = asyncio.ensure_future(self._from_runner(process))
        try:
            await asyncio.wait([forth, back], return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.cancel()
            if process.stdin:
                process.stdin.close()  # its steps end now
            await _ended(process)
            self.leave()
            await self._report_end(process, file)
            forth.cancel()  # last, since this breaks the connection

    async def _report_end(self, process: asyncio.subprocess.Process, file: str) -> None:
        """Tell the client that no step is left, as far as it can be known."""
        if (process.returncode or 0) < 0:  # the runner was killed, and its guardian ends its steps
            if sys.platform != "linux":
                return
            await asyncio.sleep(_GUARDING)
            with contextlib.suppress(OSError):
                os.unlink(file)
        with contextlib.suppress(OSError, TimeoutError):  # the client is gone
            await asyncio.wait_for(self._comm.write({"ended": True}), _FAREWELL)

    async def _from_runner(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(_CHUNK):
            await self._comm.write({"data": data})

    async def _from_client(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        while True:
            said = await self._comm.read()
            process.stdin.write(said["data"])
            tokens = said["free"]
            for token in tokens:
                with self._lock:
                    over = self._waiting.pop(token, None)
                if over:
                    over.set()
            await process.stdin.drain()
            if said["close"]:
                return


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a runner; what it writes meanwhile is for nobody."""
    try:
        await asyncio.wait_for(process.communicate(), _PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()
