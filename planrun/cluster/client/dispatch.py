"""Which worker runs which attempt: tasks of Dask's ask for attempts, and each attempt is handed out once."""

from __future__ import annotations

import asyncio
import contextlib
import time

from distributed import wait

from planrun.cluster.client.task import attempt as ask_for_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from distributed import Client, Future

    from planrun.cluster.client.links import Link

_AHEAD = 2  # attempts for each place of a worker that are with Dask at once
_MOST_TASKS = 5  # for one attempt that none of them got
NO_WORKER = 60.0  # seconds that an attempt waits for a worker with its labels


class Entry:
    """An attempt that has not ended."""

    def __init__(self, said: Mapping[str, Any], number: int) -> None:
        self.token: str = said["start"]
        self.name: str = said["name"]
        self.labels = frozenset(said["labels"])
        self.line = {name: said[name] for name in ("start", "job", "secrets")}
        self.number = number
        self.link: Link | None = None  # None: nobody was given it
        self.future: Future | None = None
        self.tasks = 0
        self.error = ""  # of the last task
        self.without_worker: float | None = None  # since when no worker could run it


class Dispatch:
    """The attempts of one planrun; `report` sends a mapping to planrun."""

    def __init__(
        self,
        client: Client,
        links: dict[str, Link],
        session: str,
        report: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._client = client
        self._links = links
        self._session = session
        self._report = report
        self._entries: dict[str, Entry] = {}
        self._queue: list[Entry] = []
        self._submitted = 0
        self._started = 0
        self._watching: set[asyncio.Task[None]] = set()

    def start(self, said: Mapping[str, Any]) -> None:
        """Take an attempt."""
        self._started += 1
        entry = self._entries[said["start"]] = Entry(said, self._started)
        self._queue.append(entry)
        self.pump()

    def pump(self) -> None:
        """Submit tasks for attempts that wait, as many as the workers have places for."""
        usable = [link for link in self._links.values() if link.is_usable]
        most = _AHEAD * sum(link.threads for link in usable)
        left: list[Entry] = []
        for entry in self._queue:
            workers = [link.address for link in usable if entry.labels <= link.labels]
            if workers and self._submitted < most:
                self._submit(entry, workers)
            else:
                left.append(entry)
        self._queue = left

    def _submit(self, entry: Entry, workers: list[str]) -> None:
        entry.tasks += 1
        entry.future = self._client.submit(
            ask_for_attempt,
            self._session,
            entry.token,
            key=f"planrun-{self._session}/{entry.name}/{entry.token}.{entry.tasks}",
            pure=False,
            retries=0,
            workers=workers,
            priority=-entry.number,
            resources=dict.fromkeys(sorted(entry.labels), 1) or None,
        )
        self._submitted += 1
        task = asyncio.create_task(self._watch(entry, entry.future))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _watch(self, entry: Entry, future: Future) -> None:
        """Wait for the end of a task, and submit another one if nobody was given its attempt."""
        with contextlib.suppress(
            Exception
        ):  # Dask gave it up; what counts is whether the attempt was handed out
            await wait([future])
        self._submitted -= 1
        if future.status == "error":
            entry.error = f": {str(await future.exception()).splitlines()[0]}"
        future.release()
        if entry.token in self._entries and entry.link is None and entry.future is future:
            if entry.tasks >= _MOST_TASKS:
                self._unplaced(entry, f"Dask gave it up {entry.tasks} times before it started{entry.error}")
            else:
                self._queue.insert(0, entry)
        self.pump()

    def asked(self, link: Link, token: str) -> None:
        """Give an attempt to the worker that asks for it, unless it is gone: then its task ends."""
        entry = self._entries.get(token)
        if entry is None or entry.link is not None or not link.is_usable:
            link.free(token)
            return
        entry.link = link
        link.tokens.add(token)
        link.tell(entry.line)
        entry.line = {}  # secrets are kept no longer than needed

    def ended(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take the outcome of an attempt from the worker that has it, and from no other."""
        entry = self._entries.get(said["end"])
        link.free(said["end"])
        if entry is not None and entry.link is link:
            del self._entries[entry.token]
            self._report({**said, "worker": link.name})

    def logged(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take output of an attempt from the worker that has it."""
        entry = self._entries.get(said["log"])
        if entry is not None and entry.link is link:
            self._report({**said, "worker": link.address})
        else:
            link.tell({"taken": len(said["data"]) * 3 // 4})

    def lost(self, link: Link, why: str) -> None:
        """Report every attempt of a worker on which nothing can run any more."""
        for token in sorted(link.tokens):
            if self._entries.pop(token, None):
                self._report({"lost": token, "worker": link.name, "why": why})
        link.tokens.clear()
        self.pump()

    def stop(self, token: str, said: Mapping[str, Any]) -> None:
        """End an attempt: by its runner, or at once when nobody has it."""
        entry = self._entries.get(token)
        if entry is None:
            return
        if entry.link is not None:
            entry.link.tell(said)
            return
        self._forget(entry)
        self._report({"withdrawn": token})

    def signal(self, said: Mapping[str, Any]) -> None:
        """End every attempt: what runs by its runner."""
        for token in [token for token, entry in self._entries.items() if entry.link is None]:
            self.stop(token, {})
        for link in self._links.values():
            if link.alive:
                link.tell(said)

    def check(self) -> None:
        """Give up attempts for which there has been no worker for long."""
        now = time.monotonic()
        usable = [link for link in self._links.values() if link.is_usable]
        for entry in [entry for entry in self._entries.values() if entry.link is None]:
            if any(entry.labels <= link.labels for link in usable):
                entry.without_worker = None
            elif entry.without_worker is None:
                entry.without_worker = now
            elif now - entry.without_worker > NO_WORKER:
                labels = f" with {', '.join(sorted(entry.labels))}" if entry.labels else ""
                self._unplaced(entry, f"the cluster has had no worker{labels} for {NO_WORKER:g}s")

    def _unplaced(self, entry: Entry, why: str) -> None:
        self._forget(entry)
        self._report({"unplaced": entry.token, "why": why})

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.token]
        if entry in self._queue:
            self._queue.remove(entry)
        if entry.future is not None:
            entry.future.release()
