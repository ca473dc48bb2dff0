"""What expressions read of instances: in a step with `matrix` or `foreach` its values, in others all outputs."""

from __future__ import annotations

from planrun.expressions.errors import ExpressionError
from planrun.expressions.tree import spelled
from planrun.expressions.values import NUMBERS, type_of
from planrun.source.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.expressions.check import Reference
    from planrun.expressions.tree import Path, Type
    from planrun.source.instances import Instances

    Finding = tuple[str, str, str]  # code, message, hint

ROOTS = {"matrix": "matrix", "foreach": "item"}
"""What a member of each form reads its values by."""
FIELDS = ("status", "all", "by")
_OF_ONE = ("outputs", "exit_code", "attempts")
MAX_NAMED = 5


# The values of a member.


def wrong_value(each: Instances | None, kind: str, reference: Reference) -> Iterator[Finding]:
    """Yield what is wrong with a path that begins with `matrix` or `item`; `kind` is that of its formula."""
    path = reference.path
    root = str(path[0])
    if each is None or ROOTS[each.form] != root:
        key = "matrix" if root == "matrix" else "foreach"
        yield "E217", f"`{root}` cannot be used here: the step has no `{key}:`", ""
    elif kind == "list":
        yield "E217", f"`{root}` cannot be used here: it is made of this list", ""
    else:
        try:
            type_of_value(each, path)
        except ExpressionError as error:
            yield "E211", error.message, ""
            return
        lacking = None if reference.guarded else _lacking(each, path)
        if lacking:
            hint = f"write default({spelled(path)}, otherwise)"
            yield "E219", f"`{spelled(path)}` has no value in {lacking}", hint


def type_of_value(each: Instances, path: Path) -> Type:
    """Return the type that a value has in every instance, "any" where they differ; raises ExpressionError."""
    if path[0] == "matrix" and len(path) > 1 and path[1] not in each.names:
        hint = did_you_mean(str(path[1]), each.names) or f"there are {', '.join(each.names)}"
        raise ExpressionError(f'the matrix has no "{path[1]}"; {hint}')
    if each.made is None:
        return _of_axis(each, path)
    found: set[Type] = set()
    failed: ExpressionError | None = None
    for made in each.made:
        try:
            found.add(type_of(_value(made, path)))
        except KeyError:
            continue
        except ExpressionError as error:
            failed = error
    if failed:
        raise failed
    if not found and each.made and path[0] == "item":
        raise ExpressionError(f"no item has a value under {spelled(path)}")
    return united(found)


def united(types: set[Type]) -> Type:
    """Return the type of a value that has one of these types."""
    if len(types) == 1:
        return next(iter(types))
    return "number" if types and types.issubset(NUMBERS) else "any"


def _of_axis(each: Instances, path: Path) -> Type:
    """Return the type of a value of a matrix one of whose axes is not known yet, or of an item."""
    if path[0] == "item" or len(path) == 1:
        return "any" if path[0] == "item" else "object"
    name = str(path[1])
    values = each.axes.get(name, [])
    if not isinstance(values, list):
        return "any"
    types = {type_of(value) for value in values}
    types |= {type_of(entry[name]) for entry in each.include if name in entry}
    kind = united(types)
    if len(path) > 2 and kind != "any":
        raise ExpressionError(f"{spelled(path[:2])} is of type {kind} and has no parts")
    return kind


def _value(made: Mapping[str, Any], path: Path) -> Any:
    """Return the value of a path in one instance; raises KeyError: it has none, ExpressionError: it has no parts."""
    value = made["matrix"] if path[0] == "matrix" else made["item"]
    for at, part in enumerate(path[1:], 1):
        if isinstance(value, dict) and isinstance(part, str):
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int):
            if not -len(value) <= part < len(value):
                raise KeyError(part)
            value = value[part]
        else:
            told = f"of type {type_of(value)} and has no parts"
            if isinstance(value, dict | list):
                told = f"of type {type_of(value)} and has no [{part!r}]"
            raise ExpressionError(f'{spelled(path[:at])} of "{made["instance"]}" is {told}')
    return value


def _lacking(each: Instances, path: Path) -> str:
    """Name the instances in which a path has no value."""
    if each.made is None:
        return _lacking_at_run_time(each, path)
    names = []
    for made in each.made:
        try:
            _value(made, path)
        except KeyError:
            names.append(f'"{made["instance"]}"')
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _lacking_at_run_time(each: Instances, path: Path) -> str:
    if path[0] == "item" or len(path) == 1:
        return ""
    name = path[1]
    if name not in each.axes:
        return "every instance, maybe"
    return "what `include` adds" if any(name not in entry for entry in each.include) else ""


# A group, as other steps read it.


def wrong_field(name: str, path: Path) -> Finding | None:
    """Return what is wrong with the field of a group that is asked for."""
    if len(path) > 2 and path[2] in FIELDS:
        return None
    if len(path) > 2 and path[2] in _OF_ONE:
        hint = f"read steps.{name}.all.<output> or steps.{name}.by['<instance>'].<output>"
        if path[2] != "outputs":
            hint = f"a group has {', '.join(FIELDS)}"
        return "E211", f'step "{name}" has instances, and no {path[2]} of its own', hint
    if len(path) < 3:
        return "E211", f"steps.{name} needs a field", f"fields are {', '.join(FIELDS)}"
    hint = did_you_mean(str(path[2]), FIELDS) or f"fields are {', '.join(FIELDS)}"
    return "E211", f'steps.{name} has no "{path[2]}"', hint


def wrong_output(each: Instances, outputs: Mapping[str, Any], path: Path) -> Finding | None:
    """Return what is wrong with a path to outputs of instances: an instance or an output that there is not."""
    name, field, rest = str(path[1]), path[2], path[3:]
    if field == "by" and rest:
        calls = each.calls
        if not isinstance(rest[0], str):
            return "E214", f"steps.{name}.by wants the name of an instance, a text", f"write by['{rest[0]}']"
        if calls is not None and rest[0] not in calls:
            hint = did_you_mean(rest[0], calls) or f"there are {_some(calls)}"
            return "E214", f'step "{name}" has no instance "{rest[0]}"', hint
        rest = rest[1:]
    if field == "status" or not rest or rest[0] in outputs:
        return None
    message = f'step "{name}" declares no output "{rest[0]}"'
    hint = (
        did_you_mean(str(rest[0]), outputs)
        or f'declare it: `outputs: {{{rest[0]}: string}}` in step "{name}"'
    )
    return "E214", message, hint


def type_in_group(outputs: Mapping[str, Mapping[str, Any]], path: Path) -> tuple[Type, int]:
    """Return the type of the first parts of a path into a group, and how many parts these are."""
    field = path[2]
    if field == "status":
        return "string", 3
    if field == "all":
        return ("object", 3) if len(path) == 3 else ("array", 4)
    if len(path) < 5:
        return "object", len(path)
    return outputs[str(path[4])]["type"], 5


def is_of_one(path: Path) -> bool:
    """Say whether a path leads to an output of one instance, which may be absent."""
    return len(path) > 4 and path[2] == "by"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:MAX_NAMED])
    return (
        shown + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "") if names else "none"
    )
