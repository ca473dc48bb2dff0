"""Let a killed, failed or cancelled run go on: what finished and would be the same again is not run again."""

from __future__ import annotations

import os

from planrun.app.running import Result, Session, refuse_abstract, scheduler_options, vault_of
from planrun.app.selection import select
from planrun.errors import InvalidInput
from planrun.executors.logs import recover
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.state import RunState
from planrun.records import rundir as records
from planrun.records.reading import repair
from planrun.sha256 import sha256
from planrun.source.load import load_bytes
from planrun.steps.outputs import forget_outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planrun.app.settings import Settings
    from planrun.model.plan import Plan, Step
    from planrun.records.reading import Reading
    from planrun.steps.runner import Steps


def stored_plan(rundir: str, started: ev.RunStarted) -> Plan:
    """Return the plan of a run from the copy that the run made.

    Raises InvalidInput when the copy is gone or not the one the ledger names, InvalidPlan when it has problems.
    """
    path = os.path.join(rundir, records.PLAN)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise InvalidInput(f"the run's copy of its plan cannot be read: {path}: {error.strerror}") from None
    if sha256(data).hexdigest() != started.plan["sha256"]:
        raise InvalidInput(f"the run's copy of its plan was altered: {path}")
    return load_bytes(data, started.plan["file"])


def state_of(rundir: str, reading: Reading) -> RunState:
    """Return the state of a run from its ledger and its copy of the plan."""
    started = reading.events[0] if reading.events else None
    if not isinstance(started, ev.RunStarted):
        raise InvalidInput(f"the ledger has no first event: {os.path.join(rundir, records.LEDGER)}")
    return RunState(stored_plan(rundir, started)).replay(reading.events)


def resume(run: str, settings: Settings, say: Callable[[str], object], workspace: str = "") -> Result | None:
    """Go on with a run; None when it is finished and there is nothing to do but to write its reports again.

    `say` takes a line for people that has to come before anything runs. What the run was started with stays in
    force: its parameters, its selection, --strict and --fail-on-flaky. Raises InvalidInput for an unknown run, an
    altered ledger or a workspace that another run holds.
    """
    with Session(settings, workspace or os.getcwd()) as session:
        rundir = records.find(session.workspace, run)
        session.claim(os.path.basename(rundir))
        recover(os.path.join(rundir, "logs"))
        reading = repair(os.path.join(rundir, records.LEDGER))
        state = state_of(rundir, reading)
        if state.status == "completed":
            session.prepare_reports()
            # planrun may have been killed before it had written them
            _, unwritten = session.report(state, rundir, reading.head)
            if unwritten:
                raise unwritten
            return None
        refuse_abstract(state.plan)
        if vault := vault_of(state.plan):
            session.vault = vault
            state = RunState(vault.masked(state.plan)).replay(reading.events)
            forget_outputs(os.path.join(rundir, records.OUTPUTS))
        started = state.started
        assert started is not None
        session.take_over(started.options)
        session.prepare_reports()
        if _changed(session.workspace, started):
            say(
                f"{started.plan['file']} has changed; this run goes on with its own copy, "
                "a new run would take the change"
            )
        wanted = started.options["selection"]
        opening = session.opening(state.plan, state.params, wanted)
        steps = session.steps(state, rundir, started.context)
        selected = select(state.plan, wanted)
        if vault:
            opening["options"]["secrets"] = vault.notice(state.plan, selected)
        lost = lost_attempts(state)
        rerun = to_rerun(state, steps, lost)
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        event = ev.RunResumed(
            rerun=tuple(rerun), lost=tuple(lost), **{**opening, "context": steps.place.context}
        )
        session.record(state, ledger, event)
        for name in lost:
            if not state.steps[name].step.idempotent:
                session.record(state, ledger, _given_up(session.clock.stamp(), name))
        ledger.sync()
        options = scheduler_options(session, state.plan, selected)
        return session.drive(state, ledger, steps, options)


def _changed(workspace: str, started: ev.RunStarted) -> bool:
    """Whether the plan file of a run now says something else; False when it is gone."""
    try:
        with open(os.path.join(workspace, started.plan["file"]), "rb") as file:
            return bool(sha256(file.read()).hexdigest() != started.plan["sha256"])
    except OSError:
        return False


def lost_attempts(state: RunState) -> list[str]:
    """Return the steps whose last attempt has no end."""
    return [name for name, step in state.steps.items() if step.attempts and step.attempts[-1].ended is None]


def to_rerun(state: RunState, steps: Steps, lost: Iterable[str]) -> list[str]:
    """Return the steps that are pending again, in file order.

    Kept is what completed or was skipped, or failed and was tolerated or recovered, as long as it would do the
    same again and depends on nothing that runs again. `finally` steps belong to every end of a run and always
    run again.
    """
    again = set(lost)
    main = state.plan.main()
    for name in graph.order(graph.waits(main)):
        step = state.steps[name].step
        if name not in again and not _kept(state, steps, step, again):
            again.add(name)
    again.update(step.id for step in state.plan.cleanup())
    return [name for name, found in state.steps.items() if name in again and found.status != "pending"]


def _kept(state: RunState, steps: Steps, step: Step, again: set[str]) -> bool:
    found = state.steps[step.id]
    cut_short = state.ending is not None and state.ending.why == "deadline" and found.reason == "timeout"
    tolerated = state.tolerance(step.id) is not None and not cut_short
    settled = tolerated or found.status in ("completed", "skipped")
    if not settled or any(edge.on in again for edge in step.edges):
        return False
    if found.status == "skipped" or not found.attempts:
        return True
    last = found.attempts[-1]
    return last.started.fingerprint == steps.fingerprint(step, last.n, state)


def _given_up(at: str, name: str) -> ev.StepMoved:
    """Fail a step whose lost attempt may have had its effect, because it says that it must not be repeated."""
    return ev.StepMoved(
        at=at,
        step=name,
        status="failed",
        reason="lost",
        message="its last attempt has no end and it is not idempotent",
    )
