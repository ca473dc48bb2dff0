"""The bytes of files between planrun's machine and the workers: contents that they ask for, and products."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os

from planrun.cluster.files.entries import LARGE, LINK, PIECE
from planrun.cluster.files.stored import fetch, send
from planrun.errors import InvalidInput, RemoteError
from planrun.opening import open_record
from planrun.places.place import open_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from planrun.cluster.client.links import Link
    from planrun.cluster.files.entries import Entry
    from planrun.places.place import Place


class Serving:
    """The tree that steps find, and the bytes in it; products arrive in a folder of the session."""

    def __init__(self, opening: Mapping[str, Any]) -> None:
        self.session: str = opening["session"]
        self._workspace: str = opening["workspace"]
        self._folder: str = opening["folder"]
        self._changes: list[dict[str, Entry | None]] = []
        self._paths: dict[str, tuple[str, int]] = {}  # and bytes, by digest
        self._secret: set[str] = set()
        self._asked: dict[Link, asyncio.Queue[tuple[str, int, bool]]] = {}
        self._tasks: dict[Link, asyncio.Task[None]] = {}
        self._arriving: dict[tuple[str, str], _Arriving] = {}
        self._refused: dict[str, str] = {}  # why products cannot be kept, by token
        self._store: Place | None = open_place(opening["store"]) if opening["store"] else None
        self._storing = asyncio.Lock()  # the store does one thing at a time
        self._resent: dict[tuple[str, str], asyncio.Future[None]] = {}
        self._fetching: dict[str, set[asyncio.Task[None]]] = {}  # products from the store, by token

    def change(self, changes: dict[str, Entry | None], secret: list[str]) -> None:
        """Take what changed in the tree; `secret`: contents that must not get into the store."""
        self._changes.append(changes)
        self._secret.update(secret)
        self.learn(changes)

    def learn(self, entries: Mapping[str, Entry | None]) -> None:
        """Take note of where contents are."""
        for path, entry in entries.items():
            if entry is not None and entry[2] != LINK:
                self._paths[entry[0]] = path, entry[1]

    def inform(self, link: Link) -> None:
        """Send a worker what changed in the tree since it was last told."""
        if link.told < len(self._changes):
            merged: dict[str, Entry | None] = {}
            for changes in self._changes[link.told :]:
                merged |= changes
            link.told = len(self._changes)
            link.tell({"tree": merged})

    async def probe(self) -> None:
        """Raise InvalidInput or RemoteError when the store cannot be used."""
        if self._store:
            await asyncio.to_thread(self._store.now)

    def asked(self, link: Link, wanted: list[tuple[str, int]], *, direct: bool) -> None:
        """Send contents to a worker, one after the other, as fast as it takes them.

        `wanted`: digests, each with the number of its request; `direct`: not by the store.
        """
        queue = self._asked.setdefault(link, asyncio.Queue())
        for digest, number in wanted:
            queue.put_nowait((digest, number, direct))
        if link not in self._tasks:
            self._tasks[link] = asyncio.create_task(self._serve(link, queue))

    def forget(self, link: Link) -> None:
        """Send no more to a worker that was given up."""
        self._asked.pop(link, None)
        if task := self._tasks.pop(link, None):
            task.cancel()

    async def _serve(self, link: Link, queue: asyncio.Queue[tuple[str, int, bool]]) -> None:
        while True:
            digest, number, direct = await queue.get()
            path, size = self._paths.get(digest, ("", 0))
            path = os.path.join(self._workspace, path)
            direct = direct or size < LARGE or digest in self._secret
            if not direct and await self._store_it(digest, path):
                link.tell({"content": digest, "stored": size})
                continue
            try:
                with os.fdopen(open_record(path), "rb", buffering=0) as file:
                    await self._send(link, digest, number, file)
            except OSError as error:
                link.tell({"content": digest, "gone": f"it cannot be read: {error.strerror}"})

    async def _store_it(self, digest: str, path: str) -> bool:
        """Return whether a content is in the store now."""
        if self._store is None:
            return False
        try:
            async with self._storing:
                return await asyncio.to_thread(send, self._store, digest, path)
        except (OSError, RemoteError, InvalidInput):  # the connection is there
            return False

    async def _send(self, link: Link, digest: str, number: int, file: Any) -> None:
        is_last = False
        while not is_last:
            data = file.read(PIECE)
            is_last = len(data) < PIECE
            await link.has_room()
            piece = base64.b64encode(data).decode("ascii")
            link.tell({"content": digest, "number": number, "data": piece, "last": is_last})

    def piece(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take a piece of a product."""
        token, digest = said["piece"], said["digest"]
        if "stored" in said:
            task = asyncio.create_task(self._fetch(link, token, digest, said["stored"]))
            self._fetching.setdefault(token, set()).add(task)
            return
        data = base64.b64decode(said["data"])
        link.tell({"kept": len(data)})
        is_last = said["last"]
        if token not in self._refused:
            key = token, digest
            try:
                arriving = self._arriving.get(key)
                if arriving is None:
                    arriving = self._arriving[key] = _Arriving(arrived_at(self._folder, token, digest))
                arriving.file.write(data)
                arriving.found.update(data)
                if is_last:
                    del self._arriving[key]
                    arriving.file.close()
                    if arriving.found.hexdigest() != digest:
                        self._refused[token] = "a file changed while it was sent by the worker"
            except OSError as error:
                self._arriving.pop(key, None)
                self._refused[token] = f"what it made cannot be kept: {error.strerror}"
        if said["last"] and (arrival := self._resent.pop((token, digest), None)):
            arrival.set_result(None)

    async def _fetch(self, link: Link, token: str, digest: str, size: int) -> None:
        """Take a product from the store; when it is not there, over the connection."""
        assert self._store is not None
        path = arrived_at(self._folder, token, digest)
        try:
            async with self._storing:
                if await asyncio.to_thread(fetch, self._store, digest, path, size):
                    return
        except (OSError, RemoteError, InvalidInput):
            pass
        arrival = self._resent[token, digest] = asyncio.get_running_loop().create_future()
        link.tell({"resend": token, "digest": digest})
        await arrival

    def fetching(self, token: str) -> set[asyncio.Task[None]]:
        """Return what is on its way from the store for an attempt."""
        return self._fetching.pop(token, set())

    def refusal(self, token: str) -> str:
        """Return why the products of an attempt cannot be used; empty when they can."""
        return self._refused.pop(token, "")


class _Arriving:
    def __init__(self, path: str) -> None:
        self.file: BinaryIO = open(path, "wb")  # noqa: SIM115 - in pieces
        self.found = hashlib.sha256()


def arrived_at(folder: str, token: str, digest: str) -> str:
    """Return where a product is until it is placed."""
    return os.path.join(folder, f"made-{token}-{digest}")
