"""Compose a plan for facts out of the project's own parts, by search: steps of its plans, and commands of its files.

The text is made from reviewed steps, word for word; only ids, edges and the order are new. The loader reads it like any
file. Ways that lost become parts of the new plan, so that its runs can replan.
"""

from __future__ import annotations

import os

from planrun.approval.policies import ceilings_of, layers_of
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.offline import classify
from planrun.llm.plantext import entry_text, plan_text
from planrun.llm.prompts import described, project_memory
from planrun.llm.repository import commands
from planrun.model.record import Record
from planrun.plan.keys.outline import Outline
from planrun.plan.keys.search import NOT_OF_PARTS, is_fact, parts_of
from planrun.plan.load import load_bytes
from planrun.plan.problems import did_you_mean
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.file import read_source
from planrun.planner.candidates import Ground, Offer, Wanted, offer_of, question
from planrun.planner.facts import Estimates, action_of, limits_of
from planrun.planner.generate import POLICY, Generated, Talk, cost_of, masker, name_of, repository_of
from planrun.planner.inspect import Bounds
from planrun.planner.models import llm_of, why_no_model
from planrun.planner.repository import read_repository
from planrun.planner.trees import headline, offered, record_of
from planrun.records.history import path_of, read
from planrun.records.rundir import HOME
from planrun.search.find import find
from planrun.search.space import Problem, waits
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.planner.generate import OnProgress, Order
    from planrun.search.space import Action
    from planrun.search.tree import Found

    Parts = dict[str, "Part"]

_HEAD = ("params", "env", "env_file", "secrets", "defaults", "containers", "agents")
"""What steps of a plan may need of the keys above them."""
_FACTS = {"test": "tested", "lint": "linted", "build": "built"}
"""The facts that commands provide which the project's files name."""
_MOST_FILES = 50
_STEP = "_"
"""The id of a step that stands in for a plan that is not yet there."""
_NO_EDGES = ("depends_on", "recovers", "replaces")


class Part(Record):
    """A step that may be used: its text as data, its action, and where it is from.

    `notes`: comments above it in the new plan; `is_offered`: a model wrote it, so nobody has reviewed it yet.
    """

    keys: Mapping[str, Any]
    action: Action
    file: str
    head: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    is_offered: bool = False


def compose(order: Order, files: Sequence[str], on_progress: OnProgress) -> Generated:
    """Return a plan for the facts that the goal names; raises InvalidInput for a fact that no part provides.

    `files`: plans whose steps may be used; (): those of the folder and of `plans/`.
    """
    parts = dict(_from_files(files or _plans_in_project(order.file), named=bool(files)))
    parts |= {name: part for name, part in _from_commands() if name not in parts}
    plan = _settings_plan(order)
    offer, talk = Offer(), _talk(order, plan, on_progress)
    if talk is not None:
        offer = _asked_for(order, plan, parts, talk)
        parts |= _from_offer(offer)
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
            with_facts=True,
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


def _from_offer(offer: Offer) -> Parts:
    found: Parts = {}
    for action in offer.actions:
        review = offer.reviews.get(action.name, "").strip()
        notes = (f"written by {offer.model}: read every command", *([f"review: {review}"] if review else ()))
        keys = offer.keys[action.name]
        found[action.name] = Part(keys=keys, action=action, file=offer.model, notes=notes, is_offered=True)
    return found


def _why_none(found: Found, otherwise: str) -> str:
    given = found.problem.start.union(*[action.provides for action in found.problem.actions])
    wanted = {fact for action in found.problem.actions for fact in action.requires} - given
    return f"{otherwise}; nothing provides {', '.join(sorted(wanted))}" if wanted else otherwise


