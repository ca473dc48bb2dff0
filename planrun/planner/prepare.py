"""A run whose abstract steps are made concrete before anything starts: `execute --expand`, and its resumption.

The run has begun then, with the file as the first version of its plan: so what is asked, answered and refused is on
record from the first call. It goes on with the second version, or ends without having run anything.
"""

from __future__ import annotations

import select
import time
from _signal import SIGUSR1 as PAUSE

from planrun.actions.environment import credentials_in
from planrun.app.copies import stored_plan
from planrun.app.session import NotStarted
from planrun.errors import EXIT_WAITING, InvalidInput, PlanrunError
from planrun.model import events as ev
from planrun.planner import models
from planrun.planner.conversation import Conversation, Result
from planrun.planner.expand import Expansion, Ground, abstract_steps
from planrun.planner.generate import masker
from planrun.planner.models import Taping, llm_of, spending_on_record, why_no_model
from planrun.planner.repository import read_repository
from planrun.planner.versions import Adoption
from planrun.reports.console import console
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.session import Session
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.planner.conversation import Talk
    from planrun.ports import Model
    from planrun.records.ledger import Ledger
    from planrun.reports.console import Console
    from planrun.settings import Settings

STOP_WITHIN = 0.7
"""Seconds that a model has to end after it was stopped; then nobody waits for what it says."""
_LOOK = 0.05  # seconds between two looks for an answer, where nothing wakes us
_LONGEST_MESSAGE = 1000  # characters
_MOST_PROBLEMS = 20


def require_expandable(plan: Plan, settings: Settings) -> None:
    """Raise InvalidInput when the abstract steps of a plan cannot be made concrete during a run."""
    if settings.locked:
        raise InvalidInput(
            "under --locked nothing but the locked plan runs: `planrun expand` and `planrun lock` come first"
        )
    for step in plan.steps:
        where = f'{plan.file_of(step)}:{step.line}: step "{step.id}"'
        if step.kind == "abstract" and step.file:
            raise InvalidInput(
                f"{where} stands in a plan that is used, which no model changes during a run: "
                f"`planrun expand {plan.file_of(step)}` comes first"
            )
        if step.kind == "abstract" and step.secrets:
            raise InvalidInput(
                f"{where} gets secrets, and what a model writes gets none unseen: "
                f"`planrun expand {plan.file}` writes it for review"
            )
    if why := why_no_model(settings, plan.llm):
        raise InvalidInput(why)


def make_concrete(
    session: Session, state: RunState, ledger: Ledger, steps: Steps, opening: dict[str, Any]
) -> NotStarted | None:
    """Have a model write the actions of abstract steps before anything starts; None when the run can start.

    `opening` has the fields of the event with which the run started or resumed; `plan` in it becomes the new version.
    """
    preparation = Preparation(session, state, ledger, steps)
    code = preparation.make_concrete(opening)
    return None if code is None else NotStarted(exit_code=code, console=preparation.console)


