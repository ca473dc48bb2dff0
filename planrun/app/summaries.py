"""What a list says of a run: a fold of its events, without its plan, whose loading would cost more than the rest."""

from __future__ import annotations

from planrun.clock import between
from planrun.model import events as ev
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.records.reading import Reading


class Row(Record):
    """One run in a list.

    `status`: verdict, else running, waiting, paused, unfinished, torn, altered, truncated, newer,
    unreadable.
    """

    run: str
    status: str
    plan: str = ""
    file: str = ""
    started_at: str = ""
    duration: float | None = None
    exit_code: int | None = None
    failed: tuple[str, ...] = ()
    waiting: tuple[tuple[str, str], ...] = ()  # step and kind of each open gate; no step: the whole plan
    detail: str = ""


def summarized(name: str, reading: Reading, condition: str) -> Row:
    """Fold the events into a row, without the plan: loading it would cost more than the rest."""
    failed: dict[str, None] = {}
    asked = _asked(reading.events)
    ended: ev.RunEnded | None = None
    plan: dict[str, Any] = {}
    earlier, began, last = (
        0.0,
        "",
        "",
    )  # seconds of the sessions before, and the first and last moment of this one
    for event in reading.events:
        if isinstance(event, ev.RunStarted | ev.RunResumed):
            earlier += max(0.0, between(began, last)) if began else 0.0
            began = event.at
        last = event.at
        if isinstance(event, ev.AttemptEnded | ev.StepMoved):
            status = event.step_status if isinstance(event, ev.AttemptEnded) else event.status
            if status == "failed":
                failed[event.step] = None
        elif isinstance(event, ev.RunStarted):
            plan = event.plan
        elif isinstance(event, ev.RunResumed):
            ended, plan = None, event.plan
            for step in event.rerun:
                failed.pop(step, None)
        elif isinstance(event, ev.RunEnded):
            ended = event
    first = reading.events[0] if reading.events else None
    if not isinstance(first, ev.RunStarted):
        return Row(run=name, status=condition, detail=reading.detail)
    return Row(
        run=name,
        status=str(ended.verdict) if ended and reading.condition == "intact" else condition,
        plan=str(plan["name"]),
        file=str(plan["file"]),
        started_at=str(first.at),
        duration=earlier + float(ended.duration) if ended else None,
        exit_code=int(ended.exit_code) if ended else None,
        failed=tuple(failed),
        waiting=tuple(asked.items()) if ended is None else (),
        detail=reading.detail if reading.condition not in ("intact", "unfinished") else "",
    )


def resting_status(reading: Reading) -> str:
    """Return the status of an inactive run without an end: `waiting` for an answer, `paused`, or ""."""
    last = before_answers(reading.events)
    awaits = isinstance(last, ev.GateOpened) and not last.step
    if reading.condition != "unfinished" or not (
        awaits or (isinstance(last, ev.PlanMoved) and last.status == "paused")
    ):
        return ""
    return "waiting" if _asked(reading.events) else "paused"


def _asked(events: Sequence[ev.Event]) -> dict[str, str]:
    """Return the open gates: kind by step."""
    asked: dict[str, str] = {}
    for event in events:
        if isinstance(event, ev.GateOpened):
            asked[event.step] = event.kind
        elif asked and isinstance(event, ev.GateAnswered | ev.StepMoved):
            asked.pop(event.step, None)
    return asked


def before_answers(events: Sequence[ev.Event]) -> ev.Event | None:
    """Return the last event of a run, without answers that were given to the inactive run and their results."""
    for event in reversed(events):
        left_out = isinstance(event, ev.StepMoved) and event.reason == "approval"
        by_person = isinstance(event, ev.AgentNoted) and not event.step
        if not (left_out or by_person or isinstance(event, ev.GateAnswered)):
            return event
    return None
