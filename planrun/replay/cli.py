"""`planrun replay`: a run played again from its ledger, as it was or as it would have been."""

from __future__ import annotations

import click

from planrun.app.inspect import read_run
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.printing import say, say_json, table
from planrun.model.events import NAMES
from planrun.model.jsontext import dumps
from planrun.plan.load import load
from planrun.replay.replay import play_again
from planrun.replay.results import told as comparable
from planrun.replay.whatif import suppose
from planrun.reports.escape import line
from planrun.reports.facts import names, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.replay.replay import Again
    from planrun.replay.whatif import Row, Supposed

_SHOWN = 10  # differences


@click.command(short_help="Play a run again from its records: as it was, or under another plan or policy.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--plan",
    metavar="FILE",
    default="",
    type=click.Path(),
    help="What if this had been its plan?",
)
@click.option(
    "--policy", metavar="FILE", type=click.Path(), default="", help="What if this had been a ceiling, too?"
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def replay(run: str, *, plan: str, policy: str, as_json: bool) -> int:
    """Play RUN (default: the newest) again by the real loop, from its records alone; nothing runs, nothing is written.

    Without options: whether the loop does again, event for event, what the ledger says. With --plan or --policy: what
    would have become of each step, with the results that are on record. What never ran, or changed, is assumed to
    complete; what nobody can know is unknown until it runs.

    \b
    Examples:
      planrun replay last
      planrun replay 20260131-09 --plan plan.yml
      planrun replay last --policy ci/policy.yml --json
    """
    found = read_run(run)
    if plan or policy:
        edited = load(plan, cache=False) if plan else None
        supposed = suppose(found.state, found.rundir, edited, policy)
        if as_json:
            say_json(_supposed_data(found, supposed))
        else:
            say("\n".join(_supposed(found, supposed)))
        return 0
    again = play_again(found.rundir, found.reading, found.state.versions)
    if as_json:
        say_json(_again_data(found, again))
    else:
        say("\n".join(_again(found, again)))
    return 0


def _again(found: Inspected, again: Again) -> Iterator[str]:
    events = f"{again.played} event{'' if again.played == 1 else 's'}"
    yield from [f"{line(told)}" for told in again.missing]
    if not again.differences:
        yield f"{found.run}: {events} played again, the same as recorded; {again.outside} came from outside of the loop"
        return
    yield f"{found.run}: not the same as recorded; {events} were, before and between"
    for difference in again.differences[:_SHOWN]:
        yield f"  line {difference.line}"
        yield f"    recorded: {line(_event(difference.recorded), 300)}"
        yield f"    replayed: {line(_event(difference.replayed), 300)}"


def _event(event: Any) -> str:
    return f"{NAMES[type(event)]} {dumps(comparable(event))}" if event is not None else "nothing"


def _again_data(found: Inspected, again: Again) -> dict[str, Any]:
    def data(event: Any) -> dict[str, Any] | None:
        return {"type": NAMES[type(event)], **comparable(event)} if event is not None else None

    return {
        "run": found.run,
        "same": not again.differences,
        "events": {"played": again.played, "outside": again.outside},
        "notes": list(again.missing),
        "differences": [
            {"line": each.line, "recorded": data(each.recorded), "replayed": data(each.replayed)}
            for each in again.differences
        ],
    }


def _supposed(found: Inspected, supposed: Supposed) -> Iterator[str]:
    rows = [row for row in supposed.rows if row.differs]
    if rows:
        yield table(
            ("Step", "Recorded", "Would have been", "Why"),
            [(line(row.step), _then(row), _would(row), line(row.why, 200)) for row in rows],
        )
    same = len(supposed.rows) - len(rows)
    yield f"{same} step{'' if same == 1 else 's'} as recorded" + (
        "" if rows else ": nothing would have been different"
    )
    yield ""
    state = found.state
    then = state.ended.verdict if state.ended else state.status
    yield f"recorded: {then}, exit code {_code(state.exit_status)}"
    yield f"would be: {_verdict(supposed)}, after some {seconds(supposed.seconds)}"
    if any(row.is_assumed for row in supposed.rows):
        yield "assumed: that what has no recorded result completes"


def _verdict(supposed: Supposed) -> str:
    if any(row.is_unknown for row in supposed.rows):
        return "unknown until run"
    if supposed.verdict is None:
        waits = f" for {names(supposed.waits_for)}" if supposed.waits_for else ""
        return f"waiting{waits}, exit code {_code(supposed.exit_code)}"
    return f"{supposed.verdict}, exit code {_code(supposed.exit_code)}"


def _code(code: int | None) -> str:
    return "none" if code is None else str(code)


def _then(row: Row) -> str:
    return _told(row.recorded, row.recorded_reason, row.recorded_s) if row.recorded else "not there"


def _would(row: Row) -> str:
    if row.is_unknown:
        return "unknown until run"
    if not row.replayed:
        return "gone"
    assumed = ", assumed" if row.is_assumed else ""
    return _told(row.replayed, row.replayed_reason, row.replayed_s) + assumed


def _told(status: str, reason: str, took: float) -> str:
    why = f" ({reason.replace('_', ' ')})" if reason and reason != "ran" else ""
    return f"{status}{why}" + (f" {seconds(took)}" if took else "")


def _supposed_data(found: Inspected, supposed: Supposed) -> dict[str, Any]:
    state = found.state
    return {
        "run": found.run,
        "recorded": {"verdict": state.ended.verdict if state.ended else None, "exit_code": state.exit_status},
        "replayed": {
            "verdict": supposed.verdict,
            "exit_code": supposed.exit_code,
            "duration_s": round(supposed.seconds, 3),
            "waits_for": list(supposed.waits_for),
            "assumed": any(row.is_assumed for row in supposed.rows),
            "unknown": any(row.is_unknown for row in supposed.rows),
        },
        "steps": [
            {
                "id": row.step,
                "recorded": _end(row.recorded, row.recorded_reason, row.recorded_s),
                "replayed": _end(row.replayed, row.replayed_reason, row.replayed_s),
                "assumed": row.is_assumed,
                "unknown": row.is_unknown,
                "why": row.why,
            }
            for row in supposed.rows
        ],
    }


def _end(status: str, reason: str, took: float) -> dict[str, Any] | None:
    return {"status": status, "reason": reason, "duration_s": round(took, 4)} if status else None
