"""What a group is made of when it opens, and what it hands on when all its members have ended."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.expressions.render import render
from planrun.model.groups import MAX_MEMBERS
from planrun.model.plan import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Step


def opening(group: Step, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of StepOpened that tell what a group is made of; raises EvaluationError.

    `scope`: the names that expressions of the group itself can read.
    """
    assert isinstance(group.action, Group)
    if group.action.template is None:
        return {}
    return {"items": _items(group.action, scope)}


def gathered(group: Step, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs of a group that completed: only another plan has any of its own. Raises EvaluationError.

    `scope`: the names that expressions of that plan can read.
    """
    assert isinstance(group.action, Group)
    return {name: render(value, scope) for name, value in group.action.outputs.items()}


def _items(group: Group, scope: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    found = evaluate(group.items, scope) if group.items and isinstance(group.items[0], str) else group.items
    if not isinstance(found, list | tuple):
        raise EvaluationError("`foreach` needs a list")
    if len(found) > MAX_MEMBERS:
        raise EvaluationError(f"`foreach` gives {len(found)} items; at most {MAX_MEMBERS} are allowed")
    made: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(found, 1):
        name = _name(group, scope, item, number)
        if name in made:
            raise EvaluationError(f'two items have the key "{name}"')
        made[name] = {"instance": name, "item": item}
    return tuple(made.values())


def _name(group: Group, scope: dict[str, Any], item: Any, number: int) -> str:
    value = item if group.key is None else evaluate(group.key, {**scope, "item": item})
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        hint = "" if group.key else "; say by `key:` what an item is called"
        raise EvaluationError(f"item {number} has no key{hint}")
    return str(value)
