"""Compose a plan for facts out of the project's own parts, by search: steps of its plans, and commands of its files.

The text is made from reviewed steps, word for word; only ids, edges and the order are new. The loader reads it like any
file. Ways that lost become parts of the new plan, so that its runs can replan.
"""

from __future__ import annotations

import os

from planrun.approval.policies import ceilings_of, layers_of
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.drafts import CANDIDATES
from planrun.llm.offline import classify
from planrun.llm.plantext import entry_text, plan_text
from planrun.llm.prompts import described, project_memory
from planrun.plan.keys.search import NOT_OF_PARTS, is_fact
from planrun.plan.load import load_bytes
from planrun.plan.problems import did_you_mean
from planrun.planner.candidates import Ground, Offer, Wanted, offer_of, question
from planrun.planner.facts import limits_of
from planrun.planner.generate import POLICY, Generated, Talk, cost_of, masker, name_of, repository_of
from planrun.planner.inspect import Bounds
from planrun.planner.models import llm_of, why_no_model
from planrun.planner.sources import Part, parts_of_project
from planrun.planner.trees import headline, offered, record_of
from planrun.search.find import find
from planrun.search.space import Problem, waits
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.planner.generate import OnProgress, Order
    from planrun.planner.sources import Part
    from planrun.search.tree import Found

    Parts = dict[str, Part]

_NO_EDGES = ("depends_on", "recovers", "replaces")
_STEP = "_"
"""The id of a step that stands in for a plan that is not yet there."""


def compose(order: Order, files: Sequence[str], on_progress: OnProgress) -> Generated:
    """Return a plan for the facts that the goal names; raises InvalidInput for a fact that no part provides.

    `files`: plans whose steps may be used; (): those of the folder and of `plans/`.
    """
    parts = parts_of_project(order.file, files)
    policy = f"{{auto_approve: {POLICY.auto_approve}, llm_auto_approve: {POLICY.llm_auto_approve}}}"
    text = f"version: 1\npolicy: {policy}\nsteps:\n  - id: {_STEP}\n    run: 'true'\n"
    plan = load_bytes(text.encode(), order.file, cache=False)
    offer, talk = Offer(), _talk(order, plan, on_progress)
    if talk is not None:
        offer = _asked_for(order, plan, parts, talk)
        for action in offer.actions:
            notes: tuple[str, ...] = (f"written by {offer.model}: read every command",)
            if review := offer.reviews.get(action.name, "").strip():
                notes += (f"review: {review}",)
            keys = offer.keys[action.name]
            parts[action.name] = Part(
                keys=keys, action=action, file=offer.model, notes=notes, is_offered=True
            )
        talk.say(f"candidates: {offered(offer.recorded())}")
    goal, start = _facts_in(order.goal, parts.values()), frozenset[str]()
    actions = tuple([part.action for part in parts.values()])
    found = find(Problem(start, goal, actions), limits_of(plan, order.settings))
    record = record_of(found, "generate", offer=offer)
    result = Generated(
        outcome="infeasible",
        source="search",
        complexity=classify(order.goal),
        message=_why_none(found, headline(record)),
        calls=tuple(talk.calls) if talk else (),
        cost=cost_of(talk.calls) if talk else None,
    )
    if not found.solved:
        return result
    text = _text(order, found, parts, record)
    try:
        composed = load_bytes(text.encode(), order.file, cache=False)
    except InvalidPlan as error:
        raise InvalidInput(f"the steps do not fit into one plan: {error.problems[0].text}") from None
    return result.but(outcome="accepted", message=headline(record), text=text, plan=composed)


def _talk(order: Order, plan: Plan, on_progress: OnProgress) -> Talk | None:
    """Return the model that offers candidates; None where none are wanted. Raises InvalidInput where none is there."""
    most = order.settings.candidates
    if not most:
        return None
    if why := why_no_model(order.settings, order.llm):
        raise InvalidInput(f"--candidates asks a model, and none can be asked: {why}")
    llm = llm_of(order.settings, order.llm).but(max_generated_steps=most)
    return Talk(order.settings, llm, plan.limits, on_progress)


