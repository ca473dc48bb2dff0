"""Read runs from their records: finished, active, killed, torn or altered."""

from __future__ import annotations

import os

from planrun.app.copies import state_of
from planrun.app.run import secrets_of
from planrun.errors import InternalError, InvalidInput, RecordsLost
from planrun.executors.logs import recover
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.records import rundir as finding
from planrun.records.lock import holder
from planrun.records.reading import read_ledger
from planrun.records.rundir import HOME, LEDGER
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.records.reading import Reading

# Errors that an invalid ledger causes in code that trusts it; the user gets one message for all.
_MISFITS = (InternalError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class Inspected(Record):
    """A run read from its records: folder, condition of the ledger, and state."""

    rundir: str
    reading: Reading
    state: RunState
    is_active: bool  # a process executes it

    @property
    def run(self) -> str:
        """The id of the run."""
        return os.path.basename(self.rundir)


class Row(Record):
    """One run in a list.

    `status`: verdict, else running, waiting, paused, unfinished, torn, altered, truncated, unreadable.
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


def is_plan(name: str) -> bool:
    """Return whether a word names a plan and not a run: a path, a YAML file, or an existing file."""
    return "/" in name or name.endswith((".yml", ".yaml")) or os.path.exists(name)


def find(run: str, workspace: str = "") -> str:
    """Return the folder of a run in a workspace, default: this folder; raises InvalidInput."""
    try:
        return finding.find(workspace or os.getcwd(), run)
    except OSError as error:
        raise InvalidInput(f"cannot read the runs of this folder: {error.strerror}") from None
    except InvalidInput:
        _refuse_without_ledger(run, os.path.join(workspace, HOME, "runs"))
        raise


def _refuse_without_ledger(run: str, folder: str) -> None:
    """Raise InvalidInput when the matching runs exist, as a list shows them, and have no ledger."""
    known = known_runs(folder)
    meant = known[:1] if run == "last" else [name for name in known if run and name.startswith(run)]
    bare = [name for name in meant if not os.path.exists(os.path.join(folder, name, LEDGER))]
    if bare and bare == meant:
        raise InvalidInput(
            f"the run {bare[0]} has no {LEDGER}: it ended before it started, or the ledger was removed"
        )


def known_runs(folder: str = os.path.join(HOME, "runs")) -> list[str]:
    """Return the names of all run folders in this workspace, newest first; raises InvalidInput."""
    try:
        return sorted(os.listdir(folder), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"cannot read the runs of this folder: {error.strerror}") from None


def read(run: str, head: str = "") -> tuple[str, Reading]:
    """Return folder and ledger of a run; raises InvalidInput."""
    rundir = find(run)
    return rundir, _beside_its_writer(rundir, head)[0]


def read_beside(run: str) -> tuple[Reading, bool]:
    """Return the ledger of a run and whether the run is active; raises InvalidInput."""
    return _beside_its_writer(find(run))


def _beside_its_writer(rundir: str, head: str = "") -> tuple[Reading, bool]:
    """Return a run's ledger and whether the run is active; raises InvalidInput.

    A partial last line of an active run is being written, so its ledger is not torn.
    """
    path = os.path.join(rundir, LEDGER)
    reading = read_ledger(path, head)
    if reading.condition not in ("unfinished", "torn"):
        return reading, _is_active(os.path.basename(rundir), reading)
    if not _is_active(os.path.basename(rundir), reading):
        # It may have ended since the read; it wrote its end before it released the workspace.
        return read_ledger(path, head), False
    return reading.but(condition="unfinished", detail="the run has no end", line=0), True


def changed_logs(rundir: str, reading: Reading) -> list[str]:
    """Return a problem for each log of an ended attempt that is missing, or differs from the record."""
    logs: dict[tuple[str, int], str] = {}
    ends: dict[str, ev.AttemptEnded] = {}
    for event in reading.events:
        if isinstance(event, ev.AttemptStarted) and event.log:
            logs[event.step, event.n] = event.log
        elif isinstance(event, ev.AttemptEnded) and (event.step, event.n) in logs:
            ends[logs[event.step, event.n]] = event
    return [
        f"{log} {why}" for log, end in ends.items() if end.log_bytes and (why := _changed(rundir, log, end))
    ]


def _changed(rundir: str, log: str, end: ev.AttemptEnded) -> str:
    path = os.path.join(rundir, log)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != end.log_bytes:
                return f"has {size:,} bytes, and the ledger says {end.log_bytes:,}"
            if end.log_sha256 and sha256(file.read()).hexdigest() != end.log_sha256:
                return "differs from the record of its attempt"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def inspect(run: str) -> Inspected:
    """Return a run with its state from the intact part of its ledger; raises InvalidInput, InvalidPlan.

    Recovers the logs of the last attempts of a killed run.
    """
    found = read_run(run, cache=True)
    if not found.is_active and found.reading.condition != "intact":
        _show_logs(found.rundir)
    return found


def read_run(run: str, *, cache: bool = False) -> Inspected:
    """Return a run like `inspect`, without any change on disk."""
    rundir = find(run)
    reading, is_active = _beside_its_writer(rundir)
    try:
        state = state_of(rundir, reading, _shown, cache=cache)
    except _MISFITS:
        raise InvalidInput(f"the ledger does not fit the run's plan: {rundir}") from None
    return Inspected(rundir=rundir, reading=reading, state=state, is_active=is_active)


def _shown(plan: Plan) -> Plan:
    """Return a plan with the known values of its secrets masked."""
    secrets = secrets_of(plan)
    return secrets.masked(plan) if secrets else plan


def _show_logs(rundir: str) -> None:
    """Recover the logs of a killed run's last attempts; a full disk is ignored."""
    try:
        recover(os.path.join(rundir, "logs"))
    except RecordsLost:
        return


def listing(names: Iterable[str]) -> list[Row]:
    """Return a row for each run; also for one that cannot be read."""
    return [_row(name) for name in names]


def _row(name: str) -> Row:
    rundir = os.path.join(HOME, "runs", name)
    try:
        reading, is_active = _beside_its_writer(rundir)
        condition = resting_status(reading) or reading.condition
        return _summary(name, reading, "running" if is_active else condition)
    except InvalidInput as error:
        return Row(run=name, status="unreadable", detail=str(error))
    except _MISFITS:
        return Row(run=name, status="unreadable", detail=f"not a ledger: {rundir}/{LEDGER}")


def _summary(name: str, reading: Reading, condition: str) -> Row:
    """Fold the events into a row, without the plan: loading it would cost more than the rest."""
    failed: dict[str, None] = {}
    asked = _asked(reading.events)
    ended: ev.RunEnded | None = None
    plan: dict[str, Any] = {}
    for event in reading.events:
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
        duration=float(ended.duration) if ended else None,
        exit_code=int(ended.exit_code) if ended else None,
        failed=tuple(failed),
        waiting=tuple(asked.items()) if ended is None else (),
        detail=reading.detail if reading.condition not in ("intact", "unfinished") else "",
    )


def _is_active(run: str, reading: Reading) -> bool:
    """Return whether a process executes a run now: it holds the workspace for this run."""
    if reading.condition == "intact":
        return False
    current = holder("")
    return current is not None and current.run == run


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
        if not (left_out or isinstance(event, ev.GateAnswered)):
            return event
    return None
