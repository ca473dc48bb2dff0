"""Abstract steps become concrete ones: one question for each, asked in the order of the file.

Each question shows the plan as it is by then, with the steps that were expanded before it. What comes of an answer goes
through the door of any plan and is held against what was reviewed; only when all of them are done is there a new text.
"""

from __future__ import annotations

from planrun.app.planning.composing import notes_of
from planrun.app.planning.conversing import Accepted, Question, Refused, Result
from planrun.app.planning.inspecting import Bounds, inspect
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.locating import faults_of
from planrun.llm.pieces import Pieces, pieces_of, whole_of
from planrun.llm.prompts import expand as prompts
from planrun.model.record import Record
from planrun.source.editing import Page, replace_step
from planrun.source.load import load_bytes
from planrun.source.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from planrun.app.planning.conversing import Conversation, Talk
    from planrun.llm.drafts import Draft
    from planrun.llm.faults import Fault
    from planrun.llm.pieces import Whole
    from planrun.llm.repository import Repository
    from planrun.model.plan import Plan
    from planrun.policy.deciding import Layers


class Ground(Record):
    """What questions are made from and answers are held against.

    `inherited`: names of credentials that every step sees; `mask` hides secrets in what is asked.
    """

    layers: Layers
    repository: Repository
    mask: Callable[[str], str]
    most_steps: int
    context: Mapping[str, Any] = {}
    inherited: tuple[str, ...] = ()


class _Found(Record):
    """What one answer comes to."""

    draft: Draft
    plan: Plan
    pieces: Pieces


class Expansion:
    """One plan, on its way from abstract steps to concrete ones.

    `plan` is what it is by now; `pieces` are the ids of what each expanded step became, in their order, and `analyses`
    what the model said of each.
    """

    def __init__(self, plan: Plan, ground: Ground) -> None:
        self.plan = plan
        self.pieces: dict[str, tuple[str, ...]] = {}
        self.analyses: dict[str, str] = {}
        self._ground = ground

    def talk(self, conversation: Conversation, steps: Sequence[str]) -> Talk:
        """Ask for each step in turn; the result's value is this expansion, or the first end that is no answer."""
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
        """Put a draft in the place of a step; returns why it cannot be, None when it is done."""
        whole = whole_of(self.plan, step)
        found = self.check(draft, whole)
        if not isinstance(found, Accepted):
            return found
        self._take(whole, found.value)
        return None

    def question(self, whole: Whole) -> Question:
        """Return the question for one step."""
        ground = self._ground
        text = self.plan.source.decode("utf-8", "replace").removeprefix("\ufeff")
        return Question(
            purpose="expand",
            system=prompts.SYSTEM,
            prompt=prompts.prompt(whole, text, ground.repository, ground.most_steps, ground.mask),
            check=lambda draft: self.check(draft, whole),
        )

    def check(self, draft: Draft, whole: Whole) -> Accepted | Refused | list[Fault]:
        """Say what a draft comes to: a plan in which nothing but this step has changed, refusals, or faults."""
        pieces = pieces_of(draft, whole)
        if isinstance(pieces, list):
            return pieces
        try:
            plan = self._with(whole, pieces)
        except InvalidPlan as error:
            return self._faults(error, whole, pieces)
        against = inspect(plan, pieces.ids, self._bounds(whole, pieces))
        return against or Accepted(value=_Found(draft=draft, plan=plan, pieces=pieces))

    def _bounds(self, whole: Whole, pieces: Pieces) -> Bounds:
        return Bounds(
            before=self.plan,
            layers=self._ground.layers,
            context=self._ground.context,
            pending=frozenset([step.id for step in self.plan.steps]),
            made_of=dict.fromkeys(pieces.ids, whole.id),
            inherited=self._ground.inherited,
        )

    def _with(self, whole: Whole, pieces: Pieces) -> Plan:
        """Return the plan with pieces in the place of a step; raises InvalidPlan, EditError."""
        before = self.plan
        data = replace_step(before.source, before.file, whole.id, pieces.texts)
        origins = {step.id: step.origin for step in before.steps} | dict.fromkeys(pieces.ids, "expanded")
        plan = load_bytes(data, before.file, cache=False)
        return plan.but(steps=tuple([step.but(origin=origins[step.id]) for step in plan.steps]))

    def _faults(self, error: InvalidPlan, whole: Whole, pieces: Pieces) -> list[Fault]:
        data = next(iter(error.sources.values()), b"")
        section, at = Page(self.plan.source, self.plan.file).find(whole.id)
        numbers = range(len(pieces.ids)) if section == "steps" else ()
        known = [*pieces.ids, *[edge.on for edge in whole.edges]]
        return faults_of(error.problems, data, {at + number: number for number in numbers}, known)

    def _take(self, whole: Whole, found: _Found) -> None:
        """Go on with what an answer came to, comments for reviewers included."""
        steps = {step.id: step for step in found.plan.steps}
        notes = {
            name: list(notes_of(steps[name].but(origin="file"), self._ground.layers, self._ground.context))
            for name in found.pieces.ids
        }
        commented = pieces_of(found.draft, whole, notes)
        assert not isinstance(commented, list)  # it was checked
        self.plan = self._with(whole, commented)
        self.pieces[whole.id] = found.pieces.ids
        self.analyses[whole.id] = found.draft.analysis


def abstract_steps(plan: Plan, wanted: Sequence[str] = ()) -> list[str]:
    """Return the abstract steps of a plan, those that are `wanted` if any; raises InvalidInput for one that is none."""
    found = [step.id for step in plan.steps if step.kind == "abstract"]
    for step in plan.steps:
        if step.kind == "abstract" and step.file:
            where = f"{plan.file_of(step)}:{step.line}"
            raise InvalidInput(
                f'the step "{step.id}" stands in another plan ({where}): expand that one first'
            )
    known = {step.id for step in plan.steps}
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InvalidInput(f'no step "{name}" in {plan.file}' + (f"; {hint}" if hint else ""))
        if name not in found:
            raise InvalidInput(f'the step "{name}" of {plan.file} is concrete already: it says what it runs')
    return [name for name in found if not wanted or name in wanted]
