"""The templates that are at hand, by name, and plans made of them as text, comments and all."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.includes import IncludedPlans, check_tree
from planrun.plan.load import check_bytes
from planrun.plan.problems import did_you_mean
from planrun.plan.templates import filled, read_template, value_problem
from planrun.plan.yaml.file import read_source
from planrun.templates.render import plan_text
from planrun.values import read_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.plan.problems import Problem
    from planrun.plan.templates import Template

PROJECT = "plans/templates"  # a project's own, seen from the folder that planrun runs in
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "templates")
_ENDINGS = (".yml", ".yaml")


class Found(Record):
    """Where a template is: `source` is project or shipped; `hides`: a shipped one has the same name."""

    name: str
    file: str
    source: str
    hides: bool = False


class Rendered(Record):
    """A plan that was made of a template: its text, the number of its steps, and warnings about it."""

    text: str
    steps: int
    warnings: tuple[Problem, ...] = ()


def known() -> dict[str, Found]:
    """Return all templates by name, in the order of their names; a project's own comes before a shipped one."""
    shipped, own = _in_folder(SHIPPED), _in_folder(PROJECT)
    found = {name: Found(name=name, file=file, source="shipped") for name, file in shipped.items()}
    for name, file in own.items():
        found[name] = Found(name=name, file=file, source="project", hides=name in shipped)
    return {name: found[name] for name in sorted(found)}


def find(name: str) -> Found:
    """Return a template by its name or by the path of its file; raises InvalidInput."""
    if name.endswith(_ENDINGS) or "/" in name:
        return Found(name=os.path.basename(name).partition(".")[0], file=name, source="project")
    templates = known()
    if name not in templates:
        hint = did_you_mean(name, templates) or f"templates are {', '.join(templates)}"
        raise InvalidInput(f'there is no template "{name}"; {hint}')
    return templates[name]


def opened(found: Found) -> Template:
    """Return a template, read; raises InvalidPlan."""
    return read_template(read_source(found.file), found.file)


def values_of(template: Template, given: Iterable[str]) -> dict[str, Any]:
    """Return the values of a template's variables from `name=value` texts.

    Raises InvalidInput with all that is wrong.
    """
    problems: list[str] = []
    texts = _texts(template, given, problems)
    values: dict[str, Any] = {}
    for name, fragment in template.vars.items():
        if name in texts:
            try:
                values[name] = _read(fragment, texts[name])
            except ValueError as error:
                problems.append(f'the variable "{name}" {error}')
        elif "default" in fragment:
            values[name] = fragment["default"]
        elif fragment.get("required"):
            problems.append(f'the variable "{name}" is required: give it by --var {name}=VALUE')
    if problems:
        raise InvalidInput("; ".join(problems))
    return values


def _texts(template: Template, given: Iterable[str], problems: list[str]) -> dict[str, str]:
    """Return what is given by name, and add to the `problems` what names nothing or is given twice."""
    texts: dict[str, str] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            problems.append(f'a variable is given as name=value, not "{word[:60]}"')
        elif name in texts:
            problems.append(f'the variable "{name}" is given twice')
        elif name not in template.vars:
            there = f"there are {', '.join(template.vars)}" if template.vars else "the template has none"
            problems.append(f'there is no variable "{name}"; {did_you_mean(name, template.vars) or there}')
        texts[name] = text
    return texts


def _read(fragment: Mapping[str, Any], text: str) -> Any:
    value = read_value(fragment, text)
    if why := value_problem(value):
        raise ValueError(why)
    return value


def render(template: Template, name: str, values: Mapping[str, Any]) -> Rendered:
    """Return the plan that a template becomes; raises InvalidPlan with what is wrong, at its place in the template."""
    tree = filled(template, values)
    problems = check_tree(tree, template.data, IncludedPlans(template.file))
    errors = [each for each in problems if each.severity == "error"]
    if errors:
        raise InvalidPlan(errors, sources={template.file: template.data})
    text = plan_text(template, tree, name, values)
    findings = check_bytes(text.encode(), f"{name}.yml")
    errors = [each for each in findings.problems if each.severity == "error"]
    if errors or findings.steps is None:  # files that it uses are looked for from another place
        raise InvalidPlan(errors, sources={f"{name}.yml": text.encode()})
    return Rendered(text=text, steps=findings.steps, warnings=findings.problems)


def _in_folder(folder: str) -> dict[str, str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    return {
        name.rpartition(".")[0]: os.path.join(folder, name)
        for name in names
        if name.endswith(_ENDINGS) and not name.startswith(".")
    }
