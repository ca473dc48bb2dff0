"""Steps that a model offers to a search: asked for, checked like every draft, and weighed as actions.

They may name only facts that the plan names. During a run they can take the place of what failed, not of reviewed steps
that can still run, and the commands that verify a failed step verify them, too. A step that a policy denies, or that
could not start on this machine, is left out and reported. The search takes a step of a model only where it is expected
to cost less than reviewed steps.
"""

from __future__ import annotations

import json
from dataclasses import replace

from planrun.approval.confining import RULE, foreseen
from planrun.approval.policies import static_decision
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.drafts import CANDIDATES, Fault
from planrun.llm.fitting import Piece
from planrun.llm.plantext import entry_text, faults_of, keys_of
from planrun.llm.prompts import CANDIDATES_SYSTEM, known_facts
from planrun.model.record import Record
from planrun.plan.edit.page import Page, append_steps
from planrun.plan.keys.search import is_fact
from planrun.planner.conversation import Accepted, Question
from planrun.planner.facts import ANSWER_TIME, Estimates, action_of
from planrun.planner.inspect import Bounds, inspect_candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.call import Purpose
    from planrun.model.plan import Plan, Step
    from planrun.model.sandbox import Confinement
    from planrun.planner.conversation import Result
    from planrun.search.space import Action

SUCCESS = 0.5
"""The probability that a step of a model succeeds, as long as no run shows it: that of a step nothing is known of."""
_FACTS = ("requires", "provides")


class Ground(Record):
    """What candidates are checked against: the text of a plan, how a longer text is loaded, and the limits.

    `facts`: the names that they may use; `reserved`: those of them that they cannot provide; `taken`: ids that they may
    not have; `verify`: commands by the fact that they verify; `load` gets the text and the new ids, and raises
    InvalidPlan.
    """

    text: bytes
    file: str
    load: Callable[[bytes, Sequence[str]], Plan]
    bounds: Bounds
    facts: frozenset[str]
    taken: frozenset[str]
    reserved: frozenset[str] = frozenset()
    verify: Mapping[str, Sequence[Any]] = {}
    confinement: Confinement | None = None
    estimates: Estimates = Estimates()


class Offer(Record):
    """What a model offered: actions, the keys of their steps by id, what it says, and why others were left out."""

    model: str = ""
    actions: tuple[Action, ...] = ()
    keys: Mapping[str, Mapping[str, Any]] = {}
    reviews: Mapping[str, str] = {}
    analysis: str = ""
    refused: tuple[dict[str, str], ...] = ()
    outcome: str = ""
    message: str = ""

    def recorded(self) -> dict[str, Any]:
        """Return it as the record of a search has it."""
        return {
            "model": self.model,
            "outcome": self.outcome,
            "message": self.message or self.analysis,
            "offered": [action.name for action in self.actions],
            "refused": list(self.refused),
        }


class Wanted(Record):
    """What a search is for: the facts at the beginning and the end, the actions so far, and how many may be added."""

    start: frozenset[str]
    goal: frozenset[str]
    actions: tuple[Action, ...]
    most: int


def question(purpose: Purpose, wanted: Wanted, pieces: Sequence[Piece], ground: Ground) -> Question:
    """Return the question for candidates; `pieces`: about the project or the run."""
    rows = [
        {"id": action.name, "requires": sorted(action.requires), "provides": sorted(action.provides)}
        for action in sorted(wanted.actions, key=lambda action: action.name)
    ]
    facts = {
        "hold": wanted.start,
        "are wanted": wanted.goal,
        "exist": ground.facts,
        "your steps may provide": ground.facts - ground.reserved,
    }
    return Question(
        purpose=purpose,
        system=CANDIDATES_SYSTEM,
        pieces=[*pieces, *known_facts(facts, rows, wanted.most)],
        check=lambda draft: check(draft, ground),
        form=CANDIDATES,
    )


