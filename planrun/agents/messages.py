"""Messages between agents: requests for help and delegated work, who waits for whom, and how long.

One `Post` serves a run. Each of its changes is a plain mapping for the journal, so it is rebuilt from the ledger. The
time is that of the clock that is passed in.
"""

from __future__ import annotations

from planrun.clock import later
from planrun.errors import InvalidInput
from planrun.model.agenttools import MESSAGE_TYPES, SPECS, as_offer
from planrun.model.collaboration import Rows
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from planrun.model.collaboration import Change, Delegation, Journal, Messenger

TYPES = MESSAGE_TYPES
ASK_TOOL = as_offer(SPECS["ask_agent"])
"""The definition of the tool, as the Messages API has it."""
LONGEST = 32_000  # characters of a message or a reply
WAITING, ANSWERED, TIMED_OUT, CANCELLED, REFUSED = "waiting", "answered", "timeout", "cancelled", "refused"


class MessageRefused(InvalidInput):
    """A message that cannot be sent, or an agent that cannot start; the text is for the agent that wanted it."""


class Reply(Record):
    """The end of a message: answered, timeout, cancelled or refused; `content` is the answer, or says why."""

    id: str
    status: str
    content: str = ""

    @property
    def ok(self) -> bool:
        """Whether it was answered."""
        return self.status == ANSWERED


class Working(Record):
    """An agent that has not ended: its type, its depth, and the agent above it."""

    id: str
    role: str
    depth: int = 0
    parent: str = ""


class Roster:
    """The agents of a run that have not ended."""

    def __init__(self, settings: Delegation) -> None:
        self.agents: dict[str, Working] = {}
        self._settings = settings

    def start(self, agent: str, role: str, *, parent: str = "", waiting: Iterable[str] = ()) -> Working:
        """Add an agent; raises MessageRefused when too many are at work, or when it would be too deep.

        `waiting`: agents that wait for a reply; they are not at work.
        """
        if agent in self.agents:
            raise MessageRefused(f"the agent {agent} runs already")
        above = self.agents.get(parent)
        depth = above.depth + 1 if above else 0
        if depth > self._settings.max_depth:
            raise MessageRefused(f"depth {self._settings.max_depth} is reached")
        if self.at_work(waiting) >= self._settings.max_parallel_agents:
            raise MessageRefused(f"{self._settings.max_parallel_agents} agents are at work already")
        added = self.agents[agent] = Working(id=agent, role=role, depth=depth, parent=parent)
        return added

    def at_work(self, waiting: Iterable[str] = ()) -> int:
        """Return how many agents are at work: those that do not wait for a reply."""
        return len(self.agents.keys() - frozenset(waiting))

    def end(self, agent: str) -> None:
        """Remove an agent."""
        self.agents.pop(agent, None)


