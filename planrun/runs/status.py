"""The work of `planrun status`: the progress of a run, the next steps, and what blocks the others."""

from __future__ import annotations

from planrun.app.inspect import inspect
from planrun.app.rerun import refusal
from planrun.app.run_status import elapsed, metrics, next_steps, said, status_of, why
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, speaks_unicode
from planrun.model.rollback import owes
from planrun.records.reading import BROKEN
from planrun.reports import closing, facts, gates
from planrun.reports import models as usage
from planrun.reports.escape import line
from planrun.reports.extras import pending, round_line, rounds_data
from planrun.reports.facts import step_line
from planrun.reports.models import totals_line
from planrun.reports.policies import any_gate, asked, grounds, waits_for
from planrun.reports.reasons import roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.model.state import RunState


def print_status(run: str, *, as_json: bool) -> None:
    """Print the progress of a run; raises InvalidInput."""
    inspected = inspect(run)
    if as_json:
        say_json(as_data(inspected))
    else:
        say("\n".join(_panel(inspected)))


def _panel(inspected: Inspected) -> Iterator[str]:
    state = inspected.state
    plan = state.plan
    word = status_of(inspected).capitalize()
    yield f'Plan v{plan.version}: "{line(plan.title or plan.name)}" [{word}]'
    figures = metrics(inspected) if inspected.is_active else None
    left = ""
    if figures and figures.eta:
        left = f", {'about' if figures.eta_known else 'at least'} {facts.seconds(figures.eta)} to go"
    yield f"{bar(state)}  run {inspected.run}, {facts.seconds(elapsed(inspected))}{left}"
    if inspected.reading.condition in BROKEN:
        yield f"the ledger is {inspected.reading.condition}: {inspected.reading.detail}"
    if state.planning is not None:
        yield f"language model: {totals_line(state)}"
    if state.rounds:
        yield round_line(state.rounds[-1])
    yield ""
    icons = facts.ICONS if speaks_unicode() else facts.ASCII_ICONS
    labels = facts.labels(state)
    progress_of = said(inspected)
    for step in state.steps.values():
        row = step_line(step, icons, labels=labels)
        yield row
        if step.status == "failed":
            yield f"    {closing.place(state, step)}: {closing.reason(step)}"
        if step.step.id in progress_of:
            share, message = progress_of[step.step.id]
            yield f"    {share:.0%} {printable(message)}".rstrip()
        said_why = [printable(" ".join(reason.split())) for reason in why(inspected, step)]
        yield from [
            f"    {reason}" for reason in said_why if not row.endswith((f": {reason})", f"({reason})"))
        ]
    yield from _at_rest(inspected)
    coming = next_steps(state)
    if coming and not state.ended:
        yield f"\nnext: {', '.join(coming[:5])}" + (f" and {len(coming) - 5} more" if len(coming) > 5 else "")


def _at_rest(inspected: Inspected) -> Iterator[str]:
    """Pending cleanup, open requests with the commands that answer them, and how to continue a stopped run."""
    state = inspected.state
    if not inspected.is_active and owes(state):
        yield f"\n{pending(state)}"
    asked = waiting(inspected)
    if asked:
        yield "\nwaiting for"
    for gate in asked:
        yield f"  {gate['told']}"
        yield from [f"    $ {command}" for command in gate["commands"]]
    if state.exit_status is not None and not state.ended and not inspected.is_active:
        yield (
            f"\nto continue once answered: planrun resume {inspected.run}"
            if asked
            else f"\n{facts.unended(state)}"
        )
    elif state.ended and state.status in ("failed", "cancelled"):
        yield f"\n{facts.to_continue(state)}"


def bar(state: RunState, width: int = 20) -> str:
    """Return `[######..............] 3/10`: steps that have ended, of all."""
    counted = state.counted()
    total = len(counted)
    ended = sum(step.ended for step in counted)
    full = width * ended // total if total else width
    return f"[{'#' * full}{'.' * (width - full)}] {ended}/{total}"


def blocks(state: RunState) -> dict[str, list[str]]:
    """Return the steps that are blocked because of each failed or cancelled step, in file order."""
    blocked: dict[str, list[str]] = {}
    for name, step in state.steps.items():
        if step.status == "blocked":
            for root in roots(state, step.step):
                blocked.setdefault(root.step.id, []).append(name)
    return blocked


def waiting(inspected: Inspected) -> list[dict[str, Any]]:
    """Return the open gates of a run as JSON data, each with its question and the commands that answer."""
    if not any_gate(inspected.state):
        return []
    return [
        {
            "step": opened.step or None,
            "told": f"{waits_for(opened)}: {asked(opened)}" + (f" {why}" if (why := grounds(opened)) else ""),
            "kind": opened.kind,
            "question": opened.question,
            "header": opened.header,
            "options": [option.get("value") for option in opened.options],
            "risk": opened.risk or None,
            "rule": opened.rule,
            "reason": opened.reason,
            "until": opened.until or None,
            "commands": gates.commands(inspected.state, opened),
        }
        for opened in gates.open_gates(inspected.state)
    ]


def models(state: RunState) -> dict[str, Any] | None:
    """Return the calls and usage of models as JSON data; None without a call."""
    planning = state.planning
    if planning is None:
        return None
    data = usage.as_data(state, planning)
    going = planning.going
    return {
        "planning": {"purpose": going.purpose, "steps": list(going.steps)} if going else None,
        "usage": usage.spent(state),
        **{name: data[name] for name in ("models", "budget", "crossed")},
        "calls": len(planning.calls),
    }


def as_data(inspected: Inspected) -> dict[str, Any]:
    """Return the progress of a run as JSON data: what `status --json` prints."""
    state = inspected.state
    plan = state.plan
    summary = state.summary()
    ended = sum(step.ended for step in state.counted())
    figures, reported, blocked = metrics(inspected), said(inspected), blocks(state)
    return {
        "run": inspected.run,
        "goal": plan.goal,
        "plan": {"name": plan.name, "version": plan.version, "digest": plan.digest, "file": plan.file},
        "status": status_of(inspected),
        "exit_code": state.exit_status,
        "started_at": state.started.at if state.started else None,
        "elapsed_s": round(elapsed(inspected), 3),
        "progress": {"ended": ended, "completed": summary["completed"], "total": summary["total"]},
        "metrics": {
            "completed_steps": figures.completed_steps,
            "total_steps": figures.total_steps,
            "percentage": figures.percentage,
            "current_step": figures.current_step or None,
            "average_step_duration_s": _rounded(figures.average_step_duration),
            "eta_s": _rounded(figures.eta if inspected.is_active else None),
            "eta_is_known": figures.eta_known if inspected.is_active else None,
        },
        "summary": summary,
        "llm": models(state),
        "rounds": rounds_data(state),
        "next": next_steps(state),
        "waiting": waiting(inspected),
        "steps": [
            {
                "id": name,
                "title": step.step.title,
                "status": step.status,
                "reason": step.reason,
                "attempts": len(step.attempts),
                "duration_s": round(facts.duration(step), 4),
                "resources": [
                    row
                    for attempt in step.attempts
                    for row in (attempt.ended.resources if attempt.ended else ())
                ],
                "progress": _reported(reported.get(name)),
                "because": why(inspected, step),
                "retryable": step.status == "failed" and not refusal(step),
                "blocks": blocked.get(name, []),
            }
            for name, step in state.steps.items()
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _reported(report: tuple[float, str] | None) -> dict[str, Any] | None:
    return {"share": report[0], "message": report[1]} if report else None
