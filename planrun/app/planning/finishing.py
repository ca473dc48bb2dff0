"""A plan file whose abstract steps are made concrete, for review: the finished text, and what is different in it."""

from __future__ import annotations

import os

from planrun.app.planning.expanding import Expansion, Ground, abstract_steps
from planrun.app.planning.generating import masker
from planrun.app.planning.models import insecure, llm_of, open_model, why_no_model
from planrun.app.planning.reading import read_repository
from planrun.app.planning.spending import spending
from planrun.app.planning.talking import hold
from planrun.app.policies import layers_of
from planrun.app.settings import ci_context
from planrun.errors import InvalidInput
from planrun.llm.patterns import expanded_of
from planrun.model import events as ev
from planrun.model.call import TOKENS
from planrun.model.record import Record
from planrun.reports.planning import crossing_line, repeat_line
from planrun.source.file import read_source
from planrun.source.load import load_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from planrun.app.settings import Settings
    from planrun.llm.faults import Fault
    from planrun.model.plan import Plan


class Order(Record):
    """Which file is to be finished, and which of its abstract steps; none named: all."""

    file: str
    settings: Settings
    steps: tuple[str, ...] = ()
    target: str = ""  # the file that is to be written; empty: none
    offline: bool = False  # by planrun's own patterns, and without a model

    @property
    def own(self) -> tuple[str, ...]:
        """What is no part of the question: the plan, which is told apart, what is written, and recordings."""
        return (self.file, self.target, self.settings.llm_record, self.settings.llm_replay)


class Finished(Record):
    """What came of an order; `after` is there for `accepted`, `faults` and `refusals` say why not.

    `pieces`: what each step became; `usage` and `usd` of all calls, usd None where it is not known.
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
        """Tokens, and usd where the price of every call is known, of all calls together."""
        total = {name: sum(call.usage.get(name, 0) for call in self.calls) for name in TOKENS}
        found = {name: value for name, value in total.items() if value}
        if self.calls and all("usd" in call.usage for call in self.calls):
            found["usd"] = sum(call.usage["usd"] for call in self.calls)
        return found


def finish(order: Order, tell: Callable[[str], None]) -> Finished:
    """Return what comes of an order; nothing is written.

    Raises InvalidPlan for a file that is none, InvalidInput for a step that is none, when no model can be asked, and
    for a text that cannot be edited.
    """
    before, steps, expansion = _prepared(order)
    if not steps:
        return Finished(outcome="accepted", before=before, after=before)
    if order.offline:
        return _by_pattern(order, before, steps, expansion, tell)
    if why := why_no_model(order.settings, before.llm):
        raise InvalidInput(why)
    return _asked(order, before, steps, expansion, tell)


def request_texts(order: Order) -> list[tuple[str, ...]]:
    """Return everything that would be sent for each step, as long as none of them is made concrete."""
    from planrun.llm.pieces import whole_of

    before, steps, expansion = _prepared(order)
    found = [expansion.question(whole_of(before, step)) for step in steps]
    return [(*question.system, question.prompt) for question in found]


def _prepared(order: Order) -> tuple[Plan, list[str], Expansion]:
    before = load_bytes(read_source(order.file), order.file, cache=False)
    steps = abstract_steps(before, order.steps)
    llm = llm_of(order.settings, before.llm)
    ground = Ground(
        layers=layers_of(before, order.settings),
        repository=read_repository(without=[path for path in order.own if path]),
        mask=masker(""),
        most_steps=llm.max_generated_steps,
        context=ci_context(os.environ),
    )
    return before, steps, Expansion(before, ground)


def _by_pattern(
    order: Order, before: Plan, steps: list[str], expansion: Expansion, tell: Callable[[str], None]
) -> Finished:
    """Make concrete what planrun can without a model; the other steps stay as they are, and are told."""
    repository = read_repository(without=[path for path in order.own if path])
    known = {step.id: step for step in before.steps}
    for name in steps:
        step = known[name]
        about = f"{before.goal} {step.title} {step.description}"
        draft = expanded_of(name, step.title, about, repository)
        if draft is None:
            tell(
                f'"{name}" stays without an action: no pattern of planrun\'s own fits; a model or you can write it'
            )
        elif (found := expansion.take(draft, name)) is not None:
            faults = tuple(found) if isinstance(found, list) else ()
            refusals = () if isinstance(found, list) else found.refusals
            message = f'step "{name}": {faults[0].text}' if faults else ""
            outcome: Any = "invalid" if faults else "denied"
            return Finished(outcome=outcome, before=before, faults=faults, refusals=refusals, message=message)
    if not expansion.pieces:
        message = "no pattern of planrun's own fits any of its abstract steps"
        return Finished(outcome="infeasible", before=before, message=message)
    return Finished(
        outcome="accepted",
        before=before,
        after=load_bytes(expansion.plan.source, before.file, cache=False),
        asked=tuple(expansion.pieces),
        pieces=expansion.pieces,
        analyses=expansion.analyses,
    )


def _asked(
    order: Order, before: Plan, steps: list[str], expansion: Expansion, tell: Callable[[str], None]
) -> Finished:
    from planrun.app.planning.conversing import Conversation
    from planrun.clock import SystemClock

    llm = llm_of(order.settings, before.llm)
    is_bound = bool(order.settings.policy)
    spent = spending(before.limits, order.settings, is_bound=is_bound)
    spent.refuse_unpriced(llm.model)
    if warning := insecure(order.settings):
        tell(warning)
    model = open_model(order.settings, llm)
    calls: list[ev.ModelAnswered] = []

    def heard(event: ev.Event) -> None:
        if isinstance(event, ev.ModelAsked):
            at = min(len(expansion.pieces), len(steps) - 1)
            tell(f'asking {event.model} for "{steps[at]}" ({at + 1} of {len(steps)}), call {event.call}')
        elif isinstance(event, ev.ModelRepeated):
            tell(repeat_line(event))
        elif isinstance(event, ev.ModelAnswered):
            calls.append(event)
        elif isinstance(event, ev.BudgetCrossed):
            tell(crossing_line(event, "this command"))

    for note in spent.notes:
        tell(note)
    try:
        talk = Conversation(model, llm, spent.budget(), SystemClock())
        result = hold(talk, expansion.talk(talk, steps), heard)
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
