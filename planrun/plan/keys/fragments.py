"""Params and declared outputs: read as JSON Schema fragments, and checked as far as no value is needed."""

from __future__ import annotations

from time import process_time

from planrun.plan.keys.outline import Outline, members
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.values import PLAIN_KEYS, TYPES, check_value, fits, pattern_problem, schema_problem, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_MATCHING = 0.5  # seconds of processor time after which no further default is checked that may take long
MAX_SCHEMAS = 4000  # fragments inside each other, of the whole plan, that are more than plain: a second
_QUICK = PLAIN_KEYS - {"pattern"}
_VALUES = ("default", "const")
_LISTS = ("enum", "examples")
_TEXTS = ("pattern", "title", "description")
_NUMBERS = ("minimum", "maximum")
# A part of another kind is left out: the check of the shape has reported it.
_SHAPES = {**dict.fromkeys(_LISTS, SEQUENCE), **dict.fromkeys(_TEXTS, SCALAR)}


def read_fragment(node: Node) -> dict[str, Any]:
    """Return the fragment that stands under a name, in its long or short form, always with a `type`.

    Where text is wanted, scalars are text as they were written: `3.10` is no number then.
    """
    if node.kind != MAPPING:
        return {"type": node.value if node.kind == SCALAR and node.value in TYPES else "string"}
    wanted = _type_of_fragment(node)
    fragment: dict[str, Any] = {"type": wanted}
    for key, value in node.value.items():
        if key != "type" and (key not in _SHAPES or _SHAPES[key] == value.kind):
            if key in _LISTS:
                found = [to_data(item, wanted) for item in value.value]
            elif key in _TEXTS:
                found = value.value
            else:
                found = to_data(value, wanted if key in _VALUES else "")
            if key not in _NUMBERS or fits("number", found):
                fragment[key] = found
    return fragment


def _type_of_fragment(node: Node) -> str:
    """Return the declared type, else that of the values that are named, else string."""
    declared = node.get("type")
    if declared is not None:
        return str(declared.value) if declared.value in TYPES else "string"
    for key in ("default", "const", "enum"):
        named = node.get(key)
        if named is not None and key == "enum":
            named = named.value[0] if named.kind == SEQUENCE and named.value else None
        if named is not None:
            found = type_of(to_data(named))
            return found if found in TYPES else "string"
    return "string"


def check_fragments(outline: Outline, node: Node | None, what: str) -> dict[str, dict[str, Any]]:
    """Return the fragments of a mapping by name, and report what is wrong with them; `what` names their kind."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in members(node):
        fragment = found[name] = read_fragment(value)
        if value.kind == MAPPING:
            check_fragment(outline, f'{what} "{name}"', value, fragment)
    return found


def _affords(outline: Outline, what: str, node: Node, fragment: dict[str, Any]) -> bool:
    """Say whether a fragment can still be checked; the first that cannot is reported."""
    if outline.schemas > MAX_SCHEMAS:
        return False
    outline.schemas += _schemas(fragment)
    if outline.schemas > MAX_SCHEMAS:
        outline.report("E241", f"{what}: the plan has more than {MAX_SCHEMAS:,} nested schemas", node)
        return False
    return True


def _schemas(fragment: dict[str, Any]) -> int:
    """Count the mappings in a fragment that says more than a plain one: each may be a schema."""
    if fragment.keys() <= PLAIN_KEYS:
        return 0
    count = 1
    waiting: list[Any] = [part for key, part in fragment.items() if key not in (*_VALUES, *_LISTS)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            count += 1
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return count


def check_fragment(outline: Outline, what: str, node: Node, fragment: dict[str, Any]) -> None:
    """Report what is wrong with a fragment that was read from a mapping; `what` names it in messages."""
    pattern = node.get("pattern")
    if pattern is not None and pattern.kind == SCALAR:
        problem = pattern_problem(pattern.value)
        if problem:
            outline.report("E221", f"{what}: {problem}", pattern)
            return
    if not _affords(outline, what, node, fragment):
        return
    problem = schema_problem(fragment)
    if problem:
        if outline.sound:  # else that is what was wrong with its shape
            outline.report("E221", f"{what}: {problem}", node)
        return
    listed = node.get("enum")
    for item in listed.value if listed is not None and listed.kind == SEQUENCE else ():
        value = to_data(item, fragment["type"])
        if not fits(fragment["type"], value):
            outline.report(
                "E222", f"{what}: this value {check_value({'type': fragment['type']}, value)}", item
            )
    default = node.get("default")
    if default is not None:
        problem = check_within(outline, fragment, fragment["default"])
        if problem:
            outline.report("E222", f"{what}: its default {problem}", default)


def check_within(outline: Outline, fragment: dict[str, Any], value: Any) -> str | None:
    """Return what is wrong with a value as a clause; it is checked while others have not used up their time."""
    if fragment.keys() <= _QUICK:
        return check_value(fragment, value)
    if outline.matching > MAX_MATCHING:
        return "was not checked: earlier checks took too long"
    began = process_time()  # the plan's own: a busy machine does not make a plan wrong
    problem = check_value(fragment, value)
    outline.matching += process_time() - began
    return problem
