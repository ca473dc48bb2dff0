"""`planrun replay`: replay a run from its ledger, as recorded or as a what-if."""

from __future__ import annotations

import click

from planrun.app.inspect import read_run
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.printing import say, say_json, table
from planrun.model.events import NAMES
from planrun.model.jsontext import dumps
from planrun.plan.load import load
from planrun.replays.replay import replay_run
from planrun.replays.results import comparable
from planrun.replays.whatif import what_if
from planrun.reports.escape import line
from planrun.reports.facts import names, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.replays.replay import ReplayResult
    from planrun.replays.whatif import Row, WhatIfResult

_SHOWN = 10  # differences


@click.command(short_help="Replay a run from its records, as recorded or under another plan or policy.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--plan",
    metavar="FILE",
    default="",
    type=click.Path(),
    help="Replay with this plan.",
)
@click.option(
    "--policy", metavar="FILE", type=click.Path(), default="", help="Replay under this policy, too."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def replay(run: str, *, plan: str, policy: str, as_json: bool) -> int:
    """Replay RUN (default: the newest) with the real scheduler, from its records alone; nothing runs or is written.

    Without options: whether the scheduler repeats the ledger, event by event. With --plan or --policy: how each step
    would have ended, by the recorded results. A step that never ran, or changed, is assumed to complete; a step that
    depends on unknown values is shown as unknown.

    \b
    Examples:
      planrun replay last
      planrun replay 20260131-09 --plan plan.yml
      planrun replay last --policy ci/policy.yml --json
    """
    inspected = read_run(run)
    if plan or policy:
        edited = load(plan, cache=False) if plan else None
        result = what_if(inspected.state, inspected.rundir, edited, policy)
        if as_json:
            say_json(_what_if_data(inspected, result))
        else:
            say("\n".join(_what_if_text(inspected, result)))
        return 0
    again = replay_run(inspected.rundir, inspected.reading, inspected.state.versions)
    if as_json:
        say_json(_again_data(inspected, again))
    else:
        say("\n".join(_again(inspected, again)))
    return 0


def _again(inspected: Inspected, again: ReplayResult) -> Iterator[str]:
    events = f"{again.played} event{'' if again.played == 1 else 's'}"
    yield from [f"{line(note)}" for note in again.missing]
    if not again.differences:
        outside = f"{again.outside} came from outside of the scheduler"
        yield f"{inspected.run}: {events} replayed, identical to the record; {outside}"
        return
    yield f"{inspected.run}: differs from the record; {events} are identical"
    for difference in again.differences[:_SHOWN]:
        yield f"  line {difference.line}"
        yield f"    recorded: {line(_event(difference.recorded), 300)}"
        yield f"    replayed: {line(_event(difference.replayed), 300)}"


def _event(event: Any) -> str:
    return f"{NAMES[type(event)]} {dumps(comparable(event))}" if event is not None else "no event"


def _again_data(inspected: Inspected, again: ReplayResult) -> dict[str, Any]:
    def data(event: Any) -> dict[str, Any] | None:
        return {"type": NAMES[type(event)], **comparable(event)} if event is not None else None

    return {
        "run": inspected.run,
        "same": not again.differences,
        "events": {"played": again.played, "outside": again.outside},
        "notes": list(again.missing),
        "differences": [
            {"line": each.line, "recorded": data(each.recorded), "replayed": data(each.replayed)}
            for each in again.differences
        ],
    }


def _what_if_text(inspected: Inspected, result: WhatIfResult) -> Iterator[str]:
    rows = [row for row in result.rows if row.differs]
    if rows:
        yield table(
            ("Step", "Recorded", "Would have been", "Why"),
            [(line(row.step), _then(row), _would(row), line(row.why, 200)) for row in rows],
        )
    same = len(result.rows) - len(rows)
    yield f"{same} step{'' if same == 1 else 's'} as recorded" + ("" if rows else ": no differences")
    yield ""
    state = inspected.state
    then = state.ended.verdict if state.ended else state.status
    yield f"recorded: {then}, exit code {_code(state.exit_status)}"
    yield f"would be: {_verdict(result)}, after about {seconds(result.seconds)}"
    if any(row.is_assumed for row in result.rows):
        yield "assumed: steps without a recorded result complete"


def _verdict(result: WhatIfResult) -> str:
    if any(row.is_unknown for row in result.rows):
        return "unknown until run"
    if result.verdict is None:
        waits = f" for {names(result.waits_for)}" if result.waits_for else ""
        return f"waiting{waits}, exit code {_code(result.exit_code)}"
    return f"{result.verdict}, exit code {_code(result.exit_code)}"


def _code(code: int | None) -> str:
    return "none" if code is None else str(code)


def _then(row: Row) -> str:
    return _end_text(row.recorded, row.recorded_reason, row.recorded_s) if row.recorded else "not in the plan"


def _would(row: Row) -> str:
    if row.is_unknown:
        return "unknown until run"
    if not row.replayed:
        return "removed"
    assumed = ", assumed" if row.is_assumed else ""
    return _end_text(row.replayed, row.replayed_reason, row.replayed_s) + assumed


def _end_text(status: str, reason: str, took: float) -> str:
    why = f" ({reason.replace('_', ' ')})" if reason and reason != "ran" else ""
    return f"{status}{why}" + (f" {seconds(took)}" if took else "")


def _what_if_data(inspected: Inspected, result: WhatIfResult) -> dict[str, Any]:
    state = inspected.state
    return {
        "run": inspected.run,
        "recorded": {"verdict": state.ended.verdict if state.ended else None, "exit_code": state.exit_status},
        "replayed": {
            "verdict": result.verdict,
            "exit_code": result.exit_code,
            "duration_s": round(result.seconds, 3),
            "waits_for": list(result.waits_for),
            "assumed": any(row.is_assumed for row in result.rows),
            "unknown": any(row.is_unknown for row in result.rows),
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
            for row in result.rows
        ],
    }


def _end(status: str, reason: str, took: float) -> dict[str, Any] | None:
    return {"status": status, "reason": reason, "duration_s": round(took, 4)} if status else None
