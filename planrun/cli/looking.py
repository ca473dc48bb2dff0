"""`planrun status`, `runs` and `verify`: what the records in this folder say, without changing them."""

from __future__ import annotations

import click

from planrun.cli.completing import complete_runs
from planrun.cli.failure import printable
from planrun.cli.printing import say, say_json, speaks_unicode
from planrun.cli.table import table
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.inspecting import Inspected, Row
    from planrun.records.reading import Reading


# What `verify` ends with; above the codes of runs, so that none is taken for another.
VERIFIED = {"intact": 0, "unfinished": 10, "torn": 11, "truncated": 12, "altered": 13}


@click.command(short_help="How far a run is, and what holds it up.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def status(run: str, *, as_json: bool) -> int:
    """Show how far RUN is (default: the newest run), step by step, and why steps are held up.

    \b
    Examples:
      planrun status
      planrun status 20260131-09
      watch planrun status
    """
    from planrun.app import progress
    from planrun.app.inspecting import inspect

    found = inspect(run)
    if as_json:
        say_json(progress.as_data(found))
    else:
        say("\n".join(_panel(found)))
    return 0


def _panel(found: Inspected) -> Iterator[str]:
    from planrun.app import progress
    from planrun.reports import facts, units
    from planrun.reports.clean import line
    from planrun.reports.text import step_line

    state = found.state
    plan = state.plan
    word = progress.status_of(found).capitalize()
    yield f'Plan v{plan.version}: "{line(plan.title or plan.name)}" [{word}]'
    figures = progress.metrics(found) if found.going else None
    left = ""
    if figures and figures.eta:
        left = f", {'about' if figures.eta_known else 'at least'} {units.seconds(figures.eta)} to go"
    yield f"{progress.bar(state)}  run {found.run}, {units.seconds(progress.elapsed(found))}{left}"
    if found.reading.condition in ("torn", "altered", "truncated"):
        yield f"the ledger is {found.reading.condition}: {found.reading.detail}"
    if state.planning is not None:
        from planrun.reports.planning import totals_line  # few runs ask a model

        yield f"language model: {totals_line(state)}"
    yield ""
    icons = facts.ICONS if speaks_unicode() else facts.ASCII_ICONS
    labels = facts.labels(state)
    said = progress.said(found)
    for step in state.steps.values():
        yield step_line(step, icons, labels=labels)
        if step.step.id in said:
            share, message = said[step.step.id]
            yield f"    {share:.0%} {printable(message)}".rstrip()
        yield from [f"    {printable(' '.join(reason.split()))}" for reason in progress.why(found, step)]
    yield from _at_rest(found)
    coming = progress.next_steps(state)
    if coming and not state.ended:
        yield f"\nnext: {', '.join(coming[:5])}" + (f" and {len(coming) - 5} more" if len(coming) > 5 else "")


def _at_rest(found: Inspected) -> Iterator[str]:
    """What a run waits for and how it is answered; how it goes on when nobody works on it."""
    from planrun.app import progress
    from planrun.reports import facts

    state = found.state
    if not found.going:
        from planrun.model.undoing import owes
        from planrun.reports.undoing import debt

        if owes(state):
            yield f"\n{debt(state)}"
    asked = progress.waiting(found)
    if asked:
        yield "\nwaiting for"
    for gate in asked:
        yield f"  {gate['told']}"
        yield from [f"    $ {command}" for command in gate["commands"]]
    if state.exit_status is not None and not state.ended and not found.going:
        yield (
            f"\nto continue once answered: planrun resume {found.run}"
            if asked
            else f"\n{facts.unended(state)}"
        )


@click.command(short_help="The runs in this folder.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0: all."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def runs(limit: int, *, as_json: bool) -> int:
    """List the runs in this folder, newest first.

    \b
    Examples:
      planrun runs
      planrun runs --json | jq -r '.runs[] | select(.status == "failed") | .run'
    """
    from planrun.app.inspecting import known_runs, listing

    names = known_runs()
    rows = listing(names[: limit or None])
    if as_json:
        say_json({"runs": [_run_data(row) for row in rows], "left_out": len(names) - len(rows)})
    elif not rows:
        say("there are no runs in this folder")
    else:
        say(
            table(
                ("Run", "Plan", "Status", "Started", "Took", "Failed"),
                [_run_cells(row) for row in rows],
            )
        )
        if len(rows) < len(names):
            say(f"{len(names) - len(rows)} older ones are left out; --limit 0 lists all")
    return 0


def _run_cells(row: Row) -> tuple[str, ...]:
    from planrun.reports.clean import line
    from planrun.reports.units import seconds

    failed = ", ".join(row.failed[:3]) + (f" and {len(row.failed) - 3} more" if len(row.failed) > 3 else "")
    told = "; ".join(filter(None, (failed, _waits(row)))) or row.detail or "-"
    started = row.started_at[:19].replace("T", " ") or "-"
    took = seconds(row.duration) if row.duration is not None else "-"
    return line(row.run), line(row.plan) or "-", row.status, line(started), took, line(told, 200)


def _waits(row: Row) -> str:
    """What a run waits for, in a few words: `waits for publish (approval), where (decide)`."""
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


@click.command(short_help="Whether the ledger of a run is as it was written.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--head", metavar="HASH", help="The hash of the last line, as `execute` printed it.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def verify(run: str, head: str | None, *, as_json: bool) -> int:
    """Check that the ledger of RUN is whole and unchanged: every line holds the hash of the one before.

    Who can write to the folder can also write a whole new ledger; only the head, kept elsewhere, tells that.
    Logs are compared with the size and hash that the ledger has of them.
    Exit code 0: intact and finished. 10: unfinished. 11: torn. 12: truncated. 13: altered, or a log was.

    \b
    Examples:
      planrun verify last
      planrun verify 20260131-093000-1f2e3d --head "$HEAD"
    """
    import os

    from planrun.app.inspecting import changed_logs, read

    wanted = "" if head is None else _head(head)
    rundir, reading = read(run, wanted)
    name = os.path.basename(rundir)
    logs = changed_logs(rundir, reading)
    if as_json:
        say_json({"run": name, **_reading_data(reading), "logs_changed": logs})
    else:
        say("\n".join([f"{name}: {_verdict(reading)}", *[f"  {printable(log)}" for log in logs]]))
    return VERIFIED["altered"] if logs else VERIFIED[reading.condition]


def _head(text: str) -> str:
    """Return a head as it stands in a ledger; an empty one is a variable that was not set, and checks nothing."""
    head = text.strip().lower()
    if len(head) != 64 or head.strip("0123456789abcdef"):
        raise InvalidInput("--head needs the 64 hexadecimal digits that `execute` printed at its end")
    return head


def _verdict(reading: Reading) -> str:
    from planrun.app.inspecting import rest

    rests = rest(reading)
    events = f"{len(reading.events)} event{'' if len(reading.events) == 1 else 's'}"
    if reading.condition == "altered":
        return f"altered at line {reading.line}: {printable(reading.detail)}; the {events} before are sound"
    detail = f": {printable(reading.detail)}" if reading.detail else ""
    return {
        "intact": f"intact, {events}, head {reading.head}",
        "unfinished": f"unfinished, {events} and no end: the run still goes on or was killed"
        if not rests
        else f"unfinished ({rests}), {events}; `planrun resume` goes on",
        "torn": f"torn at line {reading.line}{detail}; the {events} before are sound, and `planrun resume` goes on",
        "truncated": f"truncated{detail}; the {events} that are left are sound",
    }[reading.condition]


def _reading_data(reading: Reading) -> dict[str, object]:
    from planrun.app.inspecting import rest

    rests = rest(reading)
    return {
        "condition": reading.condition,
        "intact": reading.condition == "intact",
        "paused": rests == "paused",
        "waiting": rests == "waiting",
        "events": len(reading.events),
        "head": reading.head,
        "line": reading.line or None,
        "detail": reading.detail,
    }
