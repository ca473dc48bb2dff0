"""The history of a workspace, made anew from its ledgers: what the ends of their runs would have left."""

from __future__ import annotations

import os

from planrun.app.settings import current_folder
from planrun.app.statistics.gathering import Gathering, Wanted
from planrun.model.plan import Plan
from planrun.records.history import RUNS, History, Past, path_of, write
from planrun.records.lock import WorkspaceLock
from planrun.records.rundir import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.statistics.traces import Trace


def rebuild() -> Iterator[str]:
    """Write the history of every plan that has runs in this folder; yields a line for each.

    Raises InvalidInput while a run has the workspace, RecordsLost when it cannot be written to.
    """
    workspace = current_folder()
    folder = home(workspace)
    lock = WorkspaceLock(folder)
    lock.acquire(f"run -, process {os.getpid()} on {os.uname().nodename}, since it makes the history anew")
    try:
        for plan, traces in _by_plan(workspace).items():
            history = History()
            for trace in traces:
                history = history.with_run(trace.run, pasts_of(trace))
            path = path_of(folder, _plan(*plan))
            if not write(path, history):
                yield f"{plan[0]}: its history cannot be written: {path}"
            else:
                yield f"{plan[0]}: {len(history.cells)} steps known from {len(history.runs)} runs"
    finally:
        lock.release()


def _by_plan(workspace: str) -> dict[tuple[str, str], list[Trace]]:
    """Return the newest runs of each plan that have an end, as its history remembers them."""
    found: dict[tuple[str, str], list[Trace]] = {}
    for _, trace in Gathering((workspace,)).traces(Wanted()):
        plan = (str(trace.plan["name"]), str(trace.plan["file"]))
        if trace.verdict and len(trace.steps) > 1 and len(found.setdefault(plan, [])) < RUNS:
            found[plan].append(trace)
    return found


def pasts_of(trace: Trace) -> dict[str, Past]:
    """Return what became of the steps of a run that ran to an end of their own."""
    return {
        name: Past(ending="flaky" if step.flaky else step.status, seconds=step.seconds)
        for name, step in trace.steps.items()
        if step.ran
    }


def _plan(name: str, file: str) -> Plan:
    return Plan(name=name, file=file, digest="", steps=())
