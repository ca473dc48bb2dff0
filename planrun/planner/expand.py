"""Make abstract steps concrete: one question for each, in the order of the file.

Each question shows the plan with the steps that were expanded before it. The loader reads each answer like any plan,
and it is compared with the reviewed plan. The new text exists only when all steps are done.
`planrun expand` writes it for review, with the difference.
"""

from __future__ import annotations

import os

from planrun.approval.policies import layers_of
from planrun.clock import SystemClock
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm import prompts
from planrun.llm.drafts import CANDIDATES, PIECES
from planrun.llm.fitting import told as cuts
from planrun.llm.offline import expanded_of
from planrun.llm.plantext import Pieces, faults_of, pieces_of, whole_of
from planrun.model import events as ev
from planrun.model.call import TOKENS
from planrun.model.record import Record
from planrun.plan.edit.page import Page, replace_step
from planrun.plan.load import load_bytes
from planrun.plan.problems import name_hint
from planrun.plan.yaml.file import read_source
from planrun.planner.candidates import Ground, Offer, Wanted, offer_of, question
from planrun.planner.conversation import Accepted, Conversation, Question, Refused, Result, fit, hold
from planrun.planner.decompose import decomposed
from planrun.planner.generate import Talk, masker, notes_of
from planrun.planner.inspect import Bounds, inspect, told_limits
from planrun.planner.models import insecure, llm_of, open_model, spending, why_no_model
from planrun.planner.repository import project_memory, read_repository
from planrun.planner.trees import offered
from planrun.reports.models import crossing_line, repeat_line
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from planrun.approval.rules import Layers
    from planrun.llm.drafts import Draft, Fault
    from planrun.llm.plantext import Whole
    from planrun.llm.projectfile import ProjectFile
    from planrun.llm.repository import Repository
    from planrun.model.plan import Plan
    from planrun.planner.conversation import Conversation, Exchange
    from planrun.search.space import Problem
    from planrun.settings import Settings


class ExpansionContext(Record):
    """The context of questions and of the checks of answers.

    `inherited`: names of credentials that every step sees; `mask` hides secrets in questions.
    """

    layers: Layers
    repository: Repository
    mask: Callable[[str], str]
    most_steps: int
    context: Mapping[str, Any] = {}
    inherited: tuple[str, ...] = ()
    project: ProjectFile | None = None  # what models should know of the project


class _Found(Record):
    """The plan that results from one answer."""

    draft: Draft
    plan: Plan
    pieces: Pieces