def _settings_plan(order: Order) -> Plan:
    """Return a plan with the policy of new ones: the limits of a search come from the command line alone."""
    policy = f"{{auto_approve: {POLICY.auto_approve}, llm_auto_approve: {POLICY.llm_auto_approve}}}"
    text = f"version: 1\npolicy: {policy}\nsteps:\n  - id: {_STEP}\n    run: 'true'\n"
    return load_bytes(text.encode(), order.file, cache=False)


def _facts_in(goal: str, parts: Iterable[Part]) -> frozenset[str]:
    known = sorted({fact for part in parts for fact in part.action.provides})
    wanted = goal.replace(",", " ").split()
    for word in wanted:
        if word not in known:
            hint = did_you_mean(word, known) or f"known facts: {', '.join(known[:20]) or 'none'}"
            raise InvalidInput(f'no step or command of this project provides the fact "{word}"; {hint}')
    return frozenset(wanted)


def _plans_in_project(target: str) -> Iterator[str]:
    """Yield plan files of this folder and of `plans/`, without the file that is written."""
    count = 0
    for folder in ("", "plans"):
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            is_plan = name.endswith((".yml", ".yaml")) and not name.startswith(".")
            if is_plan and os.path.isfile(path) and os.path.normpath(target) != path and count < _MOST_FILES:
                count += 1
                yield path


def _from_files(files: Iterable[str], *, named: bool) -> Iterator[tuple[str, Part]]:
    """Yield the steps of plans that provide facts, by their new ids; a file that is no plan counts if it was named."""
    seen: set[str] = set()
    for file in files:
        try:
            data = read_source(file)
            plan = load_bytes(data, file, cache=False)
        except InvalidPlan:
            if named:
                raise
            continue
        for part_id, part in _of_plan(plan, data):
            name = part_id if part_id not in seen else f"{plan.name}-{part_id}"
            seen.add(name)
            yield name, part.but(action=_renamed(part.action, name))


def _of_plan(plan: Plan, data: bytes) -> Iterator[tuple[str, Part]]:
    root, _ = parse(data, plan.file)
    assert root is not None  # it has been loaded
    history = read(path_of(os.path.join(os.getcwd(), HOME), plan))
    estimates = Estimates(history=history)
    head = {key: to_data(node) for key, node in root.value.items() if key in _HEAD}
    written = {raw.id: to_data(raw.node) for raw in Outline(root, plan.file, data).steps}
    written |= {part.value["id"].value: to_data(part) for part in parts_of(root)}
    steps = {step.id: step for step in (*plan.main(), *(plan.search.parts if plan.search else ()))}
    for name, step in steps.items():
        if step.provides and name in written and _is_complete(step, steps):
            action = action_of(step, estimates, requires=_requires(step, steps), source=plan.file)
            yield name, Part(keys=written[name], action=action, file=plan.file, head=head)


def _is_complete(step: Step, steps: Mapping[str, Step]) -> bool:
    """Return whether facts say all that a step needs: not where it depends on a step that provides none."""
    return bool(step.requires) or all(edge.on in steps and steps[edge.on].provides for edge in step.edges)


def _requires(step: Step, steps: Mapping[str, Step]) -> frozenset[str]:
    """Return what a step requires: its own facts, and those of the steps that it depends on."""
    found = set(step.requires)
    for edge in step.edges:
        if edge.on in steps and not step.requires:
            found |= set(steps[edge.on].provides)
    return frozenset(found)


def _from_commands() -> Iterator[tuple[str, Part]]:
    """Yield the commands for tests, checks and builds that the project's own files name."""
    for command in commands(read_repository()):
        keys = {"id": command.use, "run": command.run, "provides": _FACTS[command.use]}
        text = plan_text([], {"version": 1}, [entry_text(keys, 2)])
        step = load_bytes(text.encode(), command.file, cache=False).steps[0]
        yield (
            command.use,
            Part(keys=keys, action=action_of(step, Estimates(), source=command.file), file=command.file),
        )


def _renamed(action: Action, name: str) -> Action:
    from dataclasses import replace

    return replace(action, name=name)


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
