"""The members of a group when it opens, and its outputs when all of them have ended."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.evaluate import evaluate, name_of
from planrun.expressions.render import render, render_text
from planrun.model.globs import is_literal
from planrun.model.groups import MAX_PRODUCT, combine, member, size, unnameable
from planrun.model.plan import Group
from planrun.values import check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Step, Text
    from planrun.model.state import RunState
    from planrun.ports import Masks


def opening(group: Step, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of StepOpened that describe the members of a group; raises EvaluationError.

    `scope`: the names that expressions of the group itself can read.
    """
    if group.grouping.form == "uses":
        return {"params": _params(group.grouping, scope)}
    if group.grouping.template is None:
        return {}
    return {"items": _items(group.grouping, scope)}


def allow(group: Step, fields: dict[str, Any], state: RunState, masks: Masks | None) -> None:
    """Raise EvaluationError for more instances than the plan may have steps, or that make the same file.

    And for secrets in their names.
    """
    items = fields.get("items", ())
    count = len(items)
    limits = state.plan.limits
    if count > limits.max_items:
        raise EvaluationError(f"it gives {count:,} instances; `max_items` allows {limits.max_items:,}")
    others = sum(found.step.group != group.id for found in state.counted())
    if count and others + count > limits.max_steps:
        raise EvaluationError(f"with {count:,} instances the plan has more steps than `max_steps` allows")
    if group.grouping.form != "uses":
        template = group.grouping.template
        made = [member(group, template, each) for each in items] if template else []
        made += [state.steps[name].step for name in group.grouping.members] if template is None else []
        first: dict[str, str] = {}
        for step in made if any(step.makes for step in made) else ():
            for path in filter(None, [_file(text, step) for text in step.makes]):
                other = first.setdefault(path, step.id)
                if other != step.id:
                    raise EvaluationError(f'{other} and {step.id} both make "{path}"')
    for on, _ in group.grouping.same:
        for each in items:
            if f"{on}[{each['instance']}]" not in state.steps:
                raise EvaluationError(f'{on} has no instance "{each["instance"]}" to depend on')
    if masks is not None:
        for number, each in enumerate(items, 1):
            if masks.mask_value((each,)) != (each,):
                raise EvaluationError(
                    f"instance {number} contains a secret, which names and records would show"
                )


def _file(text: Text, step: Step) -> str:
    """Return the one file that a pattern of an instance matches, "" if it may match several or is unknown yet."""
    parts = (text,) if isinstance(text, str) else text[1]
    if not all(is_literal(part) for part in parts if isinstance(part, str)):
        return ""
    try:
        scope = {"matrix": step.matrix, "item": step.item[0] if step.item else None}
        return text if isinstance(text, str) else render_text(text, scope)
    except EvaluationError:
        return ""


def gathered(group: Step, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs of a group that completed: only included plans have their own. Raises EvaluationError.

    `scope`: the names that expressions of that plan can read.
    """
    return {name: render(value, scope) for name, value in group.grouping.outputs.items()}


def _params(group: Group, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an included plan; raises EvaluationError with all problems."""
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for param in group.params:
        if param.name in group.given:
            values[param.name] = _filled(group.given[param.name], scope)
            problem = check_value(param.schema, values[param.name])
            if problem:
                wrong.append(f'the parameter "{param.name}" of {group.file} {problem}')
        elif "default" in param.schema:
            values[param.name] = param.schema["default"]
    if wrong:
        raise EvaluationError("; ".join(wrong))
    return values


def _filled(value: Any, scope: dict[str, Any]) -> Any:
    """Return data with its templates, which are tuples, filled in."""
    if isinstance(value, tuple):
        return render(value, scope)
    if isinstance(value, dict):
        return {key: _filled(item, scope) for key, item in value.items()}
    return [_filled(item, scope) for item in value] if isinstance(value, list) else value


def _items(group: Group, scope: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    made = _combinations(group, scope) if group.form == "matrix" else _numbered(group, scope)
    seen: set[str] = set()
    for each in made:
        if each["instance"] in seen:
            raise EvaluationError(f'two instances are called "{each["instance"]}"')
        seen.add(each["instance"])
    return tuple(made)


def _numbered(group: Group, scope: dict[str, Any]) -> list[dict[str, Any]]:
    found = evaluate(group.items, scope)
    if not isinstance(found, list | tuple):
        raise EvaluationError("`foreach` needs a list")
    made = []
    for number, item in enumerate(found, 1):
        try:
            made.append({"instance": name_of(item, group.key), "item": item})
        except EvaluationError as error:
            raise EvaluationError(f"item {number} of `foreach` {error}") from None
    return made


def _combinations(group: Group, scope: dict[str, Any]) -> list[dict[str, Any]]:
    axes = {name: _axis(name, values, scope) for name, values in group.axes.items()}
    count = size(axes)
    if count > MAX_PRODUCT:
        raise EvaluationError(f"`matrix` has {count:,} combinations; at most {MAX_PRODUCT:,} are looked at")
    found = combine(axes, group.include, group.exclude)
    for name, _ in found:
        if wrong := unnameable(name):
            raise EvaluationError(f"an instance of `matrix` has a name that {wrong}")
    return [{"instance": name, "matrix": values} for name, values in found]


def _axis(name: str, values: Any, scope: dict[str, Any]) -> list[Any]:
    found = evaluate(values, scope) if isinstance(values, tuple) else values
    if not isinstance(found, list | tuple):
        raise EvaluationError(f'the axis "{name}" needs a list')
    for value in found:
        if value is None or isinstance(value, list | tuple | dict):
            raise EvaluationError(
                f'the axis "{name}" has a value that is not a string, a number or a boolean'
            )
    return list(found)
