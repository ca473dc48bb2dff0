"""Ask a model for the next version of a run's plan, check it as in a run, and only write it to a file.

Nothing is recorded in the run, not even the call: a proposal is not part of its history.
"""

from __future__ import annotations

import os
import time
from difflib import unified_diff

from planrun.app.copies import state_of, stored_text
from planrun.app.inspect import find
from planrun.app.resume import ResumeRequest, Resumption
from planrun.app.run import secrets_of
from planrun.app.session import Session
from planrun.errors import Interrupted, InvalidInput
from planrun.model.record import Record
from planrun.planner import readiness
from planrun.records.reading import read_ledger
from planrun.records.rundir import LEDGER
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from planrun.model.events import Event
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.planner.conversation import Result
    from planrun.settings import Settings

    OnEvent = Callable[[Event, RunState], None]
    Ready = Callable[[str, int], None]  # the file that the plan was read from, and the next version
    Asking = Generator[Event | None, None, Result]

_PAUSE = 0.02  # seconds between two polls for an answer that takes seconds


class Proposal(Record):
    """The next version and its difference, or in `result` why there is none."""

    result: Result
    version: int = 0
    file: str = ""  # the source of the run's plan
    text: bytes = b""
    difference: str = ""
    about: str = ""  # the explanation of the model
    searched: bool = False  # without a model, or with one that offered steps


def propose(
    run: str, settings: Settings, wanted: tuple[str, ...], on_event: OnEvent, ready: Ready
) -> Proposal:
    """Ask a model for the next version of the plan of an inactive run; calls `on_event` with each event.

    `ready` raises if the result could not be stored, before a model is called and paid. Raises InvalidInput for a run
    that is unknown or active, and when no model may be asked; Denied; Interrupted.
    """
    with Session(settings, current_folder()) as session:
        rundir = find(run, session.workspace)
        reading = read_ledger(os.path.join(rundir, LEDGER))
        state = state_of(rundir, reading)
        session.secrets = secrets = secrets_of(state.plan, settings.llm_model)
        if secrets:
            state = state_of(rundir, reading, secrets.masked)
        if state.exit_status is None:
            raise InvalidInput(
                "this run is running, or was killed; to continue it: `planrun resume` or `planrun replan`"
            )
        # As the run would resume, without a record in its ledger.
        request = ResumeRequest(
            report=lambda _: None, planner=lambda: readiness, changes=lambda *_: (), replan=wanted
        )
        resumption = Resumption(session, rundir, state, request)
        state.apply(resumption.event())
        ready(state.plan.file, state.plan.version + 1)
        replanner = session.replanner = readiness.replanner(
            session, state, resumption.steps, None, resumption.opening
        )
        assert replanner is not None  # failures_to_replan has checked that a model may be called
        result = _await_result(replanner.ask(resumption.failed, state), (session, state), on_event)
        if result.outcome != "accepted":
            return Proposal(result=result, searched=readiness.searches(state.plan, settings))
        plan, about = result.value
        return _proposal(result, plan, about, stored_text(rundir, state.named))


def _await_result(asking: Asking, going: tuple[Session, RunState], on_event: OnEvent) -> Result:
    session, state = going
    try:
        while True:
            event = next(asking)
            if event is not None:
                on_event(event, state)
                continue
            time.sleep(_PAUSE)
            if signals := session.inbox.take():
                raise Interrupted(signals[0], "interrupted; nothing was written")
    except StopIteration as ended:
        result: Result = ended.value
        return result


def _proposal(result: Result, plan: Plan, about: str, before: bytes) -> Proposal:
    old, new = before.decode("utf-8"), plan.source.decode("utf-8")
    name = f"version {plan.version}"
    lines = unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), plan.file, f"{plan.file} ({name})"
    )
    return Proposal(
        result=result,
        version=plan.version,
        file=plan.file,
        text=plan.source,
        difference="".join(lines),
        about=about,
    )
