"""The work of `planrun runs`: the runs in this folder, as a table or as JSON.

The work of `planrun verify`: whether the ledger and the logs of a run are unchanged.
"""

from __future__ import annotations

import os
import sys

from planrun.app.inspect import changed_logs, known_runs, listing, read
from planrun.app.summaries import resting_status
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.errors import InvalidInput
from planrun.model.events import GateAnswered
from planrun.model.widths import width_of
from planrun.reports.escape import line
from planrun.reports.facts import seconds
from planrun.reports.gates import answer
from planrun.reports.policies import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.app.summaries import Row
    from planrun.records.reading import Reading


def print_runs(limit: int, source: str | None, *, as_json: bool) -> None:
    """Print the newest runs of this folder, or those published at `source`; `limit` 0: all of them."""
    rows: Sequence[Row]
    if source:
        from planrun.app.published import published  # few runs are published

        rows, total = published(source, limit)
    else:
        names = known_runs()
        rows, total = listing(names[: limit or None]), len(names)
    head: tuple[str, ...] = ("Run", "Plan", "Status", "Started", "Took", "Failed")
    if as_json:
        say_json({"runs": [_run_data(row) for row in rows], "left_out": total - len(rows)})
    elif not rows:
        say("no runs are published there" if source else "no runs in this folder")
    else:
        say(_fitting([head + (("Machine",) if source else ()), *map(_run_cells, rows)]))
        if len(rows) < total:
            say(f"{total - len(rows)} older runs not shown; --limit 0 shows all")


def _fitting(rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table; on a narrow terminal without the time of the start, which the id of a run begins with."""
    text = table(rows[0], rows[1:])
    if width_of(text.partition("\n")[0]) <= (_columns() or sys.maxsize):
        return text
    at = rows[0].index("Started")
    shorter = [row[:at] + row[at + 1 :] for row in rows]
    return table(shorter[0], shorter[1:])


def _columns() -> int:
    """Return the width of the terminal on stdout; 0 where stdout is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 0


def _run_cells(row: Row) -> tuple[str, ...]:
    failed = ", ".join(row.failed[:3]) + (f" and {len(row.failed) - 3} more" if len(row.failed) > 3 else "")
    asked = [f"{step or 'the plan'} ({kind})" for step, kind in row.waiting]
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    details = (
        "; ".join(filter(None, (failed, f"waits for {', '.join(asked[:3])}{more}" if asked else "")))
        or row.detail
        or "-"
    )
    started = row.started_at[:19].replace("T", " ") or "-"
    took = seconds(row.duration) if row.duration is not None else "-"
    cells = (line(row.run), line(row.plan) or "-", line(row.status), line(started), took, line(details, 200))
    return (*cells, *[line(text or "-") for text in _origin(row).values()][:1])


def _origin(row: Row) -> dict[str, str | None]:
    """Return where a published run ran; empty for one of this folder."""
    found = vars(row)
    return {name: found[name] or None for name in ("machine", "user", "link") if name in found}


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
        **_origin(row),
    }


# Exit codes of `verify`; above the codes of runs, so that they cannot be confused.
VERIFIED = {"intact": 0, "unfinished": 10, "torn": 11, "truncated": 12, "altered": 13, "newer": 14}


def verify_run(run: str, head: str | None, *, as_json: bool) -> int:
    """Print whether a run's records are unchanged, and return the exit code; raises InvalidInput."""
    wanted = "" if head is None else _head(head)
    rundir, reading = read(run, wanted)
    name = os.path.basename(rundir)
    logs = changed_logs(rundir, reading)
    if as_json:
        found = [
            {"step": event.step or None, "answer": event.answer, "via": event.via, "by": event.by}
            for event in _answers(reading)
        ]
        rests = resting_status(reading)
        reading_data = {
            "condition": reading.condition,
            "intact": reading.condition == "intact",
            "paused": rests == "paused",
            "waiting": rests == "waiting",
            "events": len(reading.events),
            "head": reading.head,
            "line": reading.line or None,
            "detail": reading.detail,
        }
        say_json({"run": name, **reading_data, "logs_changed": logs, "answers": found})
    else:
        rows = [f"{name_of(event)}: {answer(event)}" for event in _answers(reading)]
        say("\n".join([f"{name}: {_verdict(reading)}", *[f"  {printable(row)}" for row in [*logs, *rows]]]))
    return VERIFIED["altered"] if logs else VERIFIED[reading.condition]


def _answers(reading: Reading) -> list[GateAnswered]:
    """Return the answers to gates in the part of a ledger that is valid."""
    return [event for event in reading.events if isinstance(event, GateAnswered)]


def _head(text: str) -> str:
    """Return a head in the form of a ledger; refuse an empty one, which may be an unset variable."""
    head = text.strip().lower()
    if len(head) != 64 or head.strip("0123456789abcdef"):
        raise InvalidInput("--head needs the 64 hexadecimal digits that `execute` printed at its end")
    return head


def _verdict(reading: Reading) -> str:
    rests = resting_status(reading)
    events = f"{len(reading.events)} event{'' if len(reading.events) == 1 else 's'}"
    if reading.condition in ("altered", "newer"):
        return f"{printable(reading.problem)}; the {events} before are valid"
    detail = f": {printable(reading.detail)}" if reading.detail else ""
    return {
        "intact": f"intact, {events}, head {reading.head}",
        "unfinished": f"unfinished, {events}, no end: the run is still running or was killed"
        if not rests
        else f"unfinished ({rests}), {events}; to continue: planrun resume",
        "torn": f"torn at line {reading.line}{detail}; the {events} before are valid; to continue: planrun resume",
        "truncated": f"truncated{detail}; the {events} that are left are valid",
    }[reading.condition]