class Expansion:
    """One plan whose abstract steps become concrete, one after the other.

    `plan` is the current plan; `pieces` are the ids of the steps that replaced each expanded step, in order, and
    `analyses` the explanation of the model for each.
    """

    def __init__(self, plan: Plan, ground: ExpansionContext) -> None:
        self.plan = plan
        self.pieces: dict[str, tuple[str, ...]] = {}
        self.analyses: dict[str, str] = {}
        self._ground = ground

    def talk(self, conversation: Conversation, steps: Sequence[str]) -> Exchange:
        """Ask for each step in turn; the result's value is this expansion, or the first failure."""
        rounds = 0
        for step in steps:
            whole = whole_of(self.plan, step)
            found = yield from conversation.ask(self.question(whole))
            rounds += found.rounds
            if found.outcome != "accepted":
                return found.but(message=f'step "{step}": {found.message}', rounds=rounds)
            self._take(whole, found.value)
        return Result(outcome="accepted", value=self, rounds=rounds)

    def take(self, draft: Draft, step: str) -> Refused | list[Fault] | None:
        """Replace a step by a draft; returns why that is impossible, None when it is done."""
        whole = whole_of(self.plan, step)
        found = self.check(draft, whole)
        if not isinstance(found, Accepted):
            return found
        self._take(whole, found.value)
        return None

    def offered(self, problem: Problem, talk: Talk) -> Offer:
        """Return what a model offers to the search for one step."""
        ground, plan = self._ground, self.plan
        steps = (*plan.main(), *(plan.search.parts if plan.search else ()))
        base = Ground(
            text=plan.source,
            file=plan.file,
            load=self._loaded,
            bounds=Bounds(
                before=plan,
                layers=ground.layers,
                context=ground.context,
                inherited=ground.inherited,
                form=CANDIDATES,
            ),
            facts=problem.start.union(problem.goal, *[(*step.requires, *step.provides) for step in steps]),
            taken=frozenset([step.id for step in (*plan.steps, *steps)]),
        )
        about = [*prompts.described(ground.repository, ground.mask), *prompts.project_memory(ground.project)]
        most = talk.llm.max_generated_steps
        wanted = Wanted(start=problem.start, goal=problem.goal, actions=problem.actions, most=most)
        offer = offer_of(talk.ask(question("expand", wanted, about, base)), talk.llm.model)
        talk.say(f"candidates: {offered(offer.recorded())}")
        return offer

    def question(self, whole: Whole) -> Question:
        """Return the question for one step."""
        ground = self._ground
        text = self.plan.source.decode("utf-8", "replace").removeprefix("\ufeff")
        blocks = [
            *prompts.described(ground.repository, ground.mask),
            *prompts.project_memory(ground.project),
        ]
        return Question(
            purpose="expand",
            system=prompts.EXPAND_SYSTEM,
            pieces=prompts.expand_prompt(
                whole, text, blocks, told_limits(ground.layers, ground.most_steps), ground.mask
            ),
            form=PIECES,
            check=lambda draft: self.check(draft, whole),
        )

    def check(self, draft: Draft, whole: Whole) -> Accepted | Refused | list[Fault]:
        """Return the plan with a draft, in which only this step has changed, or the refusals, or the faults."""
        pieces = pieces_of(draft, whole)
        if isinstance(pieces, list):
            return pieces
        try:
            plan = self._with(whole, pieces)
        except InvalidPlan as error:
            return self._faults(error, whole, pieces)
        bounds = Bounds(
            before=self.plan,
            layers=self._ground.layers,
            context=self._ground.context,
            pending=frozenset([step.id for step in self.plan.steps]),
            made_of=dict.fromkeys(pieces.ids, whole.id),
            inherited=self._ground.inherited,
        )
        against = inspect(plan, pieces.ids, bounds)
        return against or Accepted(value=_Found(draft=draft, plan=plan, pieces=pieces))

    def _with(self, whole: Whole, pieces: Pieces) -> Plan:
        """Return the plan with a step replaced by pieces; raises InvalidPlan, EditError."""
        before = self.plan
        return self._loaded(replace_step(before.source, before.file, whole.id, pieces.texts), pieces.ids)

    def _loaded(self, data: bytes, new: Sequence[str]) -> Plan:
        """Return the plan in a text; `new`: steps that a model wrote. Raises InvalidPlan."""
        origins = {step.id: step.origin for step in self.plan.steps} | dict.fromkeys(new, "expanded")
        plan = load_bytes(data, self.plan.file, cache=False)
        return plan.but(steps=tuple([step.but(origin=origins[step.id]) for step in plan.steps]))

    def _faults(self, error: InvalidPlan, whole: Whole, pieces: Pieces) -> list[Fault]:
        data = next(iter(error.sources.values()), b"")
        section, at = Page(self.plan.source, self.plan.file).find(whole.id)
        known = [*pieces.ids, *[edge.on for edge in whole.edges]]
        return faults_of(
            error.problems, data, {(section, at + number): number for number in range(len(pieces.ids))}, known
        )

    def _take(self, whole: Whole, found: _Found) -> None:
        """Continue with the plan of an answer, with comments for reviewers."""
        steps = {step.id: step for step in found.plan.steps}
        notes = {
            name: list(notes_of(steps[name].but(origin="file"), self._ground.layers, self._ground.context))
            for name in found.pieces.ids
        }
        commented = pieces_of(found.draft, whole, notes)
        assert not isinstance(commented, list)  # already checked
        self.plan = self._with(whole, commented)
        self.pieces[whole.id] = found.pieces.ids
        self.analyses[whole.id] = found.draft.analysis


def abstract_steps(plan: Plan, wanted: Sequence[str] = ()) -> list[str]:
    """Return the abstract steps of a plan, only the `wanted` ones if any; raises InvalidInput for other steps."""
    found = [step.id for step in plan.steps if step.kind == "abstract"]
    for step in plan.steps:
        if step.kind == "abstract" and step.file:
            where = f"{plan.file_of(step)}:{step.line}"
            raise InvalidInput(f'the step "{step.id}" is in another plan ({where}): expand that one first')
    known = {step.id for step in plan.steps}
    for name in wanted:
        if name not in known:
            hint = name_hint(name, known, "steps")
            raise InvalidInput(f'no step "{name}" in {plan.file}' + (f"; {hint}" if hint else ""))
        if name not in found:
            raise InvalidInput(f'the step "{name}" of {plan.file} already has an action')
    return [name for name in found if not wanted or name in wanted]


