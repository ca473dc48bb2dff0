"""How a run stands now, running or not: its status, figures, what its steps wait for, and what comes next."""

from __future__ import annotations

import os
import time

from planrun.app.history import progress_forecast
from planrun.records import history
from planrun.reports import facts
from planrun.reports.causes import judgement
from planrun.reports.progress import progress
from planrun.reports.reasons import reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.inspect import Inspected
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.progress import Progress

# Statuses whose reasons are shown below the line of the step.
_EXPLAINED = frozenset({"blocked", "skipped", "cancelled"})
_TO_COME = frozenset({"pending", "waiting", "paused"})


def status_of(inspected: Inspected) -> str:
    """Return the verdict of a run that ended, else running, waiting, paused, or the condition of its ledger."""
    if inspected.state.ended and inspected.reading.condition == "intact":
        return inspected.state.ended.verdict
    if inspected.is_active:
        return "running"
    if inspected.reading.condition == "unfinished" and inspected.state.exit_status is not None:
        return "waiting" if facts.is_waiting(inspected.state) else "paused"
    return inspected.reading.condition


def elapsed(inspected: Inspected) -> float:
    """Return the seconds that a run took so far."""
    if inspected.is_active and inspected.state.started:
        return max(0.0, time.time() - facts.epoch(inspected.state.started.at))
    return facts.elapsed(inspected.state)


def next_steps(state: RunState) -> list[str]:
    """Return the steps that can start now or, when everything waits for what runs, the first that is to come."""
    pending = [
        step
        for step in state.steps.values()
        if step.status in _TO_COME and not (step.at_gate and step.asked is not None)
    ]
    # What cleans up has no edges to the others and comes after all of them.
    pending = [step for step in pending if step.step.section == "steps"] or pending
    ready = [
        step.step.id
        for step in pending
        if all(
            edge.on not in state.steps or judgement(state, edge) == "satisfied" for edge in step.step.edges
        )
    ]
    return ready or [step.step.id for step in pending[:1]]


def why(inspected: Inspected, step: StepState) -> list[str]:
    """Return in sentences what blocks or blocked a step; empty where its line is enough."""
    if step.held and step.status in _TO_COME:
        return [step.held] if inspected.is_active else []
    if (
        step.status in _EXPLAINED
        or step.at_gate
        or ((step.status in _TO_COME or step.status == "running") and step.step.edges)
    ):
        return (
            list(reasons(inspected.state, step, going=inspected.is_active))
            if step.status != "running"
            else []
        )
    return []


def metrics(inspected: Inspected) -> Progress:
    """Return the figures of a run as it is now: of a running one with its ETA."""
    state = inspected.state
    if not inspected.is_active:
        return progress(state, facts.epoch(state.started.at) + facts.elapsed(state) if state.started else 0.0)
    expected = history.estimates(
        history.path_of(os.path.dirname(os.path.dirname(inspected.rundir)), state.plan)
    )
    return progress(state, time.time(), progress_forecast(state, inspected.rundir, expected))


def said(inspected: Inspected) -> dict[str, tuple[float, str]]:
    """Return the progress that running steps report."""
    running = [
        name for name, step in inspected.state.steps.items() if step.status == "running" and step.attempts
    ]
    listen = (
        progress_forecast(inspected.state, inspected.rundir, {}).reported
        if inspected.is_active and running
        else None
    )
    return dict(listen(running)) if listen else {}
