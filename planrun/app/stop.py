"""End or pause a run from another shell, by the process that works on it; and end one that nobody works on."""

from __future__ import annotations

# `_signal` and not `signal`, as in the executors: these are the numbers that they listen to.
import _signal
import os
import time

from planrun.app.inspect import before_answers, find
from planrun.app.resume import reopen
from planrun.app.session import Session
from planrun.errors import InvalidInput
from planrun.executors.scan import signal_exactly, start_time
from planrun.executors.wait import PAUSING
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.records import rundir as records
from planrun.records.lock import holder
from planrun.records.reading import read_ledger
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.state import RunState
    from planrun.records.ledger import Ledger
    from planrun.records.lock import Holder
    from planrun.settings import Settings

    Say = Callable[[str], object]

AT_REST = ("paused", "awaiting approval")
"""What became of a run that no process works on, and that has no end either."""
PAUSE = 0.05
"""Seconds between two looks at the workspace: a lock tells nobody that it is free."""


class Ended(Record):
    """A run and what became of it: a verdict, `paused`, or `unfinished` when its process died."""

    run: str
    status: str


def cancel(run: str, settings: Settings, say: Say, *, now: bool = False) -> Ended:
    """Cancel a run as Ctrl-C does, and wait for its end; with `now` its steps get no time to end by themselves.

    A run at rest (paused, or waiting for its approval), which no process works on, gets its end recorded and its
    reports written here. Raises InvalidInput for a run that does not go on, or goes on elsewhere.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    found = worker(name)
    if found is None:
        if _status(rundir) not in AT_REST:
            raise InvalidInput(_idle(name, _status(rundir)))
        return _cancel_resting(name, settings)
    size = os.path.getsize(os.path.join(rundir, records.LEDGER))
    _send(found, _signal.SIGTERM)
    say(f"run {name}: process {found.pid} was told to cancel")
    if now:
        _wait(found, lambda: _is_ending(rundir, size))
        _send(found, _signal.SIGTERM)
    _wait(found)
    return Ended(run=name, status=_status(rundir))


def pause(run: str, say: Say) -> Ended:
    """Have a run start nothing more, and wait until what runs has ended.

    Raises InvalidInput for a run that does not go on, or goes on elsewhere.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    found = worker(name)
    if found is None:
        raise InvalidInput(_idle(name, _status(rundir)))
    _send(found, PAUSING)
    say(f"run {name}: process {found.pid} was told to pause; it waits for what runs")
    _wait(found)
    return Ended(run=name, status=_status(rundir))


def worker(run: str) -> Holder | None:
    """Return the process that works on a run; raises InvalidInput when that is out of reach."""
    found = holder("")
    if found is None or found.run != run:
        return None
    if not found.is_here:
        raise InvalidInput(
            f"process {found.pid} on {found.host} works on the run {run}: it has to be told there"
        )
    return found


def _send(found: Holder, signum: int) -> None:
    """Signal the process, and no other that may have got its number; one that let go of the run is left alone."""
    born = start_time(found.pid)
    if holder("") != found:
        return
    try:
        os.kill(found.pid, 0)
    except PermissionError:
        raise InvalidInput(f"process {found.pid}, which works on the run, belongs to somebody else") from None
    except ProcessLookupError:
        return
    signal_exactly(found.pid, born, signum)


def _wait(found: Holder, over: Callable[[], bool] = lambda: False) -> None:
    """Wait until the process let go of the workspace, or `over` says that it is enough."""
    while holder("") == found and not over():
        time.sleep(PAUSE)


def _is_ending(rundir: str, size: int) -> bool:
    """Say whether a run has recorded, behind the first `size` bytes, that it is being cancelled."""
    with open(os.path.join(rundir, records.LEDGER), "rb") as file:
        file.seek(size)
        return b'"type":"run_ending"' in file.read()


def _status(rundir: str) -> str:
    """What became of a run that no process works on any more."""
    last = before_answers(read_ledger(os.path.join(rundir, records.LEDGER)).events)
    if isinstance(last, ev.RunEnded):
        return last.verdict
    if isinstance(last, ev.GateOpened) and not last.step:
        return "awaiting approval"
    return "paused" if isinstance(last, ev.PlanMoved) and last.status == "paused" else "unfinished"


def _idle(run: str, status: str) -> str:
    """Why a run that no process works on cannot be stopped."""
    if status == "unfinished":
        return f"the run {run} is not running: it was killed; planrun resume {run} goes on"
    if status in AT_REST:
        return f"the run {run} is {status} already; planrun resume {run} goes on"
    return f"the run {run} is not running: it ended {status}"


def _cancel_resting(run: str, settings: Settings) -> Ended:
    with Session(settings, current_folder()) as session:
        rundir, reading, state = reopen(session, run)
        if state.status not in ("paused", "awaiting_approval"):
            raise InvalidInput(_idle(run, _status(rundir)))
        session.prepare_reports()
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        record_end(session, state, ledger)
        close(session, state, rundir, ledger)
    return Ended(run=run, status="cancelled")


def close(session: Session, state: RunState, rundir: str, ledger: Ledger) -> None:
    """Close the ledger of a run that nobody works on, and write its reports; raises RecordsLost."""
    ledger.close()
    _, unwritten = session.report(state, rundir, ledger.head)
    lost = ledger.lost or unwritten
    if lost:
        raise lost


def record_end(session: Session, state: RunState, ledger: Ledger, code: int | None = None) -> None:
    """Record that a run at rest is cancelled, as the engine does for one that goes on; `code`: its exit code."""
    at = session.clock.stamp()
    session.record(state, ledger, ev.RunEnding(at=at, why="cancel"))
    for name, step in state.steps.items():
        if not step.ended:
            moved = ev.StepMoved(at=at, step=name, status="cancelled", reason="cancelled")
            session.record(state, ledger, moved)
    verdict = state.verdict()
    ended = ev.RunEnded(
        at=at,
        status=verdict,
        verdict=verdict,
        exit_code=state.exit_code(verdict, strict=False, fail_on_flaky=False) if code is None else code,
        duration=0.0,
        summary=state.summary(),
        events=ledger.records + 1,
    )
    session.record(state, ledger, ended)
