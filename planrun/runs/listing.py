"""The work of `planrun runs`: the runs in this folder, as a table or as JSON."""

from __future__ import annotations

from planrun.app.inspect import known_runs, listing
from planrun.cliutil.printing import say, say_json, table
from planrun.reports.escape import line
from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.inspect import Row


def print_runs(limit: int, *, as_json: bool) -> None:
    """Print the newest runs of this folder; `limit` 0: all of them."""
    names = known_runs()
    rows = listing(names[: limit or None])
    if as_json:
        say_json({"runs": [_run_data(row) for row in rows], "left_out": len(names) - len(rows)})
    elif not rows:
        say("no runs in this folder")
    else:
        say(
            table(
                ("Run", "Plan", "Status", "Started", "Took", "Failed"),
                [_run_cells(row) for row in rows],
            )
        )
        if len(rows) < len(names):
            say(f"{len(names) - len(rows)} older runs not shown; --limit 0 shows all")


def _run_cells(row: Row) -> tuple[str, ...]:
    failed = ", ".join(row.failed[:3]) + (f" and {len(row.failed) - 3} more" if len(row.failed) > 3 else "")
    details = "; ".join(filter(None, (failed, _waits(row)))) or row.detail or "-"
    started = row.started_at[:19].replace("T", " ") or "-"
    took = seconds(row.duration) if row.duration is not None else "-"
    return line(row.run), line(row.plan) or "-", row.status, line(started), took, line(details, 200)


def _waits(row: Row) -> str:
    """What a run waits for, in short: `waits for publish (approval), where (decide)`."""
    asked = [f"{step or 'the plan'} ({kind})" for step, kind in row.waiting]
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    return f"waits for {', '.join(asked[:3])}{more}" if asked else ""


def _run_data(row: Row) -> dict[str, object]:
    return {
        "run": row.run,
        "status": row.status,
        "plan": {"name": row.plan, "file": row.file},
        "started_at": row.started_at or None,
        "duration_s": row.duration,
        "exit_code": row.exit_code,
        "failed": list(row.failed),
        "waiting": [{"step": step or None, "kind": kind} for step, kind in row.waiting],
        "detail": row.detail,
    }
