"""Which worker runs which attempt: tasks of Dask's occupy threads of workers, and each attempt is handed out once.

A task asks for an attempt as soon as Dask has started it. When that attempt ends soon, the task gets the next one, so
that short steps do not wait for Dask's scheduler; after HOLD seconds the thread is Dask's again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque

from distributed import wait

from planrun.cluster.client.task import occupy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from distributed import Client, Future

    from planrun.cluster.client.links import Link
    from planrun.cluster.client.serving import Serving

    Labels = frozenset[str]

_AHEAD = 2  # tasks for each thread of a worker that are with Dask at once
_MOST_TASKS = 5  # that end one after the other before they have asked
HOLD = 1.0  # seconds in which a task takes further attempts
LINGER = 0.1  # seconds that a task waits for its next attempt
NO_WORKER = 60.0  # seconds that an attempt waits for a worker with its labels


class Entry:
    """An attempt that has not ended."""

    def __init__(self, said: Mapping[str, Any], number: int) -> None:
        self.token: str = said["start"]
        self.name: str = said["name"]
        self.labels: Labels = frozenset(said["labels"])
        self.line = {name: said[name] for name in ("start", "job", "secrets", "files") if name in said}
        self.number = number
        self.slot: Slot | None = None  # None: it was not handed out
        self.without_worker: float | None = None  # since when no worker could run it


class Slot:
    """A task of Dask's, which occupies a thread of a worker and has at most one attempt at a time."""

    def __init__(self, token: str, labels: Labels, future: Future) -> None:
        self.token = token
        self.labels = labels
        self.future = future
        self.link: Link | None = None  # None: it has not asked
        self.since = 0.0  # when it asked
        self.entry: Entry | None = None
        self.expiry: asyncio.TimerHandle | None = None  # while it waits for its next attempt


