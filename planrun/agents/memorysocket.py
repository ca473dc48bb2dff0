"""The socket by which people change the shared memory of a run while its agents work: `planrun memory RUN set …`."""

from __future__ import annotations

import json

from planrun.agents.memory import Author, MemoryRefused
from planrun.approval.control import Listener
from planrun.errors import InvalidInput, PlanrunError
from planrun.model.collaboration import entry_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.shared import Shared
    from planrun.approval.control import Connection
    from planrun.ports import Clock, Masks

NAME = "memory"  # of the socket in the folder of the run
PERSON = "user:"  # how the name of an author begins who is no agent
POLL = 0.25
"""Seconds between two looks at the socket."""


class MemorySocket:
    """Takes changes of one memory; each is journaled as a change by an agent is."""

    def __init__(self, rundir: str, clock: Clock, masks: Masks | None) -> None:
        self._listener = Listener(rundir, clock, NAME)
        self._masks = masks

    def poll(self, shared: Shared) -> None:
        """Carry out what has arrived, without waiting."""

        def handle(client: Connection, line: bytes) -> bool:
            try:
                self._listener.refuse(client, "change the memory of a run")
                text = line.decode("utf-8", "replace")
                result = change(shared, json.loads(self._masks.mask_text(text) if self._masks else text))
            except PlanrunError as error:
                client.send({"error": str(error), "exit_code": error.exit_code})
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                client.send({"error": "not a change of the memory", "exit_code": InvalidInput.exit_code})
            else:
                client.send(result)
            return False

        self._listener.serve(handle)

    def close(self) -> None:
        """Remove the socket."""
        self._listener.close()


def change(shared: Shared, asked: dict[str, Any]) -> dict[str, Any]:
    """Carry out one change by a person: `op` is set or delete; returns the entry. Raises MemoryRefused."""
    op, key, by = asked["op"], str(asked["key"]), f"{PERSON}{asked.get('by') or 'unknown'}"
    author = Author(agent=by, trust="person")
    shared.acting("", by)
    if op == "delete":
        if not shared.memory.delete(key, author):
            raise MemoryRefused(f'no entry "{key}" in the memory')
        return {"key": key, "deleted": True}
    if op != "set":
        raise MemoryRefused("op must be set or delete")
    kind, ttl = str(asked.get("type") or "fact"), asked.get("ttl")
    if ttl is None:
        entry = shared.memory.write(key, kind, asked["value"], author)
    else:
        entry = shared.memory.write_with_ttl(key, kind, asked["value"], author, ttl=float(ttl))
    return {"key": key, "entry": entry_data(entry)}
