"""How the agents of a run worked together: the shared memory, delegations, messages, reflections and snapshots.

Loaded for runs in which agents shared something.
"""

from __future__ import annotations

from planrun.model.collaboration import live
from planrun.reports import facts
from planrun.reports.document import table
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.events import AgentNoted
    from planrun.model.state import RunState
    from planrun.reports.document import Part, Section

_MOST_ROWS = 100  # of delegations in a report


def last_moment(state: RunState) -> str:
    """Return when an agent last noted something: what was expired by then is not part of the reports."""
    return state.noted.changes[-1].at if state.noted else ""


def event_line(event: AgentNoted, _state: RunState) -> tuple[str, str]:
    """Return the status whose icon fits, and one clean line; "" for what people need not see at once."""
    change = event.change
    if event.kind == "delegation":
        if change["op"] == "begin":
            score = facts.amount_of(change["score"])
            return "running", line(
                f"{change['from']} delegates to {change['to']} ({change['id']}, score {score}): {change['reason']}"
            )
        status = "completed" if change["result"] == "completed" else "partial"
        return status, line(
            f"delegation {change['id']}: {change['result']} in {facts.seconds(change['seconds'])}"
        )
    if event.kind == "message" and change["op"] == "send":
        return "running", line(
            f"{change['from']} asks {change['to_role']} ({change['id']}): {change['type']}"
        )
    if event.kind == "message" and change.get("status") not in (None, "answered"):
        return "partial", line(f"message {change['id']}: {change['status']}: {change['reply']}")
    if event.kind == "reflection" and change["op"] == "reflect" and change["category"] != "unknown":
        return "partial", line(f"{event.agent}: {change['tool']} failed: {change['category']}")
    return "", ""


def _counts(state: RunState) -> Iterator[tuple[str, str]]:
    noted = state.noted
    if noted is None:
        return
    amounts = (
        (len(noted.delegations.by_id), "delegation"),
        (len(noted.messages.by_id), "message"),
        (len(noted.reflections.by_id), "reflection"),
        (len(live(noted.memory.by_key.values(), last_moment(state))), "memory entry"),
    )
    parts = [f"{number} {_plural(word, number)}" for number, word in amounts if number]
    if parts:
        yield "Agents together", ", ".join(parts)


def _plural(word: str, number: int) -> str:
    if number == 1:
        return word
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def _sections(state: RunState) -> Iterator[Section]:
    """Yield every delegation with its rule, score and result."""
    found = state.noted.delegations.rows() if state.noted else []
    rows = [
        (
            *(str(row[name]) for name in ("step", "from", "to", "rule")),
            facts.amount_of(row["score"]),
            str(row["result"]),
            facts.seconds(row["seconds"]) if "seconds" in row else "",
        )
        for row in found[:_MOST_ROWS]
    ]
    if rows:
        more = len(found) - len(rows)
        yield table(
            "Delegations",
            (
                *(("Step", "step"), ("From", "text"), ("To", "text"), ("Rule", "code")),
                *(("Score", "number"), ("Result", "text"), ("Time", "number")),
            ),
            rows,
            note=f"{more} more delegations are in ledger.json." if more else "",
        )


COLLABORATION: Part = {
    "event_line": event_line,
    "summary": _counts,
    "sections": _sections,
    "ledger": {"collaboration": lambda state: state.noted and state.noted.as_data(last_moment(state))},
}
