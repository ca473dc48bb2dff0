"""The functions of the port `Planner` of `planrun.app.session`, for runs whose plans a model expands or replans.

They decide which model a run may call and within which limits, record this before anything starts, and make abstract
steps concrete (`execute --expand`). That run has already started, with the file as the first version of its plan, so
each call, answer and refusal is recorded. It continues with the second version, or ends without having run a step.
"""

from __future__ import annotations

import os
import select
import time
from _signal import SIGUSR1 as PAUSE

from planrun.actions.environment import credentials_in
from planrun.agents.context import AgentModels
from planrun.app.copies import stored_plan
from planrun.app.run import has_agents
from planrun.app.session import NotStarted
from planrun.engine.failures import is_typed
from planrun.errors import EXIT_WAITING, Denied, InvalidInput, PlanrunError
from planrun.model import events as ev
from planrun.plan.problems import name_hint
from planrun.planner import models
from planrun.planner.bysearch import SearchReplanner, by_search
from planrun.planner.conversation import Conversation, Result
from planrun.planner.expand import Expansion, ExpansionContext, abstract_steps
from planrun.planner.facts import limits_of
from planrun.planner.generate import masker
from planrun.planner.models import (
    RecordingOptions,
    check_recording,
    insecure,
    llm_of,
    spending,
    spending_on_record,
    why_no_model,
)
from planrun.planner.replan import Adoption, ReplanContext, Replanner, left_over
from planrun.planner.repository import project_memory, read_repository
from planrun.records.history import path_of
from planrun.records.history import read as read_history
from planrun.records.rundir import home as records_home
from planrun.reports.console import console
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.session import Session
    from planrun.approval.gates import PolicyGates
    from planrun.approval.rules import Layers
    from planrun.model.plan import Plan, Step
    from planrun.model.planning import Llm
    from planrun.model.state import RunState
    from planrun.planner.replan import Replanner
    from planrun.ports import Model
    from planrun.records.ledger import Ledger
    from planrun.reports.console import Console
    from planrun.settings import Settings

STOP_WITHIN = 0.7
"""Seconds until a stopped model must have ended; then its answer is dropped."""
_LOOK = 0.05  # seconds between two polls for an answer, if no descriptor reports it
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
                f"{where} is in an included plan, which no model changes during a run: "
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
    preparation = RunExpansion(session, state, ledger, steps)
    code = preparation.make_concrete(opening)
    return None if code is None else NotStarted(exit_code=code, console=preparation.console)