class Order(Record):
    """A request to expand a file, or some of its abstract steps; none named: all."""

    file: str
    settings: Settings
    steps: tuple[str, ...] = ()
    target: str = ""  # the file to write; empty: none
    offline: bool = False  # by planrun's own patterns, without a model
    search: bool = False  # by parts of the plan, without a model

    @property
    def own(self) -> tuple[str, ...]:
        """The files that are not described to the model: the plan (sent separately), the target, and recordings."""
        return (self.file, self.target, self.settings.llm_record, self.settings.llm_replay)


class Finished(Record):
    """The result of an order; `after` is set for `accepted`, `faults` and `refusals` say why not.

    `pieces`: the steps that replaced each step; `usage` and `usd` of all calls, usd None if unknown.
    """

    outcome: Literal["accepted", "denied", "invalid", "infeasible", "failed", "budget", "stopped"]
    before: Plan
    after: Plan | None = None
    asked: tuple[str, ...] = ()
    pieces: Mapping[str, tuple[str, ...]] = {}
    analyses: Mapping[str, str] = {}
    message: str = ""
    rounds: int = 0
    faults: tuple[Fault, ...] = ()
    refusals: tuple[dict[str, str], ...] = ()
    calls: tuple[ev.ModelAnswered, ...] = ()

    @property
    def usage(self) -> dict[str, float]:
        """Tokens of all calls together, and usd if the price of every call is known."""
        total = {name: sum(call.usage.get(name, 0) for call in self.calls) for name in TOKENS}
        found = {name: value for name, value in total.items() if value}
        if self.calls and all("usd" in call.usage for call in self.calls):
            found["usd"] = sum(call.usage["usd"] for call in self.calls)
        return found


def finish(order: Order, on_progress: Callable[[str], None]) -> Finished:
    """Carry out an order and return its result; writes nothing.

    Raises InvalidPlan for an invalid file, InvalidInput for an unknown step, when no model can be asked, and for a text
    that cannot be edited.
    """
    before, steps, expansion = _prepared(order)
    if not steps:
        return Finished(outcome="accepted", before=before, after=before)
    if order.offline or order.search:
        return _by_pattern(order, before, steps, expansion, on_progress)
    if why := why_no_model(order.settings, before.llm):
        raise InvalidInput(why)
    return _asked(order, before, steps, expansion, on_progress)


def request_texts(order: Order) -> list[tuple[str, ...]]:
    """Return the whole request for each step, while none of them is concrete."""
    before, steps, expansion = _prepared(order)
    found = [expansion.question(whole_of(before, step)) for step in steps]
    llm = llm_of(order.settings, before.llm)
    return [(*question.system, fit(question, llm).text) for question in found]


def _prepared(order: Order) -> tuple[Plan, list[str], Expansion]:
    before = load_bytes(read_source(order.file), order.file, cache=False)
    steps = abstract_steps(before, order.steps)
    llm = llm_of(order.settings, before.llm)
    ground = ExpansionContext(
        layers=layers_of(before, order.settings),
        repository=read_repository(without=[path for path in order.own if path]),
        mask=masker(""),
        most_steps=llm.max_generated_steps,
        context=ci_context(os.environ),
        project=project_memory(masker("")),
    )
    return before, steps, Expansion(before, ground)


def _by_pattern(
    order: Order, before: Plan, steps: list[str], expansion: Expansion, on_progress: Callable[[str], None]
) -> Finished:
    """Expand the steps for which no model is needed; report the others and leave them unchanged."""
    talk = _talk(order, before, on_progress) if order.search else None
    draft_of = _searching(order, expansion, talk) if order.search else _matching(order, before)
    try:
        found = _filled(steps, draft_of, expansion, on_progress)
    finally:
        if talk:
            talk.close()
    calls = tuple(talk.calls) if talk else ()
    if found is not None:
        return found.but(before=before, calls=calls)
    if not expansion.pieces:
        what = "no part provides what its abstract steps are for" if order.search else _NO_PATTERN
        message = f"{what}; write them, or expand them with a model"
        return Finished(outcome="invalid", before=before, message=message, calls=calls)
    return Finished(
        outcome="accepted",
        before=before,
        after=load_bytes(expansion.plan.source, before.file, cache=False),
        asked=tuple(expansion.pieces),
        pieces=expansion.pieces,
        analyses=expansion.analyses,
        calls=calls,
    )