def _asked_for(order: Order, plan: Plan, parts: Parts, talk: Talk) -> Offer:
    """Return what a model offers beside the parts of the project; it goes through the same checks as its plans."""
    goal = frozenset(order.goal.replace(",", " ").split())
    actions = tuple([part.action for part in parts.values()])
    for word in goal:
        if not is_fact(word):
            raise InvalidInput(f'"{word[:100]}" is not the name of a fact: letters, digits and `_ . / @ + -`')
    ground = Ground(
        text=plan.source,
        file=plan.file,
        load=lambda data, new: _as_written_by_model(load_bytes(data, plan.file, cache=False), new),
        bounds=Bounds(
            before=plan,
            layers=layers_of(plan, order.settings, ceilings_of(order.settings)),
            context=ci_context(os.environ),
            form=CANDIDATES,
        ),
        facts=goal.union(*[(*action.requires, *action.provides) for action in actions]),
        taken=frozenset([*parts, _STEP]),
    )
    mask = masker(order.goal)
    project = order.project.but(text=mask(order.project.text)) if order.project else None
    about = [*described(repository_of(order), mask), *project_memory(project)]
    wanted = Wanted(start=frozenset(), goal=goal, actions=actions, most=talk.llm.max_generated_steps)
    try:
        return offer_of(talk.ask(question("generate", wanted, about, ground)), talk.llm.model)
    finally:
        talk.close()


def _as_written_by_model(plan: Plan, new: Sequence[str]) -> Plan:
    steps = [step.but(origin="expanded") if step.id in new else step for step in plan.steps]
    return plan.but(steps=tuple(steps))


def _why_none(found: Found, otherwise: str) -> str:
    given = found.problem.start.union(*[action.provides for action in found.problem.actions])
    wanted = {fact for action in found.problem.actions for fact in action.requires} - given
    return f"{otherwise}; nothing provides {', '.join(sorted(wanted))}" if wanted else otherwise


def _facts_in(goal: str, parts: Iterable[Part]) -> frozenset[str]:
    known = sorted({fact for part in parts for fact in part.action.provides})
    wanted = goal.replace(",", " ").split()
    for word in wanted:
        if word not in known:
            hint = did_you_mean(word, known) or f"known facts: {', '.join(known[:20]) or 'none'}"
            raise InvalidInput(f'no step or command of this project provides the fact "{word}"; {hint}')
    return frozenset(wanted)


# Text.


def _text(order: Order, found: Found, parts: Parts, record: Mapping[str, Any]) -> str:
    chosen = [action.name for action in found.actions]
    others = list(_alternatives(found, parts, chosen))
    search: dict[str, Any] = {"goal": sorted(found.problem.goal), "algorithm": found.limits.algorithm}
    if others:
        search["parts"] = [{"id": name, **_without(parts[name].keys, (*_NO_EDGES, "id"))} for name in others]
    keys: dict[str, Any] = {"version": 1, "name": name_of(order.goal) or "composed"}
    keys["policy"] = {"auto_approve": POLICY.auto_approve, "llm_auto_approve": POLICY.llm_auto_approve}
    keys |= _head([parts[name] for name in (*chosen, *others)])
    keys["search"] = search
    edges = waits(found.actions)
    steps = []
    for at, name in enumerate(chosen):
        part = parts[name]
        written: dict[str, Any] = {"id": name}
        if edges[at]:
            written["depends_on"] = [chosen[before] for before in edges[at]]
        written |= _without(part.keys, (*_NO_EDGES, "id"))
        steps.append(entry_text(written, 2, part.notes or [f"from {part.file}"]))
    heading = [
        "Composed by `planrun generate --search` from steps of this project, for review.",
        headline(record),
    ]
    return plan_text(heading, keys, steps)


def _without(keys: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key not in names}


def _alternatives(found: Found, parts: Parts, chosen: Sequence[str]) -> Iterator[str]:
    """Yield other parts that provide what a chosen one does, and can be parts of a plan."""
    given = frozenset[str]().union(*[action.provides for action in found.actions])
    for name, part in parts.items():
        fits = part.action.provides & given and part.action.requires <= given | found.problem.start
        if (
            name not in chosen
            and fits
            and not part.is_offered
            and not any(key in part.keys for key in NOT_OF_PARTS if key not in _NO_EDGES)
        ):
            yield name


def _head(parts: Sequence[Part]) -> dict[str, Any]:
    """Return what the plans of the parts say above their steps; raises InvalidInput where two differ."""
    keys: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for part in parts:
        for key, value in part.head.items():
            if isinstance(value, dict) and isinstance(keys.get(key, {}), dict):
                merged = {**keys.get(key, {}), **value}
                clash = any(keys.get(key, {}).get(name, given) != given for name, given in value.items())
            else:
                merged, clash = value, keys.get(key, value) != value
            if clash:
                raise InvalidInput(
                    f"{sources[key]} and {part.file} have different `{key}`; take the steps from one of them: "
                    f"`--parts {part.file}`"
                )
            keys[key], sources[key] = merged, part.file
    return keys
