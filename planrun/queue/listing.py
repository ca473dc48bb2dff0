"""The work of `planrun queue list`: the entries of the queue, as a table or as JSON."""

from __future__ import annotations

from planrun.cliutil.printing import say, say_json, table
from planrun.queue.workers import is_lost
from planrun.records.queuefile import QueueFile, exists
from planrun.reports.escape import line
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.queue import Entry, Queue
    from planrun.records.queueplace import QueuePlace


def print_queue(shared: QueuePlace | None, *, as_json: bool) -> None:
    """Print the entries in the order in which they run; `shared`: of a queue that several machines share."""
    workspace = current_folder()
    state = shared.read() if shared else QueueFile(workspace).read() if exists(workspace) else None
    rows = _rows(state, "" if shared else workspace) if state else []
    if as_json:
        say_json({"paused": bool(state and state.paused), "entries": rows})
        return
    if not rows or state is None:
        say("the queue is empty" if shared else "the queue of this folder is empty")
        return
    head = ("Entry", "Status", "Priority", "Plan", "Folder", "After", "Run", "Why")
    where = ("Machine",) if shared else ()
    cells = [(*_cells(row), *([line(row["machine"] or "-")] if shared else ())) for row in rows]
    say(table((*head, *where), cells, right=(0, 2)))
    if state.paused:
        say("\nthe queue is paused; to continue: planrun queue resume")


def _rows(state: Queue, workspace: str) -> list[dict[str, Any]]:
    statuses = state.statuses()
    return [
        {
            "entry": entry.number,
            "status": statuses[entry.number],
            "priority": entry.added.priority,
            "plan": entry.added.plan,
            "folder": entry.added.folder,
            "options": list(entry.added.options),
            "after": list(entry.added.after),
            "added_at": entry.added.at,
            "started_at": entry.started.at if entry.started else None,
            "ended_at": entry.ended.at if entry.ended else None,
            "run": entry.run or None,
            "exit_code": entry.ended.exit_code if entry.ended else None,
            "machine": entry.started.worker["host"] if entry.started else None,
            "lost": bool(workspace) and is_lost(workspace, entry),
            "reason": _why(state, entry, statuses),
        }
        for entry in state.ranked()
    ]


def _why(state: Queue, entry: Entry, statuses: dict[int, str]) -> str:
    status = statuses[entry.number]
    before = state.before(entry, statuses) if status in ("queued", "blocked") else ()
    if before:
        held = [f"{number} is {statuses.get(number, 'gone')}" for number in before]
        return "entry " + ", ".join(held)
    return entry.reason


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    why = "its process is gone; planrun queue run handles it" if row["lost"] else row["reason"]
    after = ", ".join(map(str, row["after"])) or "-"
    return (
        str(row["entry"]),
        row["status"],
        str(row["priority"]),
        line(row["plan"]),
        line(row["folder"]),
        after,
        row["run"] or "-",
        line(why, 200) or "-",
    )
