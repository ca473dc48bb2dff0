"""Values as expressions see them: their type, their equality, their text. No type is ever turned into another."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.tree import MAX_SIZE
from planrun.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Type

_TYPES: dict[type, Type] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}
NUMBERS = ("integer", "number")


def type_of(value: Any) -> Type:
    """Return the type of a value; raises EvaluationError for what is no value of the language."""
    found = _TYPES.get(type(value))
    if found is None:
        if isinstance(value, dict):  # the engine's lazily filled ones
            return "object"
        raise EvaluationError(f"unsupported type of value: {type(value).__name__}")
    return found


def called(name: str) -> str:
    """Return a type's name with its article."""
    return _ARTICLES.get(name, f"a {name}")


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal; other than Python's, True is not 1, at no depth."""
    try:
        return _same(left, right)
    except RecursionError:
        raise EvaluationError("the value is nested too deeply") from None


def _same(left: Any, right: Any) -> bool:
    first, second = type_of(left), type_of(right)
    if first in NUMBERS and second in NUMBERS:
        return bool(left == right)
    if first != second:
        return False
    if first == "array":
        return len(left) == len(right) and all(map(_same, left, right))
    if first == "object":
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def text_of(value: Any) -> str:
    """Return the text of a string, number or boolean, the latter as in JSON; raises EvaluationError."""
    found = type_of(value)
    if found == "string":
        return bounded(value)
    if found in ("array", "object"):
        raise EvaluationError(f"{called(found)} cannot be converted to a string; use tojson or join")
    if found == "null":
        raise EvaluationError("null cannot be converted to a string; use default(value, '')")
    return json_text(value)


def json_text(value: Any) -> str:
    """Return compact JSON; raises EvaluationError for what is too large, too deep or no JSON."""
    try:
        _measure(value)
        return bounded(jsontext.dumps(value))
    except (TypeError, ValueError) as error:
        raise EvaluationError(str(error)) from None
    except RecursionError:
        raise EvaluationError("the value is nested too deeply") from None


def bounded(text: str) -> str:
    """Return `text` when it is within the limit for one value; raises EvaluationError."""
    if len(text) > MAX_SIZE:
        raise EvaluationError(f"the string has more than {MAX_SIZE} characters")
    return text


def _measure(value: Any) -> None:
    """Raise EvaluationError when the JSON of `value` would be too large, before any of it is made."""
    size = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        size += len(value) if isinstance(value, str) else 1
        if size + len(waiting) > MAX_SIZE:
            raise EvaluationError(f"the value has more than {MAX_SIZE} characters as JSON")
        if isinstance(value, dict):
            waiting.extend(value.keys())
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
