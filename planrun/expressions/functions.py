"""The named functions, each total: any arguments give a value or an EvaluationError."""

from __future__ import annotations

import json

from planrun.errors import EvaluationError
from planrun.expressions.tree import MAX_INTEGER, MAX_SIZE
from planrun.expressions.values import bounded, called, json_text, same, text_of, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_JSON_DEPTH = 64
_MAX_DIGITS = 19
_INFINITY = float("inf")


def length(value: Any) -> int:
    """Return the number of characters, items or keys."""
    found = type_of(value)
    if found not in ("string", "array", "object"):
        raise EvaluationError(f"len requires a string, an array or an object, got {called(found)}")
    return len(value)


def contains(whole: Any, part: Any) -> bool:
    """Return whether a string has a part, an array an item, an object a key."""
    found = type_of(whole)
    if found == "array":
        return any(same(item, part) for item in whole)
    if found not in ("string", "object"):
        raise EvaluationError(f"contains requires a string, an array or an object, got {called(found)}")
    if type(part) is not str:
        wanted = "a part of a string" if found == "string" else "a key"
        raise EvaluationError(f"{wanted} must be a string, got {called(type_of(part))}")
    return part in whole


def startswith(text: Any, part: Any) -> bool:
    """Return whether a string begins with another."""
    return _string("startswith", text).startswith(_string("startswith", part))


def endswith(text: Any, part: Any) -> bool:
    """Return whether a string ends with another."""
    return _string("endswith", text).endswith(_string("endswith", part))


def join(items: Any, separator: Any = "") -> str:
    """Return the texts of an array's items in one, with `separator` between."""
    found = type_of(items)
    if found != "array":
        raise EvaluationError(f"join requires an array, got {called(found)}")
    between = _string("join", separator)
    texts: list[str] = []
    size = 0
    for item in items:
        texts.append(text_of(item))
        size += len(texts[-1]) + len(between)
        if size > MAX_SIZE + len(between):
            break
    return bounded(between.join(texts))


def tojson(value: Any) -> str:
    """Return a value as compact JSON."""
    return json_text(value)


def fromjson(text: Any) -> Any:
    """Return the value of a JSON text; numbers beyond 64 bits, NaN and deep nesting are errors."""
    source = bounded(_string("fromjson", text))
    try:
        value = json.loads(source, parse_int=_integer, parse_float=_number, parse_constant=_refuse)
    except RecursionError:
        raise EvaluationError("fromjson: the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise EvaluationError(f"fromjson: {error}") from None
    _refuse_strange(value)
    return value


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS + 1 or not -MAX_INTEGER <= int(digits) <= MAX_INTEGER:
        raise EvaluationError("fromjson: a number has more than 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if value in (_INFINITY, -_INFINITY):
        raise EvaluationError("fromjson: a number is too large")
    return value


def _refuse(word: str) -> None:
    raise EvaluationError(f"fromjson: {word} is not valid JSON")


def _refuse_strange(value: Any) -> None:
    """Refuse half characters, which no file and no process takes, and what is nested too deep to be walked."""
    waiting = [(value, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise EvaluationError("fromjson: a string contains a lone surrogate")
        elif isinstance(value, (list, dict)):
            if depth > _MAX_JSON_DEPTH:
                raise EvaluationError(f"fromjson: the value is nested deeper than {_MAX_JSON_DEPTH}")
            waiting.extend((item, depth + 1) for item in value)
            if isinstance(value, dict):
                waiting.extend((item, depth + 1) for item in value.values())


def _string(function: str, value: Any) -> str:
    if type(value) is not str:
        raise EvaluationError(f"{function} requires a string, got {called(type_of(value))}")
    return value


# `default` and `hash_files` are not here: they need the tree and the scope, see `evaluate`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": length,
    "contains": contains,
    "startswith": startswith,
    "endswith": endswith,
    "join": join,
    "tojson": tojson,
    "fromjson": fromjson,
}