class Post:
    """The messages of one run.

    `stamp`: the time, as `Clock.stamp` gives it. `journal` gets each change after it was applied.
    """

    def __init__(self, settings: Messenger, stamp: Callable[[], str], journal: Journal) -> None:
        self._settings = settings
        self._stamp = stamp
        self._journal = journal
        self._rows = Rows()

    def restore(self, changes: Iterable[Change]) -> None:
        """Take the changes of a ledger; nothing is written to the journal."""
        for change in changes:
            self._rows.apply(change)

    def send(
        self, kind: str, sender: str, to_role: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Send a message to a type of agent and return its id; raises MessageRefused.

        The sender waits from now on, so it can send nothing more before it has the reply.
        """
        if kind not in TYPES:
            raise MessageRefused(f'unknown type of message "{kind}"; expected one of {", ".join(TYPES)}')
        if not content.strip():
            raise MessageRefused("the message is empty")
        if len(content) > LONGEST:
            raise MessageRefused(
                f"the message is too long: {len(content):,} characters; at most {LONGEST:,} are allowed"
            )
        if open_ids := [row["id"] for row in self._open() if row["from"] == sender]:
            raise MessageRefused(f"{sender} waits for the reply to {open_ids[0]}")
        now = self._stamp()
        number = f"m{len(self._rows.by_id) + 1}"
        change = {
            "op": "send",
            "id": number,
            "type": kind,
            "from": sender,
            "to_role": to_role,
            "to": "",
            "content": content,
            "metadata": dict(metadata or {}),
            "at": now,
            "until": later(now, self._settings.timeout),
            "status": WAITING,
        }
        self._record(change)
        return number

    def assign(self, number: str, agent: str) -> None:
        """Give a message to the agent that will answer it; raises MessageRefused where they would wait in a cycle.

        A refused message ends with the status `refused`.
        """
        row = self._row(number)
        if row["status"] != WAITING:
            raise MessageRefused(f"the message {number} has ended: {row['status']}")
        if cycle := self._cycle(row["from"], agent):
            why = f"the agents would wait for each other: {' -> '.join(cycle)}"
            self._end(number, REFUSED, why)
            raise MessageRefused(why)
        self._record({"op": "assign", "id": number, "to": agent})

    def reply(self, number: str, content: str) -> bool:
        """Answer a message; returns False, and changes nothing, when it has ended: a late reply is dropped."""
        row = self._row(number)
        self._expire(row)
        if row["status"] != WAITING:
            return False
        if len(content) > LONGEST:
            out = len(content) - LONGEST
            content = f"{content[:LONGEST]}\n[{out} characters left out]"
        self._end(number, ANSWERED, content)
        return True

    def refuse(self, number: str, why: str) -> None:
        """End a message that no agent can answer."""
        if self._row(number)["status"] == WAITING:
            self._end(number, REFUSED, why)

    def receive(self, number: str) -> Reply | None:
        """Return the reply; None while there is none. After the time limit it is one of status `timeout`."""
        row = self._row(number)
        self._expire(row)
        if row["status"] == WAITING:
            return None
        return Reply(id=number, status=row["status"], content=row.get("reply", ""))

    def agent_ended(self, agent: str) -> None:
        """End what an agent that ended had sent, and what it was to answer."""
        for row in self._open():
            if row["from"] == agent:
                self._end(row["id"], CANCELLED, f"{agent} ended")
            elif row["to"] == agent:
                self._end(row["id"], CANCELLED, f"{agent} ended without a reply")

    def expire(self) -> list[str]:
        """End the messages whose time is over; returns their ids."""
        return [row["id"] for row in self._open() if self._expire(row)]

    def waiting(self) -> dict[str, str]:
        """Return who waits for whom: agents by the agents that wait; "" where nobody answers yet."""
        return {row["from"]: row["to"] for row in self._open()}

    def rows(self) -> list[dict[str, Any]]:
        """Return every message as plain data, as it stands in ledger.json."""
        return self._rows.rows()

    def _open(self) -> list[dict[str, Any]]:
        return [row for row in self._rows.by_id.values() if row["status"] == WAITING]

    def _row(self, number: str) -> dict[str, Any]:
        row = self._rows.by_id.get(number)
        if row is None:
            raise MessageRefused(f"no message {number}")
        return row

    def _cycle(self, sender: str, agent: str) -> list[str]:
        """Return the cycle that would begin if `sender` waited for `agent`; empty when there is none."""
        waits = self.waiting()
        path = [sender]
        while agent and agent not in path:
            path.append(agent)
            agent = waits.get(agent, "")
        return [*path, agent] if agent == sender else []

    def _expire(self, row: dict[str, Any]) -> bool:
        if row["status"] != WAITING or self._stamp() < row["until"]:
            return False
        self._end(row["id"], TIMED_OUT, f"no reply within {self._settings.timeout:g} seconds")
        return True

    def _end(self, number: str, status: str, reply: str) -> None:
        self._record({"op": "end", "id": number, "status": status, "reply": reply, "ended_at": self._stamp()})

    def _record(self, change: Change) -> None:
        self._rows.apply(change)
        self._journal(change)
