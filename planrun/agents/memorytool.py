"""The tool `memory`: what a model may do with the shared memory, by its arguments, and what it gets back."""

from __future__ import annotations

from planrun.agents.memory import MemoryRefused
from planrun.model.agenttools import MEMORY_OPERATIONS, SPECS, as_offer
from planrun.model.collaboration import ENTRY_TYPES, entry_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.agents.memory import Author, SharedMemory, Subscription
    from planrun.model.collaboration import Entry

OPERATIONS = MEMORY_OPERATIONS
MEMORY_TOOL = as_offer(SPECS["memory"])
"""The definition of the tool, as the Messages API has it."""


class MemoryTool:
    """The tool of one agent; it subscribes at its first use of `subscribe`."""

    def __init__(self, memory: SharedMemory, by: Author) -> None:
        self._memory = memory
        self._by = by
        self._subscription: Subscription | None = None

    def call(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a model asks for and return the result as JSON data; raises MemoryRefused for the model."""
        op = args.get("op")
        if op not in OPERATIONS:
            raise MemoryRefused(f"op must be one of {', '.join(OPERATIONS)}")
        result: dict[str, Any] = getattr(self, f"_{op}")(args)
        return result

    def close(self) -> None:
        """Stop the subscription."""
        if self._subscription is not None:
            self._memory.unsubscribe(self._subscription)
            self._subscription = None

    def _write(self, args: Mapping[str, Any]) -> dict[str, Any]:
        entry = self._memory.write(_text(args, "key"), _text(args, "type"), _value(args), self._by)
        return {"key": entry.key, "version": entry.version}

    def _write_with_ttl(self, args: Mapping[str, Any]) -> dict[str, Any]:
        ttl = args.get("ttl")
        if type(ttl) not in (int, float):
            raise MemoryRefused("ttl must be a number of seconds")
        key, kind = _text(args, "key"), _text(args, "type")
        entry = self._memory.write_with_ttl(key, kind, _value(args), self._by, ttl=float(ttl))  # type: ignore[arg-type]
        return {"key": entry.key, "version": entry.version, "expires_at": entry.expires_at}

    def _read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        entry = self._memory.read(_text(args, "key"))
        return {"entry": entry_data(entry) if entry else None}

    def _read_by_type(self, args: Mapping[str, Any]) -> dict[str, Any]:
        kind = _text(args, "type")
        if kind not in ENTRY_TYPES:
            raise MemoryRefused(f'unknown type "{kind}"; expected one of {", ".join(ENTRY_TYPES)}')
        return _listed(self._memory.read_by_type(kind))

    def _read_all(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        return _listed(self._memory.read_all())

    def _delete(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"deleted": self._memory.delete(_text(args, "key"), self._by)}

    def _subscribe(self, _args: Mapping[str, Any]) -> dict[str, Any]:
        if self._subscription is None:
            self._subscription = self._memory.subscribe(self._by.agent)
        changes = self._subscription.take()
        return {"changes": changes, "dropped": self._subscription.dropped}


def _text(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str):
        raise MemoryRefused(f"{name} is missing, or no text")
    return value


def _value(args: Mapping[str, Any]) -> Any:
    if "value" not in args:
        raise MemoryRefused("value is missing")
    return args["value"]


def _listed(entries: list[Entry]) -> dict[str, Any]:
    return {"entries": [entry_data(entry) for entry in entries]}