class Dispatch:
    """The attempts of one planrun; `report` sends a mapping to planrun."""

    def __init__(
        self,
        client: Client,
        links: dict[str, Link],
        serving: Serving,
        report: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._client = client
        self._links = links
        self._serving = serving
        self._session = serving.session
        self._report = report
        self._entries: dict[str, Entry] = {}
        self._waiting: dict[Labels, deque[Entry]] = {}  # not handed out, the first one first
        self._slots: dict[str, Slot] = {}
        self._tasks: Counter[Labels] = Counter()  # that have not asked
        self._failures: Counter[Labels] = (
            Counter()
        )  # tasks that ended before they asked, since the last that did
        self._idle: dict[str, Slot] = {}
        self._submitted = 0
        self._started = 0
        self._watching: set[asyncio.Task[None]] = set()

    def start(self, said: Mapping[str, Any]) -> None:
        """Take an attempt."""
        self._started += 1
        entry = self._entries[said["start"]] = Entry(said, self._started)
        for slot in self._idle.values():
            if slot.labels == entry.labels and slot.link and slot.link.is_usable:
                self._hand_out(entry, slot)
                return
        self._waiting.setdefault(entry.labels, deque()).append(entry)
        self.pump()

    def pump(self) -> None:
        """Submit tasks for attempts that wait, as many as the workers have threads for."""
        for labels, queue in self._waiting.items():
            if not queue or self._tasks[labels] >= len(queue):
                continue
            usable = [link for link in self._links.values() if link.is_usable and labels <= link.labels]
            most = min(len(queue), _AHEAD * sum(link.threads for link in usable))
            workers = [link.address for link in usable]
            while self._tasks[labels] < most:
                self._submit(queue[self._tasks[labels]], workers)

    def _submit(self, entry: Entry, workers: list[str]) -> None:
        """Submit a task; it bears the name of an attempt, and gets the one that is the first when it asks."""
        self._submitted += 1
        token = f"{entry.token}.{self._submitted}"
        future = self._client.submit(
            occupy,
            self._session,
            token,
            key=f"planrun-{self._session}/{entry.name}/{token}",
            pure=False,
            retries=0,
            workers=workers,
            priority=-entry.number,
            resources=dict.fromkeys(sorted(entry.labels), 1) or None,
        )
        slot = self._slots[token] = Slot(token, entry.labels, future)
        self._tasks[entry.labels] += 1
        task = asyncio.create_task(self._watch(slot))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _watch(self, slot: Slot) -> None:
        """Wait for the end of a task; one that ends before it has asked is replaced."""
        with contextlib.suppress(Exception):  # Dask gave it up; what counts is whether it asked
            await wait([slot.future])
        error = ""
        if slot.future.status == "error" and slot.link is None:
            error = f": {str(await slot.future.exception()).splitlines()[0]}"
        slot.future.release()
        if self._slots.pop(slot.token, None) and slot.link is None:
            self._tasks[slot.labels] -= 1
            labels = slot.labels
            self._failures[labels] += 1
            queue = self._waiting.get(labels)
            if queue and self._failures[labels] >= _MOST_TASKS:
                self._failures[labels] = 0
                self._unplaced(queue[0], f"Dask gave it up {_MOST_TASKS} times before it started{error}")
        self.pump()

    def asked(self, link: Link, token: str) -> None:
        """Give an attempt to a task that asks for the first time; any other one ends."""
        slot = self._slots.get(token)
        if slot is None or slot.link is not None:
            link.free(token)
            return
        self._tasks[slot.labels] -= 1
        self._failures[slot.labels] = 0
        if not link.is_usable:
            del self._slots[token]
            link.free(token)
            return
        slot.link, slot.since = link, time.monotonic()
        if queue := self._waiting.get(slot.labels):
            self._hand_out(queue.popleft(), slot)
        else:
            self._linger(slot)

    def _hand_out(self, entry: Entry, slot: Slot) -> None:
        assert slot.link is not None
        self._idle.pop(slot.token, None)
        if slot.expiry:
            slot.expiry.cancel()
        entry.slot, slot.entry = slot, entry
        slot.link.tokens.add(entry.token)
        if "files" in entry.line:
            self._serving.learn(entry.line["files"]["own"])
            self._serving.inform(slot.link)
        slot.link.tell(entry.line)
        entry.line = {}  # secrets are kept no longer than needed

    def ended(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take the outcome of an attempt from the worker that has it, and from no other."""
        entry = self._entries.get(said["end"])
        if entry is None or entry.slot is None or entry.slot.link is not link:
            return
        slot = entry.slot
        if fetching := self._serving.fetching(entry.token):
            task = asyncio.create_task(self._end_later(fetching, entry, link, said))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)
        else:
            self._end(entry, link, said)
        assert slot.link is not None
        slot.entry = None
        waiting = [
            queue[0] for queue in self._waiting.values() if queue and queue[0].labels <= slot.link.labels
        ]
        first = min(waiting, key=lambda entry: entry.number, default=None)
        is_late = time.monotonic() - slot.since >= HOLD or slot.token not in self._slots
        if is_late or not slot.link.is_usable or (first and first.labels != slot.labels):
            self._release(slot)
        elif first:
            self._hand_out(self._waiting[slot.labels].popleft(), slot)
        else:
            self._linger(slot)

    async def _end_later(
        self, fetching: set[asyncio.Task[None]], entry: Entry, link: Link, said: Mapping[str, Any]
    ) -> None:
        await asyncio.wait(fetching)
        if entry.token in self._entries:  # its worker was not lost meanwhile
            self._end(entry, link, said)

    def _end(self, entry: Entry, link: Link, said: Mapping[str, Any]) -> None:
        del self._entries[entry.token]
        link.tokens.discard(entry.token)
        if "files" in said:
            said = {**said, "refused": self._serving.refusal(entry.token)}
        self._report({**said, "worker": link.name})

    def _linger(self, slot: Slot) -> None:
        self._idle[slot.token] = slot
        slot.expiry = asyncio.get_running_loop().call_later(LINGER, self._release, slot)

    def _release(self, slot: Slot) -> None:
        """Let a task end."""
        self._idle.pop(slot.token, None)
        self._slots.pop(slot.token, None)
        if slot.link is not None:
            slot.link.free(slot.token)

    def logged(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take output of an attempt from the worker that has it."""
        entry = self._entries.get(said["log"])
        if entry is not None and entry.slot is not None and entry.slot.link is link:
            self._report({**said, "worker": link.address})
        else:
            link.tell({"taken": len(said["data"]) * 3 // 4})

    def made(self, link: Link, said: Mapping[str, Any]) -> None:
        """Take a piece of what an attempt made from the worker that has it."""
        entry = self._entries.get(said["piece"])
        if entry is not None and entry.slot is not None and entry.slot.link is link:
            self._serving.piece(link, said)
        elif "data" in said:
            link.tell({"kept": len(said["data"]) * 3 // 4})

    def lost(self, link: Link, why: str) -> None:
        """Report every attempt of a worker on which nothing can run any more."""
        for slot in [slot for slot in self._idle.values() if slot.link is link]:
            self._release(slot)
        for token in sorted(link.tokens):
            if self._entries.pop(token, None):
                self._report({"lost": token, "worker": link.name, "why": why})
        link.tokens.clear()
        self.pump()

    def stop(self, token: str, said: Mapping[str, Any]) -> None:
        """End an attempt: by its runner, or at once when it was not handed out."""
        entry = self._entries.get(token)
        if entry is None:
            return
        if entry.slot is not None and entry.slot.link is not None:
            entry.slot.link.tell(said)
            return
        self._forget(entry)
        self._report({"withdrawn": token})

    def signal(self, said: Mapping[str, Any]) -> None:
        """End every attempt: what runs by its runner."""
        for token in [token for token, entry in self._entries.items() if entry.slot is None]:
            self.stop(token, {})
        for link in self._links.values():
            if link.alive:
                link.tell(said)

    def check(self) -> None:
        """Give up attempts for which there has been no worker for long."""
        now = time.monotonic()
        usable = [link for link in self._links.values() if link.is_usable]
        for labels, queue in list(self._waiting.items()):
            has_worker = any(labels <= link.labels for link in usable)
            for entry in list(queue):
                if has_worker:
                    entry.without_worker = None
                elif entry.without_worker is None:
                    entry.without_worker = now
                elif now - entry.without_worker > NO_WORKER:
                    named = f" with {', '.join(sorted(labels))}" if labels else ""
                    self._unplaced(entry, f"the cluster has had no worker{named} for {NO_WORKER:g}s")

    def _unplaced(self, entry: Entry, why: str) -> None:
        self._forget(entry)
        self._report({"unplaced": entry.token, "why": why})

    def _forget(self, entry: Entry) -> None:
        """Drop an attempt that was not handed out; a task for it that asks gets another one, or ends."""
        del self._entries[entry.token]
        self._waiting[entry.labels].remove(entry)
