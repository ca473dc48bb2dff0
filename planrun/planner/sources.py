"""Where the steps of a composed plan come from: plans, commands that files of the project name, templates, tools."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from shutil import which

from planrun.errors import InvalidPlan, PlanrunError
from planrun.llm.offline import searched
from planrun.llm.plantext import entry_text, plan_text
from planrun.llm.repository import commands, is_private
from planrun.model.record import Record
from planrun.model.tools import CATALOGUE
from planrun.plan.keys.outline import Outline
from planrun.plan.keys.search import parts_of
from planrun.plan.load import load_bytes
from planrun.plan.schema.forms import to_data
from planrun.plan.templates import REQUIREMENTS, filled, known, opened
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.file import read_source
from planrun.planner.facts import Estimates, action_of
from planrun.planner.repository import read_repository
from planrun.records.history import path_of, read
from planrun.records.rundir import HOME
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.repository import Repository
    from planrun.model.plan import Plan, Step
    from planrun.plan.templates import Template
    from planrun.search.space import Action

_HEAD = ("params", "env", "env_file", "secrets", "defaults", "containers", "agents")
"""What steps of a plan may need of the keys above them."""
_FACTS = {"test": "tested", "lint": "linted", "build": "built"}
"""The facts that commands provide which the project's files name."""
_MOST_FILES = 50
_UNSET = "UNSET-VARIABLE"  # in the place of variables of templates that have no default


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


def parts_of_project(target: str, files: Sequence[str]) -> dict[str, Part]:
    """Return all parts by their new ids; what the project says itself comes first.

    `target`: the file that is written; `files`: plans whose steps may be used, (): those of the folder and of `plans/`.
    """
    parts = dict(_from_files(files or _plans_in_project(target), named=bool(files)))
    repository = read_repository()
    for source in (_from_commands(repository), _from_templates(), _from_catalogue(repository)):
        for name, part in source:
            if name not in parts:
                parts[name] = part
    return parts


def usable_plans(target: str) -> dict[str, str]:
    """Return the plans of this project that a step can use: their paths, and what each is for and takes."""
    found = {}
    for path in _plans_in_project(target):
        if is_private(path):
            continue
        try:
            plan = load_bytes(read_source(path), path, cache=False)
        except PlanrunError:
            continue
        params = [f"{param.name}: {param.schema.get('type', 'string')}" for param in plan.params]
        about = plan.description or plan.goal or plan.title or plan.name
        found[f"./{path}"] = f"{line(about, 200)}; parameters: {', '.join(params) or 'none'}"
    return found


def fitting_templates(goal: str) -> list[str]:
    """Return the templates that fit a goal or the files that are there, each with the command that makes a plan of it.

    One that lacks files fits nothing; the one that shares most words with the goal comes first.
    """
    words = {word.lower() for word in searched(goal)}
    found = []
    for file in known().values():
        try:
            template = opened(file)
        except (InvalidPlan, OSError):
            continue
        about = set(re.findall(r"[a-z]+", f"{file.name} {template.description}".lower()))
        if all(map(os.path.isfile, template.prerequisites)) and (template.prerequisites or words & about):
            needed = [name for name, fragment in template.vars.items() if fragment.get("required")]
            given = "".join([f" --var {name}=…" for name in needed])
            text = f"{file.name} ({line(template.description, 200)}): planrun templates render {file.name}{given}"
            found.append((-len(words & about), text))
    return [text for _, text in sorted(found)]


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
            found = set(step.requires)
            for edge in step.edges:
                if edge.on in steps and not step.requires:
                    found |= set(steps[edge.on].provides)
            action = action_of(step, estimates, requires=frozenset(found), source=plan.file)
            yield name, Part(keys=written[name], action=action, file=plan.file, head=head)


def _is_complete(step: Step, steps: Mapping[str, Step]) -> bool:
    """Return whether facts say all that a step needs: not where it depends on a step that provides none."""
    return bool(step.requires) or all(edge.on in steps and steps[edge.on].provides for edge in step.edges)


def _from_commands(repository: Repository) -> Iterator[tuple[str, Part]]:
    """Yield the commands for tests, checks and builds that the project's own files name."""
    for command in commands(repository):
        keys = {"id": command.use, "run": command.run, "provides": _FACTS[command.use]}
        text = plan_text([], {"version": 1}, [entry_text(keys, 2)])
        step = load_bytes(text.encode(), command.file, cache=False).steps[0]
        yield (
            command.use,
            Part(keys=keys, action=action_of(step, Estimates(), source=command.file), file=command.file),
        )


def _renamed(action: Action, name: str, source: str = "") -> Action:
    return replace(action, name=name, source=source or action.source)


def _from_templates() -> Iterator[tuple[str, Part]]:
    """Yield the steps of templates that provide facts, where all that a template needs is there.

    A step that needs a variable without a default is left out.
    """
    for file in known().values():
        try:
            template = opened(file)
            if all(map(which, template.requires)) and all(map(os.path.isfile, template.prerequisites)):
                yield from _of_template(template, file.name)
        except (InvalidPlan, OSError):
            continue


def _of_template(template: Template, name: str) -> Iterator[tuple[str, Part]]:
    values = {key: fragment.get("default", _UNSET) for key, fragment in template.vars.items()}
    data = to_data(filled(template, values))
    defaults = data.get("defaults", {})
    steps = [
        {**_edges_of(step), **{key: value for key, value in defaults.items() if key not in step}}
        for step in data["steps"]
        if step["id"] != REQUIREMENTS and _UNSET not in repr(step)
    ]
    facts = {step["id"] for step in steps}
    whole = [step for step in steps if facts.issuperset(step.get("depends_on", ()))]
    text = plan_text([], {"version": 1}, [entry_text(step, 2) for step in whole])
    plan = load_bytes(text.encode(), f"{name}.yml", cache=False)
    for part_id, part in _of_plan(plan, plan.source):
        new = f"{name}-{part_id}"
        yield (
            new,
            part.but(file=f"the template {name}", action=_renamed(part.action, new, f"template {name}")),
        )


def _edges_of(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step of a template without the edge to the check of its requirements, which are there."""
    edges = [edge for edge in step.get("depends_on", ()) if edge != REQUIREMENTS]
    rest = {key: value for key, value in step.items() if key != "depends_on"}
    return {**rest, "depends_on": edges} if edges else rest


def _from_catalogue(repository: Repository) -> Iterator[tuple[str, Part]]:
    """Yield the calls of tools whose effects the catalogue knows as facts; those of git only where git is used."""
    for spec in CATALOGUE.values():
        if spec.name.startswith("git.") and not repository.git:
            continue
        for act in spec.acts:
            keys = {"id": act["id"], "title": act["title"], "tool": spec.name, **act}
            text = plan_text([], {"version": 1}, [entry_text(keys, 2)])
            step = load_bytes(text.encode(), spec.name, cache=False).steps[0]
            action = action_of(step, Estimates(), source=f"tool {spec.name}")
            yield step.id, Part(keys=keys, action=action, file=f"the catalogue of tools, {spec.name}")