def check(draft: Draft, ground: Ground) -> Accepted | list[Fault]:
    """Return the steps that a search may take, with those that it may not, or what the model is to repair."""
    if faults := [*_of_ids(draft, ground), *_of_facts(draft, ground)]:
        return faults
    new = [step.id for step in draft.steps]
    keys = {step.id: _keys(step, ground) for step in draft.steps}
    checks = {name: each["verify"] for name, each in keys.items() if "verify" in each}
    data = b""
    try:
        data = append_steps(ground.text, ground.file, "\n".join([entry_text(keys[name], 0) for name in new]))
        plan = ground.load(data, new)
    except InvalidPlan as error:
        data = data or next(iter(error.sources.values()), b"")
        first = len(Page(ground.text, ground.file).nodes("steps"))
        places = {("steps", first + at): at for at in range(len(new))}
        return faults_of(error.problems, data, places, [*ground.taken, *new])
    except InvalidInput as error:
        return [Fault(path="steps", rule="plan", message=str(error))]
    faults, refused = inspect_candidates(plan, new, ground.bounds.but(checks=checks))
    if faults:
        return faults
    refused += tuple(_unstartable(plan, new, ground))
    left_out = {each["step"] for each in refused}
    if "" in left_out:  # the text would change the plan itself
        left_out = set(new)
    kept = [step for step in plan.main() if step.id in new and step.id not in left_out]
    return Accepted(
        value=Offer(
            actions=tuple([_action(step, ground) for step in kept]),
            keys={step.id: keys[step.id] for step in kept},
            reviews={step.id: step.review for step in draft.steps},
            analysis=draft.analysis,
            refused=refused,
        )
    )


def offer_of(result: Result, model: str) -> Offer:
    """Return what came of the question to a model; nothing is offered where it gave no usable answer."""
    if result.outcome != "accepted":
        return Offer(model=model, outcome=result.outcome, message=result.message)
    offer: Offer = result.value
    named = f"model {model}"
    return offer.but(
        model=model,
        outcome="accepted",
        actions=tuple([replace(action, source=named) for action in offer.actions]),
    )


def _keys(step: DraftStep, ground: Ground) -> dict[str, Any]:
    found = keys_of(step)
    commands = [command for fact in step.provides for command in ground.verify.get(fact, ())]
    unique = [command for at, command in enumerate(commands) if command not in commands[:at]]
    return found | ({"verify": unique} if unique else {})


def _of_ids(draft: Draft, ground: Ground) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, step in enumerate(draft.steps):
        if step.id in ground.taken or step.id in seen:
            yield Fault(
                path=f"steps[{at}].id", rule="id_taken", message=f'"{step.id}" is taken; use a new id'
            )
        seen.add(step.id)
        if not step.run.strip():
            yield Fault(path=f"steps[{at}].run", rule="required", message="a candidate says what it runs")


def _of_facts(draft: Draft, ground: Ground) -> Iterator[Fault]:
    may = {"requires": ground.facts, "provides": ground.facts - ground.reserved}
    for at, step in enumerate(draft.steps):
        if not step.provides:
            message = "a candidate names the facts that hold when it has completed"
            yield Fault(path=f"steps[{at}].provides", rule="required", message=message)
        for key in _FACTS:
            allowed = tuple(sorted(may[key]))
            for name in [name for name in getattr(step, key) if name not in may[key] or not is_fact(name)]:
                message = f"{json.dumps(name)[:110]} is none of the facts that it may name here"
                yield Fault(path=f"steps[{at}].{key}", rule="fact", message=message, allowed=allowed)


def _unstartable(plan: Plan, new: Iterable[str], ground: Ground) -> Iterator[dict[str, str]]:
    for step in plan.main():
        if step.id in new and (why := foreseen(step, ground.confinement)):
            yield {"step": step.id, "rule": RULE, "reason": why}


def _action(step: Step, ground: Ground) -> Action:
    """Return a candidate as an action; an approval costs the time of the person who gives it."""
    action = action_of(step.but(estimated_success=SUCCESS), ground.estimates)
    if static_decision(step, ground.bounds.layers, ground.bounds.context).answer != "ask":
        return action
    parts = (*action.parts, ("approval", ANSWER_TIME))
    return replace(action, cost=action.cost + ANSWER_TIME, parts=parts)