class Preparation:
    """The planning of a run that has not started any step."""

    def __init__(self, session: Session, state: RunState, ledger: Ledger, steps: Steps) -> None:
        self._session = session
        self._state = state
        self._ledger = ledger
        self._steps = steps
        self.console: Console = console(state, steps.place.rundir, session.settings, masks=session.masks)
        self._signal = 0  # that ends it
        self._until: float | None = None  # when the run is to be over

    def make_concrete(self, opening: dict[str, Any]) -> int | None:
        """Ask for all abstract steps; returns None for a run that can go on, else the exit code of its end."""
        state, session = self._state, self._session
        llm = llm_of(session.settings, state.plan.llm)
        steps = tuple(abstract_steps(state.plan))
        number = state.planning.count("expand") + 1 if state.planning else 1
        at = session.clock.stamp()
        self._emit(ev.PlanningStarted(at=at, purpose="expand", steps=steps, model=llm.model, n=number))
        expansion = self._expansion(opening)
        try:
            result = self._converse(expansion, steps)
            if result.outcome == "accepted":
                named = self._adopt(expansion.plan.source)
                self._end(steps, result.but(outcome="revised"), named)
                opening.update(plan=named, at=session.clock.stamp())
                return None
        except PlanrunError as error:  # a text that cannot be edited, a script that is none
            result = Result(outcome="failed", message=str(error))
        self._end(steps, result, {})
        return self._give_up(steps[min(len(expansion.pieces), len(steps) - 1)], result)

    def _expansion(self, opening: Mapping[str, Any]) -> Expansion:
        session, place = self._session, self._steps.place
        assert session.admission is not None
        plan = stored_plan(place.rundir, self._state.named)
        veil = session.vault.veil if session.vault else None
        provider = masker("")
        return Expansion(
            plan,
            Ground(
                layers=session.admission.layers,
                repository=read_repository(session.workspace, _recordings(session.settings)),
                mask=(lambda text: provider(veil.mask_text(text))) if veil else provider,
                most_steps=llm_of(session.settings, plan.llm).max_generated_steps,
                context=opening["context"],
                inherited=credentials_in(place.env),
            ),
        )

    # Asking.

    def _converse(self, expansion: Expansion, steps: tuple[str, ...]) -> Result:
        session, state = self._session, self._state
        llm = llm_of(session.settings, state.plan.llm)
        budget = spending_on_record(state.options).budget(state.planning)
        limit = state.plan.limits.deadline
        if limit is not None:
            budget.until = self._until = session.clock.monotonic() + limit
        veil = session.vault.veil if session.vault else None
        taping = Taping(mask=veil.mask_text if veil else None, planning=state.planning)
        model = models.open_model(session.settings, state.plan.llm, wake=session.inbox.fd, taping=taping)
        asked = max([call.asked.call for call in state.planning.calls], default=0) if state.planning else 0
        talk = Conversation(model, llm, budget, session.clock, asked)
        try:
            return self._listen(talk, expansion.talk(talk, steps), model)
        finally:
            model.close()

    def _listen(self, talk: Conversation, asking: Talk, model: Model) -> Result:
        """Record what happens until there is an end; a signal ends it soon."""
        stop_by: float | None = None
        while stop_by is None or time.monotonic() < stop_by:
            for signum in self._session.inbox.take():
                self._signal = signum if self._signal in (0, PAUSE) else self._signal
            if self._signal and stop_by is None:
                stop_by = time.monotonic() + STOP_WITHIN
                talk.stop()
            try:
                event = next(asking)
            except StopIteration as ended:
                result: Result = ended.value
                return Result(outcome="stopped", message="stopped by a signal") if self._signal else result
            if event is None:
                self._sleep(model)
                continue
            self._emit(event)
            if isinstance(event, ev.ModelAsked):
                self._ledger.sync()  # before anything leaves this machine
        return Result(outcome="stopped", message="stopped by a signal")

    def _sleep(self, model: Model) -> None:
        self.console.tick()
        poll = select.poll()
        for descriptor in (self._session.inbox.fd, getattr(model, "fd", -1)):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        poll.poll(_LOOK * 1000)

    # What comes of it.

    def _adopt(self, data: bytes) -> dict[str, Any]:
        adoption = Adoption(self._session, self._steps, None)
        return adoption.adopt(adoption.next_version(data, self._state, "expanded"), self._state)

    def _end(self, steps: tuple[str, ...], result: Any, named: dict[str, Any]) -> None:
        event = ev.PlanningEnded(
            at=self._session.clock.stamp(),
            purpose="expand",
            steps=steps,
            outcome=result.outcome,
            message=line(result.message, _LONGEST_MESSAGE),
            rounds=result.rounds,
            plan=named,
            refusals=result.refusals,
            problems=tuple([line(fault.text, _LONGEST_MESSAGE) for fault in result.faults[:_MOST_PROBLEMS]]),
        )
        self._emit(event)
        self._ledger.sync()

    def _give_up(self, step: str, result: Result) -> int:
        """End a run without having run anything, or have it rest where it can go on."""
        if self._state.status == "awaiting_approval":
            self._move("approved")
        self._move("executing")
        late = self._until is not None and self._session.clock.monotonic() >= self._until
        if result.outcome == "budget" or self._signal == PAUSE:
            why = "pause" if self._signal else "budget"
            self._emit(self._ending(why, message=line(result.message, _LONGEST_MESSAGE)))
            self._move("paused")
            self._ledger.sync()
            return EXIT_WAITING
        if self._signal:
            self._emit(self._ending("cancel", signal=self._signal))
        elif late:
            self._emit(self._ending("deadline"))
        else:
            self._fail(step, result)
            self._emit(self._ending("abort", step=step))
        return self._close()

    def _fail(self, step: str, result: Result) -> None:
        denied = result.outcome == "denied"
        self._emit(
            ev.StepMoved(
                at=self._session.clock.stamp(),
                step=step,
                status="failed",
                reason="denied" if denied else "planning",
                message=line(result.message, _LONGEST_MESSAGE),
                rule=result.refusals[0]["rule"] if result.refusals else "",
            )
        )

    def _close(self) -> int:
        state, session = self._state, self._session
        why = state.ending.why if state.ending else "cancel"
        reason = "cancelled" if why == "cancel" else why
        for name, found in state.steps.items():
            if not found.ended:
                at = session.clock.stamp()
                self._emit(ev.StepMoved(at=at, step=name, status="cancelled", reason=reason))
        verdict = state.verdict()
        code = state.exit_code(verdict, strict=False, fail_on_flaky=False)
        self._emit(
            ev.RunEnded(
                at=session.clock.stamp(),
                status=verdict,
                verdict=verdict,
                exit_code=code,
                duration=0.0,
                summary=state.summary(),
                events=self._ledger.records + 1,
            )
        )
        self._ledger.sync()
        return code

    def _ending(self, why: str, **fields: Any) -> ev.RunEnding:
        return ev.RunEnding(at=self._session.clock.stamp(), why=why, **fields)

    def _move(self, status: str) -> None:
        self._emit(ev.PlanMoved(at=self._session.clock.stamp(), status=status))

    def _emit(self, event: ev.Event) -> None:
        self._session.record(self._state, self._ledger, event)
        self.console.on_event(event, self._state)
        self.console.tick()


def _recordings(settings: Settings) -> tuple[str, ...]:
    """Return what is no part of the question, since it comes of the answers."""
    return tuple([folder for folder in (settings.llm_record, settings.llm_replay) if folder])
