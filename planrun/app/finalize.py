"""Finish the pending cleanup of an interrupted run: roll it back, run its `finally` steps, record its end."""

from __future__ import annotations

import os

from planrun import __version__
from planrun.app.engines import engine_of
from planrun.app.rerun import given_up, lost_attempts
from planrun.app.resume import policies_of, reopen
from planrun.app.run import admission_of, scheduler_options, with_ceilings
from planrun.app.selection import select
from planrun.app.session import Session
from planrun.errors import EXIT_FAILED, EXIT_OK
from planrun.executors.containers import sweep_earlier
from planrun.model import events as ev
from planrun.model.rollback import owed_cleanup, owed_undoing, owes, status
from planrun.records import rundir as records
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.app.session import Result
    from planrun.model.state import RunState
    from planrun.settings import Settings


def finalize(run: str, settings: Settings) -> Result | None:
    """Finish the pending cleanup of a run; None when there is none, and its reports are written again.

    Its other steps do not start. Raises InvalidInput for an unknown run, an altered ledger, or a workspace that
    another run holds.
    """
    with Session(settings, current_folder()) as session:
        rundir, reading, state = reopen(session, run)
        name = os.path.basename(rundir)
        session.refuse_copy(state, name, f"finalize {name}")
        session.prepare_reports()
        if engine := engine_of(state.plan):
            sweep_earlier(engine, os.path.dirname(rundir))
        if not owes(state):
            paths, unwritten = session.report(state, rundir, reading.head)
            if unwritten:
                raise unwritten
            if state.started is not None and state.exit_status is not None:
                opening = _opening(session, state, rundir)
                for notifier in session.notifiers(state, session.steps(state, rundir, opening)):
                    notifier.finish(state, state.exit_status, paths)
            return None
        assert state.started is not None
        session.take_over(state.started.options)
        opening = _opening(session, state, rundir)
        rerun = [*owed_undoing(state), *owed_cleanup(state)]
        event = ev.CleanupResumed(
            at=opening["at"],
            planrun=__version__,
            options=opening["options"],
            lost=tuple(lost_attempts(state)),
            rerun=tuple(rerun),
            pid=opening["pid"],
            host=opening["host"],
        )
        selected = select(state.plan, state.started.options["selection"])
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        session.record(state, ledger, event)
        for name in rerun:
            if _must_not_repeat(state, name):
                session.record(state, ledger, given_up("", name, event.at))
        steps = session.steps(state, rundir, opening)
        gates = session.admit(state, ledger, steps, opening, selected)
        ledger.sync()
        options = scheduler_options(session, state.plan, selected).but(cleanup_only=True, asks=False)
        return session.drive(state, ledger, steps, options, gates)


def exit_code(result: Result) -> int:
    """Return 0 when all pending cleanup succeeded, whatever the verdict of the run is.

    1 when some of it failed; the exit code of the run when the cleanup was interrupted.
    """
    state = result.state
    if owes(state):
        return result.exit_code
    failed = status(state) == "failed" or any(
        step_state.status == "cancelled" or (step_state.status == "failed" and state.tolerance(name) is None)
        for name, step_state in state.steps.items()
        if step_state.step.section == "finally"
    )
    return EXIT_FAILED if failed else EXIT_OK


def _opening(session: Session, state: RunState, rundir: str) -> dict[str, Any]:
    """Return the fields that the remaining steps see of the run, with its policies as they were."""
    assert state.started is not None
    admission = session.admission = admission_of(state.plan, session.settings, rundir, policies_of(state))
    session.secrets = with_ceilings(session.secrets, state.plan, admission)
    session.confine(state.plan)
    session.connect(state.plan, os.path.basename(rundir))
    selection: Mapping[str, Any] = state.started.options["selection"]
    session.trace = state.options.get("trace", {})
    opening = session.opening(state.plan, state.params, selection, state.named)
    opening["context"] = state.started.context
    if session.secrets:
        opening["options"]["secrets"] = session.secrets.notice(state.plan, select(state.plan, selection))
    if admission:
        opening["options"] |= {"policy": admission.recorded()}
    return opening


def _must_not_repeat(state: RunState, name: str) -> bool:
    """Whether a lost attempt of a step may have had its effect."""
    step_state = state.steps[name]
    lost = bool(step_state.attempts) and step_state.attempts[-1].status == "lost"
    return lost and not step_state.step.idempotent
