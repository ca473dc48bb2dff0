"""A template as the base of a plan: filled with the values that the plan gives, and checked as a plan."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.source.checking import check_filled
from planrun.source.filling import value_problem
from planrun.source.fragments import check_within
from planrun.source.node import Node
from planrun.source.outline import members
from planrun.source.shape import to_data
from planrun.source.templates import Template, filled, read_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.outline import Outline
    from planrun.source.problems import Problem
    from planrun.source.shelf import Shelf
    from planrun.source.validate import Checked


def check_filled_base(
    outline: Outline, node: Node, text: tuple[bytes, str], shelf: Shelf
) -> tuple[Checked | None, list[Problem]]:
    """Check the plan that the template of an `extends` becomes; `text`: its bytes and what people call it."""
    try:
        template = read_template(*text)
        if template.root.get("extends") is not None:
            template.outline.report("E298", "a template cannot extend a plan", template.root.keys["extends"])
            return None, template.outline.problems
        values = _values(outline, node, template)
        if values is None:
            return None, []
        return check_filled(filled(template, values), *text, shelf)
    except InvalidPlan as error:
        return None, list(error.problems)


def _values(outline: Outline, node: Node, template: Template) -> dict[str, Any] | None:
    """Return the values of the variables; None when one does not fit, which is reported where it is given."""
    before = len(outline.problems)
    given = node.get("with")
    values: dict[str, Any] = {}
    for name, value in members(given):
        assert given is not None
        fragment = template.vars.get(name)
        if fragment is None:
            hint = outline.nearest(name, template.vars) or f"there are {', '.join(template.vars) or 'none'}"
            outline.report("E291", f'the template has no variable "{name}"', given.key(name), hint)
            continue
        data = to_data(value, fragment["type"])
        why = check_within(outline, fragment, data) or value_problem(data)
        if why:
            outline.report("E291", f'the variable "{name}" {why}', value)
        values[name] = data
    for name, fragment in template.vars.items():
        if name in values:
            continue
        if "default" in fragment:
            values[name] = fragment["default"]
        elif fragment.get("required") is True:
            message = f'the template requires the variable "{name}"'
            outline.report("E291", message, node, f"give it: `with: {{{name}: …}}`")
    return None if len(outline.problems) > before else values
