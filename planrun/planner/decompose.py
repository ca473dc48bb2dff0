"""Split an abstract step into parts of its plan by search: what it provides is the goal."""

from __future__ import annotations

import os
from dataclasses import replace

from planrun.llm.drafts import Draft, DraftStep
from planrun.model import graph
from planrun.plan.keys.search import parts_of
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.planner.candidates import Offer
from planrun.planner.facts import Estimates, action_of, limits_of
from planrun.planner.trees import headline, record_of
from planrun.records.history import path_of, read
from planrun.records.rundir import HOME
from planrun.search.find import find
from planrun.search.space import Problem, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.settings import Settings

    Ask = Callable[[Problem], Offer]

_TEXTS = ("title", "description", "run")
_TAKEN = frozenset(
    (
        "id",
        *_TEXTS,
        "requires",
        "provides",
        "deletes",
        "estimated_time",
        "estimated_success",
        "estimated_tokens",
    )
)
"""The keys of parts that can be pieces: all others are those of the step that is split."""


def decomposed(plan: Plan, name: str, settings: Settings, ask: Ask | None = None) -> Draft | str:
    """Return the parts that provide together what an abstract step is to provide, or why there are none.

    `ask`: returns what a model offers beside the parts of a problem.
    """
    step = next(each for each in plan.steps if each.id == name)
    if not step.provides:
        return "it provides no fact that could be searched for"
    root, _ = parse(plan.source, plan.file)
    assert root is not None  # it has been loaded
    written = {part.value["id"].value: to_data(part) for part in parts_of(root)}
    history = read(path_of(os.path.join(os.getcwd(), HOME), plan))
    parts = plan.search.parts if plan.search else ()
    usable = [part for part in parts if part.kind == "run" and _TAKEN.issuperset(written[part.id])]
    actions = tuple([action_of(part, Estimates(history=history), source="part") for part in usable])
    problem = Problem(_before(plan, name), frozenset(step.provides), actions)
    offer = ask(problem) if ask else Offer()
    written |= dict(offer.keys)
    found = find(replace(problem, actions=(*actions, *offer.actions)), limits_of(plan, settings))
    told = headline(record_of(found, "expand", offer=offer))
    if not found.solved or not found.actions:
        return told
    edges = waits(found.actions)
    last = len(found.actions) - 1
    ids = [name if at == last else f"{name}-{action.name}" for at, action in enumerate(found.actions)]
    pieces = [
        _piece(written[action.name], ids[at], tuple([ids[before] for before in edges[at]])).but(
            review=_review(offer, action.name)
        )
        for at, action in enumerate(found.actions)
    ]
    return Draft(analysis=f"found by search: {told}", steps=tuple(pieces))


def _review(offer: Offer, name: str) -> str:
    if name not in offer.keys:
        return ""
    said = offer.reviews.get(name, "").strip()
    return f"written by {offer.model}{f': {said}' if said else ''}"


def _piece(part: dict[str, Any], name: str, depends_on: tuple[str, ...]) -> DraftStep:
    texts: dict[str, Any] = {key: str(part[key]) for key in _TEXTS if key in part}
    return DraftStep(id=name, depends_on=depends_on, **texts)


def _before(plan: Plan, name: str) -> frozenset[str]:
    """Return the facts that hold when a step starts: those of the beginning, and of all steps that it waits for."""
    waiting = graph.waits(plan.main())
    steps = {step.id: step for step in plan.main()}
    facts = set(plan.search.start if plan.search else ())
    behind, left = set(), list(waiting.get(name, ()))
    while left:
        other = left.pop()
        if other not in behind:
            behind.add(other)
            left += waiting.get(other, ())
    for other in graph.order(waiting):
        if other in behind:
            facts = facts - set(steps[other].deletes) | set(steps[other].provides)
    return frozenset(facts)
