"""The shared memory of the agents of a run: typed entries with versions and time limits, the least used ones evicted.

Every change is a plain mapping that goes to the journal, so a memory is rebuilt from the ledger of its run. The time is
that of the clock that is passed in.
"""

from __future__ import annotations

import json

from planrun.clock import later
from planrun.errors import InvalidInput
from planrun.model.collaboration import ENTRY_TYPES, Entries, live
from planrun.model.jsontext import dumps
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from planrun.model.collaboration import Change, Entry, Journal, Memory, Trust

LONGEST_KEY = 200  # characters
LONGEST_TTL = 366 * 86400.0  # seconds
BUFFER = 100
"""How many changes a subscription holds until they are taken; later ones are dropped and counted."""


class MemoryRefused(InvalidInput):
    """The memory does not take what an agent wrote; the message is for the agent."""


class Author(Record):
    """Who writes: the agent and its step, and where the value comes from."""

    step: str = ""
    agent: str = ""
    trust: Trust = "model"


class Subscription:
    """The changes by others that a subscriber has not taken yet; `dropped`: how many the buffer had no room for."""

    def __init__(self, agent: str, types: tuple[str, ...] = ()) -> None:
        self.agent = agent
        self.types = types
        self.dropped = 0
        self._changes: list[Change] = []

    def notify(self, change: Change, entry_type: str, author: str) -> None:
        """Hold a change unless it is the subscriber's own, or of a type that it did not ask for."""
        if author == self.agent or (self.types and entry_type not in self.types):
            return
        if len(self._changes) < BUFFER:
            self._changes.append(change)
        else:
            self.dropped += 1

    def take(self) -> list[Change]:
        """Return the changes since the last call."""
        changes, self._changes = self._changes, []
        return changes


class SharedMemory:
    """The memory of one run.

    `stamp`: the time, as `Clock.stamp` gives it. `journal` gets each change after it was applied.
    """

    def __init__(self, settings: Memory, stamp: Callable[[], str], journal: Journal) -> None:
        self._settings = settings
        self._stamp = stamp
        self._journal = journal
        self._entries = Entries()
        self._subscriptions: list[Subscription] = []

    def restore(self, changes: Iterable[Change]) -> None:
        """Take the changes of a ledger; nothing is written to the journal."""
        for change in changes:
            self._entries.apply(change)

    def __len__(self) -> int:
        return len(self._entries.by_key)

    def write(self, key: str, kind: str, value: Any, by: Author) -> Entry:
        """Set an entry and return it, with the next version of its key; raises MemoryRefused."""
        return self._write((key, kind, value), by, "")

    def write_with_ttl(self, key: str, kind: str, value: Any, by: Author, *, ttl: float) -> Entry:
        """Set an entry that expires after `ttl` seconds; raises MemoryRefused."""
        if not 0 < ttl <= LONGEST_TTL:
            raise MemoryRefused(f"ttl must be more than 0 and at most {LONGEST_TTL:.0f} seconds, not {ttl:g}")
        return self._write((key, kind, value), by, later(self._stamp(), ttl))

    def _write(self, given: tuple[str, str, Any], by: Author, expires_at: str) -> Entry:
        key, kind, value = given
        value = self._checked(key, kind, value)
        now = self._stamp()
        self._expire(now)
        before = self._entries.by_key.get(key)
        while before is None and len(self) >= self._settings.max_entries:
            oldest = next(iter(self._entries.by_key))
            self._change({"op": "evict", "key": oldest, "at": now}, by.agent)
        change = {
            "op": "write",
            "key": key,
            "type": kind,
            "value": value,
            "version": before.version + 1 if before else 1,
            "at": now,
            "step": by.step,
            "agent": by.agent,
            "trust": by.trust,
            "expires_at": expires_at,
        }
        self._change(change, by.agent)
        return self._entries.by_key[key]

    def _checked(self, key: str, kind: str, value: Any) -> Any:
        """Return a copy of the value as a ledger gives it back; raises MemoryRefused."""
        if kind not in ENTRY_TYPES:
            raise MemoryRefused(f'unknown type "{kind}"; expected one of {", ".join(ENTRY_TYPES)}')
        if not key or len(key) > LONGEST_KEY or not key.isprintable():
            raise MemoryRefused(f"a key has 1 to {LONGEST_KEY} printable characters")
        try:
            text = dumps(value)
        except (TypeError, ValueError) as error:
            raise MemoryRefused(f"the value cannot be kept: {error}") from None
        except RecursionError:
            raise MemoryRefused("the value cannot be kept: it is nested too deeply") from None
        if (size := len(text.encode())) > self._settings.max_bytes:
            most = self._settings.max_bytes
            raise MemoryRefused(f"the value is too large: {size:,} bytes; at most {most:,} are allowed")
        return json.loads(text)

    def read(self, key: str) -> Entry | None:
        """Return an entry and count it as used; None when there is none, or when it is expired."""
        now = self._stamp()
        self._expire(now)
        entry = self._entries.by_key.get(key)
        if entry is not None and next(reversed(self._entries.by_key)) != key:
            self._change({"op": "read", "key": key, "at": now}, "")
        return entry

    def read_by_type(self, kind: str) -> list[Entry]:
        """Return the live entries of a type, by key; a list counts none of them as used."""
        return [entry for entry in self.read_all() if entry.type == kind]

    def read_all(self) -> list[Entry]:
        """Return all live entries, by key; a list counts none of them as used."""
        return live(self._entries.by_key.values(), self._stamp())

    def delete(self, key: str, by: Author) -> bool:
        """Remove an entry; returns whether there was one."""
        now = self._stamp()
        self._expire(now)
        if key not in self._entries.by_key:
            return False
        self._change({"op": "delete", "key": key, "at": now}, by.agent)
        return True

    def subscribe(self, agent: str, types: tuple[str, ...] = ()) -> Subscription:
        """Return the changes by others from now on; `types`: of these types only."""
        subscription = Subscription(agent, types)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Notify a subscriber no more."""
        self._subscriptions.remove(subscription)

    def expire(self) -> int:
        """Remove what is expired; returns how many entries that were."""
        return self._expire(self._stamp())

    def _expire(self, now: str) -> int:
        keys = [key for key, entry in self._entries.by_key.items() if entry.is_expired(now)]
        for key in keys:
            self._change({"op": "expire", "key": key, "at": now}, "")
        return len(keys)

    def _change(self, change: Change, author: str) -> None:
        before = self._entries.by_key.get(change["key"])
        self._entries.apply(change)
        self._journal(change)
        if change["op"] == "read":
            return
        kind = change.get("type") or (before.type if before else "")
        for subscription in self._subscriptions:
            subscription.notify(change, kind, author)
