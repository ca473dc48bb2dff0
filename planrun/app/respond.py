"""Answer the gates of a run from another shell: by the process that works on it, or in its ledger when none does."""

from __future__ import annotations

import os
import time

from planrun.app import stop
from planrun.app.inspect import find, inspect
from planrun.app.resume import reopen
from planrun.app.session import Session
from planrun.approval.control import Deaf, knock, refuse_steps, remove
from planrun.approval.responses import events_of, waiting
from planrun.errors import EXIT_DENIED, InvalidInput
from planrun.executors.tree import HAS_PROC
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.records import rundir as records
from planrun.records.lock import WorkspaceHeld, holder
from planrun.reports.gates import open_gates
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.approval.responses import Reply
    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.state import RunState
    from planrun.settings import Settings


# Seconds for a run that comes to rest to write its reports; where no run can be told, somebody waits for the answer.
_PATIENCE = 15.0 if HAS_PROC else 2.0


class Recorded(Record):
    """What came of a reply: the answers on record, what still waits, and whether a process works on the run.

    `status`: of the plan, as in the lifecycle.
    """

    run: str
    answers: tuple[GateAnswered, ...]
    waiting: tuple[GateOpened, ...]
    status: str
    live: bool


def answer(run: str, reply: Reply, settings: Settings) -> Recorded:
    """Answer gates of a run; returns when the answers are in its ledger.

    Raises InvalidInput when the reply fits nothing that waits, Denied inside of a step, RecordsLost.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    refuse_steps("answer gates: answer from another shell, or by an option of `execute`")
    limit = time.monotonic() + _PATIENCE
    while True:
        try:
            if stop.worker(name) is None:
                return _record(name, reply, settings)
            return _tell(rundir, reply)
        except (Deaf, WorkspaceHeld) as error:
            # It may be coming to rest, or take another answer, and then its ledger is open to us.
            other = holder("")
            if time.monotonic() > limit or (other is not None and other.run != name):
                raise InvalidInput(str(error)) from None
            time.sleep(stop.PAUSE)


def _record(run: str, reply: Reply, settings: Settings) -> Recorded:
    """Record the answers in the ledger of a run that nobody works on, and write its reports anew."""
    with Session(settings, current_folder()) as session:
        rundir, reading, state = reopen(session, run)
        remove(rundir)
        answers = events_of(reply, state, session.clock.stamp())
        if session.vault:
            session.vault.refuse_answers({event.step: event.answer for event in answers})
        session.prepare_reports()
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        for event in answers:
            session.record(state, ledger, event)
            if event.step in reply.skip:
                session.record(state, ledger, _left_out(event))
        if any(not event.step and event.answer == "rejected" for event in answers):
            stop.record_end(session, state, ledger, EXIT_DENIED)
        stop.close(session, state, rundir, ledger)
    return _recorded(run, tuple(answers), state, live=False)


def _left_out(event: GateAnswered) -> ev.StepMoved:
    message = f"left out by {event.by}" + (f": {event.reason}" if event.reason else "")
    return ev.StepMoved(at=event.at, step=event.step, status="skipped", reason="approval", message=message)


def _tell(rundir: str, reply: Reply) -> Recorded:
    """Bring a reply to the process that works on the run; raises Deaf when it does not listen."""
    inspected = inspect(os.path.basename(rundir))
    if not open_gates(inspected.state):
        raise InvalidInput(f"the run {inspected.run} goes on, and {waiting(inspected.state)}")
    answers = knock(rundir, reply)
    return _recorded(inspected.run, answers, inspect(inspected.run).state, live=True)


def _recorded(run: str, answers: tuple[GateAnswered, ...], state: RunState, *, live: bool) -> Recorded:
    return Recorded(
        run=run, answers=answers, waiting=tuple(open_gates(state)), status=state.status, live=live
    )