class RunExpansion:
    """The planning of a run that has not started any step."""

    def __init__(self, session: Session, state: RunState, ledger: Ledger, steps: Steps) -> None:
        self._session = session
        self._state = state
        self._ledger = ledger
        self._steps = steps
        self.console: Console = console(state, steps.place.rundir, session.settings, masks=session.masks)
        self._signal = 0  # the signal that ends it
        self._until: float | None = None  # the deadline of the run

    def make_concrete(self, opening: dict[str, Any]) -> int | None:
        """Ask for all abstract steps; returns None for a run that can start, else its exit code."""
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
                # The result.
                data = expansion.plan.source
                adoption = Adoption(self._session, self._steps, None)
                named = adoption.adopt(adoption.next_version(data, self._state, "expanded"), self._state)
                self._end(steps, result.but(outcome="revised"), named)
                opening.update(plan=named, at=session.clock.stamp())
                return None
        except PlanrunError as error:  # a text that cannot be edited, an invalid script
            result = Result(outcome="failed", message=str(error))
        self._end(steps, result, {})
        return self._give_up(steps[min(len(expansion.pieces), len(steps) - 1)], result)

    def _expansion(self, opening: Mapping[str, Any]) -> Expansion:
        session, place = self._session, self._steps.place
        assert session.admission is not None
        plan = stored_plan(place.rundir, self._state.named)
        redactor = session.secrets.redactor if session.secrets else None
        provider = masker("")
        return Expansion(
            plan,
            ExpansionContext(
                layers=session.admission.layers,
                repository=read_repository(session.workspace, _recordings(session.settings)),
                mask=(lambda text: provider(redactor.mask_text(text))) if redactor else provider,
                most_steps=llm_of(session.settings, plan.llm).max_generated_steps,
                context=opening["context"],
                inherited=credentials_in(place.env),
                project=project_memory(redactor.mask_text if redactor else provider, session.workspace),
            ),
        )

    # The conversation.

    def _converse(self, expansion: Expansion, steps: tuple[str, ...]) -> Result:
        session, state = self._session, self._state
        llm = llm_of(session.settings, state.plan.llm)
        budget = spending_on_record(state.options).budget(state.planning)
        limit = state.plan.limits.deadline
        if limit is not None:
            budget.until = self._until = session.clock.monotonic() + limit
        redactor = session.secrets.redactor if session.secrets else None
        recording = RecordingOptions(mask=redactor.mask_text if redactor else None, planning=state.planning)
        model = models.open_model(
            session.settings, state.plan.llm, wake=session.inbox.fd, recording=recording
        )
        asked = max([call.asked.call for call in state.planning.calls], default=0) if state.planning else 0
        talk = Conversation(model, llm, budget, session.clock, asked)
        try:
            asking = expansion.talk(talk, steps)
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
                    return (
                        Result(outcome="stopped", message="stopped by a signal") if self._signal else result
                    )
                if event is None:
                    self._sleep(model)
                    continue
                self._emit(event)
                if isinstance(event, ev.ModelAsked):
                    self._ledger.sync()  # before anything leaves this machine
            return Result(outcome="stopped", message="stopped by a signal")
        finally:
            model.close()

    def _sleep(self, model: Model) -> None:
        self.console.tick()
        poll = select.poll()
        for descriptor in (self._session.inbox.fd, getattr(model, "fd", -1)):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        poll.poll(_LOOK * 1000)

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
        """End a run that has run no step, or pause it if it can be resumed."""
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
            self._emit(self._ending("abort", step=step))
        return self._close()

    def _close(self) -> int:
        state, session = self._state, self._session
        why = state.ending.why if state.ending else "cancel"
        reason = "cancelled" if why == "cancel" else why
        for name, step_state in state.steps.items():
            if not step_state.ended:
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
    """Return the recording folders: they depend on the answers, and are not described to the model."""
    return tuple([folder for folder in (settings.llm_record, settings.llm_replay) if folder])


__all__ = [
    "agent_models",
    "failures_to_replan",
    "limits_on_record",
    "make_concrete",
    "replan_option",
    "replanner",
    "require_actions",
    "require_model",
    "suggestion",
]


