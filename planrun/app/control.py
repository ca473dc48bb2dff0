"""Control a run from another shell: cancel it, pause it, or answer its gates.

An active run gets a signal, or the answers through its control socket. For an inactive run, its ledger is written here.
"""

from __future__ import annotations

import _signal  # and not `signal`, whose enums the executors do not use
import os
import time

from planrun.app.ending import Recorder, record_end
from planrun.app.inspect import find, inspect
from planrun.app.resume import reopen
from planrun.app.session import Session
from planrun.app.summaries import before_answers
from planrun.approval.control import ControlSocketUnavailable, notify, refuse_steps, remove
from planrun.approval.responses import events_of, waiting
from planrun.errors import EXIT_DENIED, InvalidInput
from planrun.executors.scan import signal_exactly, start_time
from planrun.executors.tree import HAS_PROC
from planrun.executors.wait import PAUSING
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.opening import open_record
from planrun.records import rundir as records
from planrun.records.lock import WorkspaceHeld, holder
from planrun.records.reading import read_ledger
from planrun.reports.gates import open_gates
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.approval.responses import Reply
    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.state import RunState
    from planrun.records.ledger import Ledger
    from planrun.records.lock import Holder
    from planrun.settings import Settings

    Report = Callable[[str], object]


AT_REST = ("paused", "awaiting approval")
"""The statuses of a run that has no process and no end."""
PAUSE = 0.05
"""Seconds between two checks of the workspace: a lock sends no notification when it is free."""


class Ended(Record):
    """A run and its status: a verdict, `paused`, or `unfinished` when its process died."""

    run: str
    status: str


def cancel(run: str, settings: Settings, report: Report, *, now: bool = False) -> Ended:
    """Cancel a run as Ctrl-C does, and wait for its end; `now` gives its steps no time to end by themselves.

    For a paused run, or one that awaits its approval, the end is recorded and the reports are written here. Raises
    InvalidInput for a run that is not active, or is active on another host.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    process = worker(name)
    if process is None:
        if _status(rundir) not in AT_REST:
            raise InvalidInput(_idle(name, _status(rundir)))
        with Session(settings, current_folder()) as session:
            rundir, reading, state = reopen(session, name)
            if state.status not in ("paused", "awaiting_approval"):
                raise InvalidInput(_idle(name, _status(rundir)))
            session.prepare_reports()
            ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
            record_end(state, _recorder(session, state, ledger), message=ev.BY_COMMAND)
            close(session, state, rundir, ledger)
        return Ended(run=name, status="cancelled")
    size = os.path.getsize(os.path.join(rundir, records.LEDGER))
    note = os.path.join(rundir, records.CANCEL)
    with open(note, "w", encoding="ascii") as file:
        file.write(str(process.pid))
    try:
        _send(process, _signal.SIGTERM)
        report(f"run {name}: process {process.pid} is cancelling")
        if now:
            _wait(process, lambda: _is_ending(rundir, size))
            _send(process, _signal.SIGTERM)
        _wait(process)
    finally:
        os.unlink(note)
    return Ended(run=name, status=_status(rundir))


def pause(run: str, report: Report) -> Ended:
    """Have a run start no more steps, and wait until the running ones have ended.

    Raises InvalidInput for a run that is not active, or is active on another host.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    process = worker(name)
    if process is None:
        raise InvalidInput(_idle(name, _status(rundir)))
    _send(process, PAUSING)
    report(f"run {name}: process {process.pid} is pausing: it waits for running steps")
    _wait(process)
    return Ended(run=name, status=_status(rundir))


def worker(run: str) -> Holder | None:
    """Return the process of a run; raises InvalidInput when it is on another host."""
    current = holder("")
    if current is None or current.run != run:
        return None
    if not current.is_here:
        raise InvalidInput(
            f"process {current.pid} on {current.host} executes the run {run}: use this command there"
        )
    return current


def _send(process: Holder, signum: int) -> None:
    """Signal the process, but no other that may have got its pid, and none that has released the run."""
    started = start_time(process.pid)
    if holder("") != process:
        return
    try:
        os.kill(process.pid, 0)
    except PermissionError:
        raise InvalidInput(f"process {process.pid} of the run belongs to another user") from None
    except ProcessLookupError:
        return
    signal_exactly(process.pid, started, signum)


def _wait(process: Holder, over: Callable[[], bool] = lambda: False) -> None:
    """Wait until the process releases the workspace, or `over` returns True."""
    while holder("") == process and not over():
        time.sleep(PAUSE)


