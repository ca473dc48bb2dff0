"""How the agents of a run work together: the settings under `llm`, and the fold of what they did.

The fold takes the changes of `AgentNoted` one by one and decides nothing: what was evicted, refused or too late was
decided before the event was written. So a ledger is read back without clock and chance.
"""

from __future__ import annotations

from planrun.errors import InternalError
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal

    from planrun.model.events import AgentNoted
    from planrun.model.planning import Llm

    Change = dict[str, Any]
    Trust = Literal["planrun", "tool", "model", "person"]
    Store = Literal["off", "read", "write"]

    Journal = Callable[[Change], None]

KINDS = ("memory", "delegation", "message", "reflection", "snapshot")
"""What an `AgentNoted` may be about."""
ENTRY_TYPES = ("fact", "insight", "filestate", "decision", "contextsnapshot")
"""The types of entries in the shared memory."""


class Delegation(Record):
    """Settings of `llm.delegation`; times in seconds."""

    enabled: bool = False  # whether rules delegate, besides what an agent asks for
    alpha: float = 0.1  # of the moving average of a weight
    max_depth: int = 5  # agents below the agent of a step
    depth_penalty: int = 3  # turns that each level takes away
    suppress_for: float = 600.0  # how long a rule stays off after a delegation by it failed
    max_parallel_agents: int = 5
    load_penalty: float = 0.0  # how much of a score goes when all agents are busy


class Memory(Record):
    """Settings of `llm.memory`: the shared memory of a run, and what agents keep from run to run."""

    max_entries: int = 500
    max_bytes: int = 65536  # of one value as JSON
    store: Store = "off"  # what is kept from run to run: not used, read only, or read and written
    dir: str = ""  # where it is kept; empty: in the folder for caches


class Messenger(Record):
    """Settings of `llm.messenger`; times in seconds."""

    timeout: float = 180.0  # how long a message waits for its reply


class Reflection(Record):
    """Settings of `llm.reflection`."""

    enabled: bool = True
    llm: bool = False  # a model analyses errors that no pattern matches
    autofix: bool = False  # reading tools are repeated with a corrected path


class Collaboration(Record):
    """All settings for agents that work together."""

    delegation: Delegation = Delegation()
    memory: Memory = Memory()
    messenger: Messenger = Messenger()
    reflection: Reflection = Reflection()


def collaboration_of(llm: Llm | None) -> Collaboration:
    """Return the settings of a plan; the defaults where it has none."""
    if llm is None:
        return Collaboration()
    return Collaboration(
        delegation=Delegation(**llm.delegation),
        memory=Memory(**llm.memory),
        messenger=Messenger(**llm.messenger),
        reflection=Reflection(**llm.reflection),
    )


class Entry(Record):
    """One entry of the shared memory; `expires_at` is empty where it does not expire.

    `version` counts the writes of its key since it was last removed, from 1. `trust`: who the value comes from.
    """

    key: str
    type: str
    value: Any
    version: int
    at: str
    step: str = ""
    agent: str = ""
    trust: Trust = "model"
    expires_at: str = ""

    def is_expired(self, now: str) -> bool:
        """Whether its time was over at a moment."""
        return bool(self.expires_at) and now >= self.expires_at


class Entries:
    """The entries of a shared memory, the least recently used first; changed by `apply` alone."""

    def __init__(self) -> None:
        self.by_key: dict[str, Entry] = {}

    def apply(self, change: Mapping[str, Any]) -> None:
        """Take one change: write, read, delete, evict or expire; raises InternalError for another one."""
        name, key = change["op"], change["key"]
        if name not in ("write", "read", "delete", "evict", "expire"):
            raise InternalError(f"unknown change of the memory: {name}")
        entry = self.by_key.pop(key, None)
        if name == "write":
            entry = Entry(**{field: value for field, value in change.items() if field != "op"})
        if entry is not None and name in ("write", "read"):
            self.by_key[key] = entry


class Rows:
    """Rows of plain data by id: delegations, messages, reflections; a later change of an id adds to its row."""

    def __init__(self) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}

    def apply(self, change: Mapping[str, Any]) -> None:
        """Take one change: its fields but `op` become fields of the row."""
        row = self.by_id.setdefault(change["id"], {})
        row |= {name: value for name, value in change.items() if name != "op"}

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows in the order in which they began."""
        return list(self.by_id.values())


class Noted:
    """What the agents of a run noted, in the order of the ledger."""

    def __init__(self) -> None:
        self.memory = Entries()
        self.delegations = Rows()
        self.messages = Rows()
        self.reflections = Rows()
        self.snapshots: list[dict[str, Any]] = []
        self.changes: list[AgentNoted] = []

    def apply(self, event: AgentNoted) -> None:
        """Take one event; raises InternalError when it is about nothing known."""
        self.changes.append(event)
        if event.kind not in KINDS:
            raise InternalError(f"an agent noted something unknown: {event.kind}")
        by = {"step": event.step, "agent": event.agent}
        if event.kind == "memory":
            self.memory.apply(event.change)
        elif event.kind == "snapshot":
            self.snapshots.append({**by, "at": event.at, **event.change})
        else:
            rows = {
                "delegation": self.delegations,
                "message": self.messages,
                "reflection": self.reflections,
            }[event.kind]
            is_known = event.change["id"] in rows.by_id
            rows.apply(event.change if is_known else {**by, **event.change})

    def of(self, kind: str) -> list[Change]:
        """Return the changes of a kind, to rebuild what decides about the next ones."""
        return [dict(event.change) for event in self.changes if event.kind == kind]

    def as_data(self, now: str) -> dict[str, Any]:
        """Return everything as JSON data; entries of the memory that expired before `now` are left out."""
        return {
            "memory": {"entries": [entry_data(entry) for entry in live(self.memory.by_key.values(), now)]},
            "delegations": self.delegations.rows(),
            "messages": self.messages.rows(),
            "reflections": self.reflections.rows(),
            "snapshots": self.snapshots,
        }


def live(entries: Iterable[Entry], now: str) -> list[Entry]:
    """Return the entries that are not expired, by key."""
    return sorted([entry for entry in entries if not entry.is_expired(now)], key=lambda entry: entry.key)


ENTRY_FIELDS = ("key", "type", "value", "version", "at", "step", "agent", "trust", "expires_at")


def entry_data(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON data; `expires_at` is null where it does not expire."""
    data = {name: getattr(entry, name) for name in ENTRY_FIELDS}
    return {**data, "expires_at": entry.expires_at or None}