def failures_to_replan(state: RunState, wanted: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """Return the failed steps to replan: those in `wanted`, or all that count when it is empty.

    Raises InvalidInput for steps that did not fail and when no model may be asked, Denied after a refusal.
    """
    if why := why_no_replan(state.plan, settings):
        raise InvalidInput(f"{_who(state.plan, settings)} can replan: {why}")
    if state.planning and state.planning.is_denied:
        run = state.started.run if state.started else "RUN"
        raise Denied(
            "a policy forbade what a model wrote for this run, and it is not asked again; "
            f"`planrun resume {run} --plan FILE` goes on with a plan of your own"
        )
    if left_over(state) < 1:
        raise InvalidInput(
            f"limits.max_replans allows {state.plan.limits.max_replans}, and all of them were made"
        )
    for name in wanted:
        if name not in state.steps:
            hint = name_hint(name, state.steps, "steps")
            raise InvalidInput(f'no step "{name}" in this run' + (f"; {hint}" if hint else ""))
        if why := _why_not(name, state):
            raise InvalidInput(f'the step "{name}" {why}')
    failed = [name for name in state.steps if not _why_not(name, state) and state.tolerance(name) is None]
    if not (wanted or failed):
        raise InvalidInput("no failure of this run can be replanned")
    return wanted or tuple(failed)


def suggestion(state: RunState, settings: Settings) -> str:
    """Return in one line how a model may help a failed run; empty if none may, or for failures of class logic."""
    try:
        failed = failures_to_replan(state, (), settings)
    except PlanrunError:
        return ""
    errors = [state.steps[name].error for name in failed]
    if not state.started or all(is_typed(error) and error and error["class"] == "logic" for error in errors):
        return ""
    return f"to ask a model for a recovery plan: planrun replan {state.started.run}"


def _why_not(name: str, state: RunState) -> str:
    """Return why a step cannot be replanned."""
    step_state = state.steps[name]
    if step_state.status != "failed":
        return f"has not failed: it is {step_state.status}"
    if step_state.step.section != "steps":
        return "stands under finally, which belongs to every end of a run"
    if name in state.replaced:
        return "was replaced already"
    return "was denied, and stays so" if step_state.reason == "denied" else ""


def model_of(plan: Plan, settings: Settings) -> str:
    """Return the model that a run of a plan may call; empty when it calls none."""
    llm = plan.llm
    wants = llm or most_candidates(plan, settings) or any(_asks_a_model(step) for step in plan.steps)
    if not wants or (settings.locked and not has_agents(plan)):
        return ""
    return "" if why_no_model(settings, llm) else llm_of(settings, llm).model


def _asks_a_model(step: Step) -> bool:
    if step.kind == "group":
        template = step.grouping.template
        return template is not None and _asks_a_model(template)
    return step.on_failure == "replan" or step.kind == "abstract" or step.action.is_agent


def limits_on_record(
    plan: Plan,
    settings: Settings,
    ceilings: Collection[object],
    before: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the option `budget` as the ledger has it, empty for a run that asks no model.

    `before`: the options that the run recorded so far. Raises InvalidInput when dollars are limited and the price of
    the model is unknown, and for an unreadable table of prices or recording; RecordsLost for a recording that cannot
    be written.
    """
    model = model_of(plan, settings)
    if not model:
        return {}
    check_recording(settings)
    is_bound = bool(ceilings or any(known.get("locked") for known in before))
    kept = next((known["budget"] for known in reversed(before) if known.get("budget")), None)
    found = spending(plan.limits, settings, kept, is_bound=is_bound)
    found.refuse_unpriced(model)
    if warning := insecure(settings):
        found = found.but(notes=(*found.notes, warning))
    return {"budget": found.recorded()}


def replan_option(
    plan: Plan, settings: Settings, layers: Layers, failed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the option `replan` as the first event of a run has it; empty if no failure can start a replan.

    `failed`: steps that the user asked to replan. Keys: model (empty: none replans), most (replans in the run), told (a
    line for the user).
    """
    llm = plan.llm
    if searches(plan, settings):
        wanting = [step.id for step in plan.main() if step.replan == "any"]
        return _search_option(plan, settings, layers, [*failed] or wanting) if failed or wanting else {}
    if settings.candidates:
        raise InvalidInput("--candidates is for a search: add --search")
    named = list(failed) or [step.id for step in plan.main() if step.on_failure == "replan"]
    by_class = llm.replan_on_failure if llm and llm.enabled else "never"
    if not named and by_class == "never":
        return {}
    why = why_no_replan(plan, settings)
    if why:
        return {"replan": {"model": "", "most": 0, "told": f"no model can replan: {why}"}}
    most = plan.limits.max_replans
    model = llm_of(settings, llm).model
    times = "once" if most == 1 else f"up to {most} times"
    text = f"{model} may replan {times}, {_when(by_class, named)}; what it writes {_how_far(layers)}"
    return {"replan": {"model": model, "most": most, "told": text}}


def why_no_replan(plan: Plan, settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return in one line why no model may replan; empty when one may."""
    if plan.limits.max_replans < 1:
        return "limits.max_replans is 0"
    if settings.locked:
        return "under --locked nothing but the locked plan runs"
    return "" if searches(plan, settings) else why_no_model(settings, plan.llm, environ)


def searches(plan: Plan, settings: Settings) -> bool:
    """Return whether failures of a plan are replanned by search, and no model is asked."""
    return settings.search or (plan.search is not None and plan.search.replan_on_failure)


def most_candidates(plan: Plan, settings: Settings) -> int:
    """Return how many steps a model may offer to each search for a plan."""
    if not searches(plan, settings):
        return 0
    return (
        settings.candidates
        if settings.candidates is not None
        else plan.search.candidates
        if plan.search
        else 0
    )


def _offers(plan: Plan, settings: Settings) -> Llm | None:
    """Return the model that offers candidates to the searches of a run; None where none is asked, or none can be."""
    most = most_candidates(plan, settings)
    if not most or why_no_model(settings, plan.llm):
        return None
    return llm_of(settings, plan.llm).but(max_generated_steps=most)


def _who(plan: Plan, settings: Settings) -> str:
    return "no search" if searches(plan, settings) else "no model"


def _search_option(plan: Plan, settings: Settings, layers: Layers, named: list[str]) -> dict[str, Any]:
    """Return the option `replan` of a run whose failures are replanned by search."""
    if why := why_no_replan(plan, settings):
        return {"replan": {"model": "", "most": 0, "told": f"no search can replan: {why}"}}
    most = plan.limits.max_replans
    llm = by_search(limits_of(plan, settings).algorithm)
    times = "once" if most == 1 else f"up to {most} times"
    text = (
        f"a search may replan {times}, {_when('never', named)}; it takes {_of_what(plan, settings, layers)}"
    )
    return {"replan": {"model": llm.model, "most": most, "told": text}}


def _of_what(plan: Plan, settings: Settings, layers: Layers) -> str:
    """Return in words what a search may take."""
    most = most_candidates(plan, settings)
    if not most:
        return "steps and parts of the plan alone"
    if offers := _offers(plan, settings):
        count = "one step" if most == 1 else f"up to {most} steps"
        offered = f"{count} that {offers.model} offers; what that writes {_how_far(layers)}"
        return f"steps and parts of the plan, and {offered}"
    why = why_no_model(settings, plan.llm)
    if settings.candidates:
        raise InvalidInput(f"--candidates asks a model, and none can be asked: {why}")
    return f"steps and parts of the plan alone, since no model can offer candidates: {why}"


def _when(by_class: str, named: list[str]) -> str:
    """Return in words after which failures a model may replan."""
    if by_class == "any":
        return "after any failure that counts"
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    of_steps = f"a failure of {shown}"
    if by_class == "never":
        return f"after {of_steps}"
    return f"after a fatal failure, or {of_steps}" if named else "after a fatal failure"


def _how_far(layers: Layers) -> str:
    """Return in words which of a model's steps run without approval, and what happens to the others."""
    levels = ("none", "read-only", "low", "medium", "high")
    policies = [layers.plan.llm_auto_approve] if layers.plan else ["low"]
    ceilings = [ceiling.policy.llm_auto_approve for ceiling in layers.ceilings]
    lowest = min([*policies, *ceilings], key=levels.index)
    asked = (
        "nothing of it runs without approval" if lowest == "none" else f"runs without approval up to {lowest}"
    )
    if not ceilings:
        return f"{asked}, and waits for an approval above" if lowest != "none" else asked
    most = min(ceilings, key=levels.index)
    return f"{asked}, and is denied above {most}"


def replanner(
    session: Session, state: RunState, steps: Steps, gates: PolicyGates | None, opening: Mapping[str, Any]
) -> Replanner | None:
    """Return the replanner of a run that starts or resumes with the event whose fields `opening` has."""
    if not opening["options"].get("replan", {}).get("model") or session.admission is None:
        return None
    if searches(state.plan, session.settings):
        return _search_replanner(session, state, (steps, gates), opening)
    settings, llm = session.settings, llm_of(session.settings, state.plan.llm)
    mask = session.secrets.redactor.mask_text if session.secrets and session.secrets.redactor else None

    def opened() -> Model:
        return models.open_model(
            settings, state.plan.llm, recording=RecordingOptions(mask=mask, planning=state.planning)
        )

    context = ReplanContext(llm, session.admission.layers, opened, session.clock)
    context.context = opening["context"]
    context.mask = mask or str
    context.project = project_memory(context.mask, session.workspace)
    spent = spending_on_record(opening["options"])  # read before any step can write to a table of prices
    adoption = Adoption(session, steps, gates)
    return Replanner(context, steps.place, adoption, lambda state: spent.budget(state.planning))


def _search_replanner(
    session: Session, state: RunState, going: tuple[Steps, PolicyGates | None], opening: Mapping[str, Any]
) -> Replanner:
    mask = session.secrets.redactor.mask_text if session.secrets and session.secrets.redactor else None

    def opened() -> Model:
        recording = RecordingOptions(mask=mask, planning=state.planning)
        return models.open_model(session.settings, state.plan.llm, recording=recording)

    assert session.admission is not None
    steps, gates = going
    offers = _offers(state.plan, session.settings)
    llm = by_search(limits_of(state.plan, session.settings).algorithm)
    if offers:
        llm = llm.but(max_generated_steps=offers.max_generated_steps)
    context = ReplanContext(llm, session.admission.layers, opened, session.clock)
    context.context = opening["context"]
    adoption = Adoption(session, steps, gates)
    context.project = project_memory(mask or str, session.workspace)
    spent = spending_on_record(opening["options"])  # read before any step can write to a table of prices
    found = SearchReplanner(context, steps.place, adoption, lambda state: spent.budget(state.planning))
    found.offers = offers
    found.settings, found.keeps = session.settings, gates is not None  # without gates nothing is recorded
    found.history = read_history(path_of(records_home(session.workspace), state.plan))
    return found


def agent_models(session: Session, state: RunState, opening: Mapping[str, Any]) -> AgentModels:
    """Return the models that the agents of a run ask; without one each agent that has work to do fails.

    A run that only applies a patch needs no model, and no credentials.
    """
    settings, llm = session.settings, llm_of(session.settings, state.plan.llm)
    mask = session.secrets.redactor.mask_text if session.secrets and session.secrets.redactor else None
    spent = spending_on_record(opening["options"])

    def opened() -> Model:
        recording = RecordingOptions(mask=mask, planning=state.planning)
        return models.open_model(settings, state.plan.llm, recording=recording)

    return AgentModels(
        llm=llm,
        opened=opened,
        budget=lambda state: spent.budget(state.planning),
        hidden=_within(session.workspace, _recordings(settings)),
        override=settings.llm_model,
        project=project_memory(mask or str, session.workspace),
    )


def _within(workspace: str, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders that are in the workspace, as seen from it."""
    top = os.path.realpath(workspace)
    paths = [os.path.relpath(os.path.realpath(os.path.join(workspace, folder)), top) for folder in folders]
    return tuple([path for path in paths if not path.startswith("..") and path != "."])


def require_model(plan: Plan, settings: Settings) -> None:
    """Raise InvalidInput when the agents of a plan have no model to ask."""
    if why := why_no_model(settings, plan.llm):
        raise InvalidInput(f"the plan has agents, and no model can be asked: {why}")


def require_actions(plan: Plan, settings: Settings, names: Collection[str]) -> None:
    """Raise InvalidInput for abstract steps, by `names`, that would run without being expanded."""
    if settings.expand:
        require_expandable(plan, settings)
        return
    steps = [step for step in plan.steps if step.id in names]
    named = ", ".join(f'"{step.id}" ({plan.file_of(step)}:{step.line})' for step in steps[:5])
    more = f" and {len(steps) - 5} more" if len(steps) > 5 else ""
    raise InvalidInput(
        f"the plan has steps without an action: {named}{more}; expand it first: "
        "give each a `run`, an `exec` or a `validate`, have a model do it by `planrun expand` or --expand, "
        "or leave them out by --skip-abstract"
    )