def _is_ending(rundir: str, size: int) -> bool:
    """Return whether a run has recorded its cancellation after the first `size` bytes."""
    with open(open_record(os.path.join(rundir, records.LEDGER)), "rb") as file:
        file.seek(size)
        return b'"type":"run_ending"' in file.read()


def _status(rundir: str) -> str:
    """Return the status of a run that has no process any more."""
    last = before_answers(read_ledger(os.path.join(rundir, records.LEDGER)).events)
    if isinstance(last, ev.RunEnded):
        return last.verdict
    if isinstance(last, ev.GateOpened) and not last.step:
        return "awaiting approval"
    return "paused" if isinstance(last, ev.PlanMoved) and last.status == "paused" else "unfinished"


def _idle(run: str, status: str) -> str:
    """Return why a run without a process cannot be stopped."""
    if status == "unfinished":
        return f"the run {run} is not running: it was killed; to continue: planrun resume {run}"
    if status in AT_REST:
        return f"the run {run} is {status} already; to continue: planrun resume {run}"
    return f"the run {run} is not running: it ended {status}"


def close(session: Session, state: RunState, rundir: str, ledger: Ledger) -> None:
    """Close the ledger of an inactive run, and write its reports; raises RecordsLost."""
    ledger.close()
    _, unwritten = session.report(state, rundir, ledger.head)
    lost = ledger.lost or unwritten
    if lost:
        raise lost


def _recorder(session: Session, state: RunState, ledger: Ledger) -> Recorder:
    return Recorder(
        record=lambda event: session.record(state, ledger, event),
        records=lambda: ledger.records,
        stamp=session.clock.stamp,
    )


# Seconds for a stopping run to write its reports. Without /proc there is no socket, and the user waits for this long.
_PATIENCE = 15.0 if HAS_PROC else 2.0


class Recorded(Record):
    """The outcome of a reply: recorded answers, gates that are still open, and whether the run is active.

    `status`: of the plan, as in the lifecycle.
    """

    run: str
    answers: tuple[GateAnswered, ...]
    waiting: tuple[GateOpened, ...]
    status: str
    live: bool


def answer(run: str, reply: Reply, settings: Settings) -> Recorded:
    """Answer gates of a run; returns when the answers are in its ledger.

    Raises InvalidInput when the reply matches no open gate, Denied inside of a step, RecordsLost.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    refuse_steps("answer gates: answer from another shell, or by an option of `execute`")
    limit = time.monotonic() + _PATIENCE
    while True:
        try:
            if worker(name) is None:
                return _record(name, reply, settings)
            inspected = inspect(os.path.basename(rundir))
            if not open_gates(inspected.state):
                raise InvalidInput(f"the run {inspected.run} is active, and {waiting(inspected.state)}")
            answers = notify(rundir, reply)
            return _recorded(inspected.run, answers, inspect(inspected.run).state, live=True)
        except (ControlSocketUnavailable, WorkspaceHeld) as error:
            # It may be stopping, or handling another answer; then its ledger can be written here.
            other = holder("")
            if time.monotonic() > limit or (other is not None and other.run != name):
                reason, _, _ways = str(error).partition("\n")  # the ways on are those of a run
                raise InvalidInput(reason) from None
            time.sleep(PAUSE)


def _record(run: str, reply: Reply, settings: Settings) -> Recorded:
    """Record the answers in the ledger of an inactive run, and rewrite its reports."""
    with Session(settings, current_folder()) as session:
        rundir, reading, state = reopen(session, run)
        remove(rundir)
        answers = events_of(reply, state, session.clock.stamp())
        if session.secrets:
            session.secrets.refuse_answers({event.step: event.answer for event in answers})
        session.prepare_reports()
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        for event in answers:
            session.record(state, ledger, event)
            if event.step in reply.skip:
                message = f"left out by {event.by}" + (f": {event.reason}" if event.reason else "")
                skipped = ev.StepMoved(
                    at=event.at, step=event.step, status="skipped", reason="approval", message=message
                )
                session.record(state, ledger, skipped)
        if any(not event.step and event.answer == "rejected" for event in answers):
            record_end(state, _recorder(session, state, ledger), EXIT_DENIED)
        close(session, state, rundir, ledger)
    return _recorded(run, tuple(answers), state, live=False)


def _recorded(run: str, answers: tuple[GateAnswered, ...], state: RunState, *, live: bool) -> Recorded:
    return Recorded(
        run=run, answers=answers, waiting=tuple(open_gates(state)), status=state.status, live=live
    )
