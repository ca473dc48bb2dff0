"""The client of a cluster: it connects, checks every worker, and then passes on what planrun and the workers say."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import platform
import sys
import time

from distributed import Client

from planrun import __version__
from planrun.cluster import wire
from planrun.cluster.addresses import is_private
from planrun.cluster.client.dispatch import Dispatch
from planrun.cluster.client.links import Link, Refused
from planrun.cluster.client.serving import Serving
from planrun.cluster.worker import prepare
from planrun.errors import InvalidInput, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_CONNECTING = 10.0  # seconds for the scheduler to answer
_JOINING = 5.0  # seconds for the first worker to join
_TICK = 0.25  # seconds between two looks at the scheduler and the workers
_NEWCOMERS = 2.0  # seconds between two looks for new workers
_LEAVING = 3.0  # seconds for runners to end their steps at the end
_TOGETHER = 0.5  # seconds in which workers that end because of their scheduler are told from others
_LIMIT = 1 << 24  # bytes of one line from planrun


class Unusable(Exception):
    """A cluster that cannot be used; the message says why."""


def main(_words: Sequence[str]) -> int:
    """Serve planrun on two pipes until the first one ends."""
    logging.disable(logging.CRITICAL)  # what is wrong is reported to planrun
    return asyncio.run(_main())


async def _main() -> int:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    data = await reader.readline()
    if not data:
        return 0
    session = Session(next(wire.Lines().feed(data)), writer)
    try:
        await session.open()
        await session.serve(reader)
    except Unusable as error:
        session.report({"unusable": str(error)})
    except Exception as error:  # noqa: BLE001 - a bug, or an error of Dask's that nobody expected
        session.report({"unusable": f"the client failed: {type(error).__name__}: {error}"})
    finally:
        await session.close()
    return 0


class Session:
    """One planrun on one cluster."""

    def __init__(self, opening: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self._address: str = opening.pop("address")
        self._opening = opening
        self._writer = writer
        self._client: Client | None = None
        self._links: dict[str, Link] = {}
        self._is_open = False
        self._serving = Serving(opening)
        self._passed_over: set[str] = set()  # workers that joined later and cannot be used
        self._dispatch: Dispatch | None = None
        self._mourning: set[asyncio.Task[None]] = set()
        self._given_up: set[Link] = set()  # on which something may still run

    def report(self, said: Mapping[str, Any]) -> None:
        """Send a mapping to planrun."""
        self._writer.write(wire.line(said))

    async def open(self) -> None:
        """Connect to the scheduler and every worker; raises Unusable."""
        try:
            self._client = await Client(self._address, asynchronous=True, timeout=_CONNECTING, name="planrun")
        except Exception as error:  # noqa: BLE001 - Dask raises many kinds
            why = str(error) or type(error).__name__
            raise Unusable(f"no Dask scheduler answers at {self._address}: {why.splitlines()[0]}") from None
        limit = time.monotonic() + _JOINING
        while not (addresses := sorted(await self._client.nthreads())):
            if time.monotonic() > limit:
                raise Unusable(f"the cluster at {self._address} has no workers")
            await asyncio.sleep(_TICK)
        await self._require_versions()
        try:
            await self._serving.probe()
        except (InvalidInput, RemoteError) as error:
            raise Unusable(f"the store cannot be used: {error}") from None
        self._dispatch = Dispatch(self._client, self._links, self._serving, self.report)
        for found in await asyncio.gather(*map(self._admit, addresses), return_exceptions=True):
            if isinstance(found, Refused):
                raise Unusable(str(found))
            if isinstance(found, BaseException):
                raise found
        links = self._links.values()
        if apart := [link for link in links if link.apart]:
            self._opening["sends"] = True  # to all of them, since one folder has to be right
        self._is_open = True
        self.report(
            {
                "ready": {
                    "slots": sum(link.threads for link in links),
                    "workers": sorted(link.name for link in links),
                    "labels": sorted(set().union(*[link.labels for link in links])),
                    "apart": {link.name: link.apart for link in apart},
                }
            }
        )

    async def _require_versions(self) -> None:
        """Raise Unusable for a worker with another planrun or another Python."""
        assert self._client is not None
        own = f"planrun {__version__} on Python {_minor(platform.python_version())}"
        versions = await self._client.get_versions(packages=["planrun"])
        for address, found in versions["workers"].items():
            theirs = found["packages"].get("planrun")
            python = ".".join(found["host"]["python"].split(".")[:2])
            if not theirs:
                raise Unusable(f"the worker {address} has no planrun; here is {own}")
            if f"planrun {theirs} on Python {python}" != own:
                raise Unusable(f"the worker {address} has planrun {theirs} on Python {python}; here is {own}")

    async def _admit(self, address: str) -> None:
        """Connect to a worker; raises Refused."""
        assert self._client is not None
        if not is_private(address):
            raise Refused(f"the worker {address} is another machine, and the connection to it needs TLS")
        found = await self._client.run(prepare, workers=[address], on_error="return")
        facts = found.get(address)
        if not isinstance(facts, dict):
            raise Refused(f"the worker {address} cannot be prepared: {facts}")
        link = Link(address, facts, self._said)
        try:
            await link.open(self._client, self._opening)
            if link.apart and self._is_open and not self._opening["sends"]:
                link.close()
                raise Refused(f"{link.apart}; the run began with workers that share it")
        except Refused as error:
            raise Refused(f"the worker {link.name} cannot be used: {error}") from None
        self._links[address] = link

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Do what planrun says, and report what happens, until planrun ends or the scheduler is gone."""
        hearing = asyncio.create_task(self._hear(reader))
        looking = asyncio.create_task(self._look())
        finding = asyncio.create_task(self._find_newcomers())
        done, pending = await asyncio.wait([hearing, looking], return_when=asyncio.FIRST_COMPLETED)
        for task in (*pending, finding):
            task.cancel()
        for task in done:
            task.result()
        if looking in done:
            self.report({"gone": f"the connection to the scheduler at {self._address} was lost"})

    async def close(self) -> None:
        """End what still runs on workers, and leave the cluster."""
        links = [*self._links.values(), *self._given_up]
        for link in self._links.values():
            self._serving.forget(link)
            link.leave()
        if links:
            await asyncio.wait([asyncio.ensure_future(link.ended(_LEAVING)) for link in links])
        self.report({"closed": True})
        try:
            await self._writer.drain()
        except OSError:  # planrun is gone
            pass
        os._exit(0)  # Dask's own end waits for a scheduler that may be gone; nothing is left to be kept

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        assert self._dispatch is not None
        lines = wire.Lines()
        while data := await reader.read(1 << 16):
            for said in lines.feed(data):
                if "close" in said:
                    return
                dispatch = self._dispatch
                if "start" in said:
                    dispatch.start(said)
                elif "tree" in said:
                    self._serving.change(said["tree"], said["secret"])
                elif "taken" in said:
                    link = self._links.get(said["worker"])
                    if link:
                        link.tell({"taken": said["taken"]})
                elif "stop" in said:
                    dispatch.stop(said["stop"], said)
                else:  # signal, kill
                    dispatch.signal(said)
            await self._writer.drain()

    def _said(self, link: Link, said: dict[str, Any]) -> None:
        """Take what a worker or its runner says."""
        assert self._dispatch is not None
        if "ask" in said:
            self._dispatch.asked(link, said["ask"])
        elif "log" in said:
            self._dispatch.logged(link, said)
        elif "end" in said:
            self._dispatch.ended(link, said)
        elif "want" in said:
            self._serving.asked(link, said["want"], direct="direct" in said)
        elif "piece" in said:
            self._dispatch.made(link, said)
        elif "broken" in said:
            self._mourn(link, "the connection to it broke")

    def _mourn(self, link: Link, why: str) -> None:
        """Give up a worker, and report its attempts as lost once nothing of them can run."""
        link.close()
        self._serving.forget(link)
        self._links.pop(link.address, None)
        task = asyncio.create_task(self._bury(link, why))
        self._mourning.add(task)
        task.add_done_callback(self._mourning.discard)

    async def _bury(self, link: Link, why: str) -> None:
        assert self._dispatch is not None
        self._given_up.add(link)
        await link.ended(math.inf)
        self._given_up.discard(link)
        await asyncio.sleep(_TOGETHER)
        if self._client is not None and self._client.status == "running":
            self._dispatch.lost(link, why)

    async def _look(self) -> None:
        """Watch scheduler and workers; returns when the scheduler is gone."""
        assert self._client is not None
        assert self._dispatch is not None
        while self._client.status == "running":
            for link in list(self._links.values()):
                if link.has_expired:
                    self._mourn(link, f"it gave no sign of life for {link.quiet:.0f}s")
            self._dispatch.check()
            self._dispatch.pump()
            await asyncio.sleep(_TICK)

    async def _find_newcomers(self) -> None:
        """Take in workers that joined, and those that were given up and have come back."""
        assert self._client is not None
        while True:
            await asyncio.sleep(_NEWCOMERS)
            try:
                addresses = set(await asyncio.wait_for(self._client.nthreads(), _CONNECTING))
            except (OSError, TimeoutError):  # the scheduler is gone
                continue
            self._passed_over &= addresses
            for address in addresses - set(self._links) - self._passed_over:
                try:
                    await asyncio.wait_for(self._admit(address), _CONNECTING)
                except Refused:
                    self._passed_over.add(address)
                except (OSError, TimeoutError):  # it stalls; the next look tries again
                    continue


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