def _filled(
    steps: list[str],
    draft_of: Callable[[Plan, str], Draft | str],
    expansion: Expansion,
    on_progress: Callable[[str], None],
) -> Finished | None:
    """Make steps concrete as far as there are drafts; returns why one of these is refused."""
    for name in steps:
        draft = draft_of(expansion.plan, name)
        if isinstance(draft, str):
            on_progress(f'"{name}" stays without an action: {draft}; write it, or expand it with a model')
        elif (found := expansion.take(draft, name)) is not None:
            faults = tuple(found) if isinstance(found, list) else ()
            refusals = () if isinstance(found, list) else found.refusals
            message = f'step "{name}": {faults[0].text}' if faults else ""
            outcome: Any = "invalid" if faults else "denied"
            return Finished(
                outcome=outcome, before=expansion.plan, faults=faults, refusals=refusals, message=message
            )
    return None


_NO_PATTERN = "no built-in pattern fits its abstract steps"


def _matching(order: Order, before: Plan) -> Callable[[Plan, str], Draft | str]:
    """Return what makes a draft of a step by planrun's own patterns."""
    repository = read_repository(without=[path for path in order.own if path])

    def draft_of(plan: Plan, name: str) -> Draft | str:
        step = next(each for each in plan.steps if each.id == name)
        about = f"{before.goal} {step.title} {step.description}"
        return expanded_of(name, step.title, about, repository) or "no built-in pattern fits"

    return draft_of


def _searching(order: Order, expansion: Expansion, talk: Talk | None) -> Callable[[Plan, str], Draft | str]:
    """Return what makes a draft of a step by search."""

    def draft_of(plan: Plan, name: str) -> Draft | str:
        if talk is None:
            return decomposed(plan, name, order.settings)
        return decomposed(plan, name, order.settings, lambda problem: expansion.offered(problem, talk))

    return draft_of


def _talk(order: Order, plan: Plan, on_progress: Callable[[str], None]) -> Talk | None:
    """Return the model that offers candidates to searches; None where none is wanted, or none is there."""
    wanted = order.settings.candidates
    most = wanted if wanted is not None else plan.search.candidates if plan.search else 0
    if not most:
        return None
    if why := why_no_model(order.settings, plan.llm):
        if wanted:
            raise InvalidInput(f"--candidates asks a model, and none can be asked: {why}")
        on_progress(f"no model offers candidates: {why}")
        return None
    llm = llm_of(order.settings, plan.llm).but(max_generated_steps=most)
    return Talk(order.settings, llm, plan.limits, lambda _, text: on_progress(text))


def _asked(
    order: Order, before: Plan, steps: list[str], expansion: Expansion, on_progress: Callable[[str], None]
) -> Finished:
    llm = llm_of(order.settings, before.llm)
    is_bound = bool(order.settings.policy)
    spent = spending(before.limits, order.settings, is_bound=is_bound)
    spent.refuse_unpriced(llm.model)
    if warning := insecure(order.settings):
        on_progress(warning)
    model = open_model(order.settings, llm)
    calls: list[ev.ModelAnswered] = []

    def on_event(event: ev.Event) -> None:
        if isinstance(event, ev.ModelAsked):
            if event.cut:
                on_progress(f"cut to fit into the context: {cuts(event.cut)}")
            at = min(len(expansion.pieces), len(steps) - 1)
            on_progress(
                f'asking {event.model} for "{steps[at]}" ({at + 1} of {len(steps)}), call {event.call}'
            )
        elif isinstance(event, ev.ModelRepeated):
            on_progress(repeat_line(event))
        elif isinstance(event, ev.ModelAnswered):
            calls.append(event)
        elif isinstance(event, ev.BudgetCrossed):
            on_progress(crossing_line(event, "this command"))

    for note in spent.notes:
        on_progress(note)
    try:
        talk = Conversation(model, llm, spent.budget(), SystemClock())
        result = hold(talk, expansion.talk(talk, steps), on_event)
    finally:
        model.close()
    is_done = result.outcome == "accepted"
    return Finished(
        outcome=result.outcome,
        before=before,
        after=load_bytes(expansion.plan.source, before.file, cache=False) if is_done else None,
        asked=tuple(steps),
        pieces=expansion.pieces if is_done else {},
        analyses=expansion.analyses if is_done else {},
        message=result.message,
        rounds=result.rounds,
        faults=result.faults,
        refusals=result.refusals,
        calls=tuple(calls),
    )
