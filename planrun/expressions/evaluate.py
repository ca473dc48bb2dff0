"""The value of an expression: a walk over the tree, strict about types and bounded in size.

Hot: imported by every run.

What an item of a list is called, and which lists an expression may give.
"""

from __future__ import annotations

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.tree import (
    MAX_INTEGER,
    MAX_SIZE,
    NUMBERS,
    ROOT_KEY,
    called,
    same,
    spelled,
    text_of,
    type_of,
)
from planrun.model.groups import spelled_value, unnameable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.expressions.tree import Tree

    Scope = dict[str, Any]


_INFINITY = float("inf")


def evaluate(tree: Tree, scope: Scope) -> Any:
    """Return the value of `tree`; raises EvaluationError.

    `scope` maps the names of `tree.ROOTS` to nested dicts, lists or tuples and plain values. A dict may be of
    a subclass with `__missing__`, for what is expensive to know. `scope[ROOT_KEY]` is the folder in which
    `hash_files` works, absolute.
    """
    return _KINDS[tree[0]](tree, scope)


def _constant(tree: Tree, _scope: Scope) -> Any:
    return tree[3]


def _path(tree: Tree, scope: Scope) -> Any:
    value: Any = scope
    path = tree[3]
    try:
        for part in path:
            value = _part(value, part)
    except AbsentError:
        raise AbsentError(f"{spelled(path)} has no value") from None
    except EvaluationError as error:
        raise EvaluationError(f"{spelled(path)}: {error}") from None
    return value


def _item(tree: Tree, scope: Scope) -> Any:
    return _part(evaluate(tree[3], scope), evaluate(tree[4], scope))


def _part(value: Any, part: Any) -> Any:
    """Return one part of an object or array; attributes of Python objects do not exist here."""
    wanted: type
    if isinstance(value, dict):
        wanted = str
    elif isinstance(value, (list, tuple)):
        wanted = int
    elif value is None:
        raise AbsentError("null has no fields")
    else:
        raise EvaluationError(f"{called(type_of(value))} has no fields")
    if type(part) is not wanted:
        asked = (
            "a key of an object must be a string"
            if wanted is str
            else "an index of an array must be an integer"
        )
        raise EvaluationError(f"{asked}, got {called(type_of(part))}")
    try:
        return value[part]
    except (KeyError, IndexError):
        raise AbsentError(f"no such key or index: [{part!r}]") from None


def _list(tree: Tree, scope: Scope) -> Any:
    return [evaluate(item, scope) for item in tree[3]]


def _boolean(tree: Tree, scope: Scope, where: str) -> bool:
    value = evaluate(tree, scope)
    if type(value) is not bool:
        raise EvaluationError(f"{where} must be boolean, got {called(type_of(value))}")
    return value


def _and(tree: Tree, scope: Scope) -> bool:
    return all(_boolean(operand, scope, "`and`") for operand in tree[3])


def _or(tree: Tree, scope: Scope) -> bool:
    return any(_boolean(operand, scope, "`or`") for operand in tree[3])


def _not(tree: Tree, scope: Scope) -> bool:
    return not _boolean(tree[3], scope, "`not`")


def _if(tree: Tree, scope: Scope) -> Any:
    return evaluate(tree[4] if _boolean(tree[3], scope, "`if`") else tree[5], scope)


def _compare(tree: Tree, scope: Scope) -> bool:
    operator = tree[3]
    left, right = evaluate(tree[4], scope), evaluate(tree[5], scope)
    if operator in ("in", "not in"):
        from planrun.expressions.functions import contains

        return contains(right, left) is (operator == "in")
    first, second = type_of(left), type_of(right)
    numbers = first in NUMBERS and second in NUMBERS
    if operator in ("==", "!="):
        if first != second and not numbers and "null" not in (first, second):
            raise EvaluationError(
                f"cannot compare {called(first)} with {called(second)}: values are not converted"
            )
        return same(left, right) is (operator == "==")
    if not numbers and not first == second == "string":
        raise EvaluationError(f"`{operator}` requires two numbers or two strings, got {first} and {second}")
    return _ORDER[operator](left, right)


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_MATH: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}


def _math(tree: Tree, scope: Scope) -> Any:
    left, right = evaluate(tree[4], scope), evaluate(tree[5], scope)
    first, second = type_of(left), type_of(right)
    if first not in NUMBERS or second not in NUMBERS:
        hint = "; join strings by `~`" if "string" in (first, second) else ""
        raise EvaluationError(f"`{tree[3]}` requires two numbers, got {first} and {second}{hint}")
    return _within(lambda: _MATH[tree[3]](left, right))


def _negative(tree: Tree, scope: Scope) -> Any:
    value = evaluate(tree[3], scope)
    if type_of(value) not in NUMBERS:
        raise EvaluationError(f"`-` requires a number, got {called(type_of(value))}")
    return _within(lambda: -value)


def _within(compute: Callable[[], Any]) -> Any:
    """Return a computed number; raises EvaluationError when it is not finite or has more than 64 bits."""
    try:
        value = compute()
    except OverflowError:  # an integer of a parameter, too large to be made a float
        value = _INFINITY
    bound = MAX_INTEGER if type(value) is int else _INFINITY
    if -bound <= value <= bound and value not in (_INFINITY, -_INFINITY):
        return value
    raise EvaluationError("the number is too large")


def _concat(tree: Tree, scope: Scope) -> str:
    texts: list[str] = []
    size = 0
    for operand in tree[3]:
        texts.append(text_of(evaluate(operand, scope)))
        size += len(texts[-1])
        if size > MAX_SIZE:
            raise EvaluationError(f"the string has more than {MAX_SIZE} characters")
    return "".join(texts)


def _call(tree: Tree, scope: Scope) -> Any:
    name, arguments = tree[3], tree[4]
    if name == "default":
        first = arguments[0]
        otherwise = arguments[1]
        try:
            value = evaluate(first, scope)
        except AbsentError:
            value = None
        return evaluate(otherwise, scope) if value is None else value
    values = [evaluate(argument, scope) for argument in arguments]
    # Few plans call functions, and fewer hash: the others do not pay for their modules.
    if name == "hash_files":
        from planrun.expressions.functions import hash_files

        return hash_files(scope.get(ROOT_KEY), values)
    from planrun.expressions.functions import FUNCTIONS

    return FUNCTIONS[name](*values)


_KINDS: dict[str, Callable[[Tree, Scope], Any]] = {
    "const": _constant,
    "path": _path,
    "item": _item,
    "list": _list,
    "and": _and,
    "or": _or,
    "not": _not,
    "neg": _negative,
    "compare": _compare,
    "math": _math,
    "concat": _concat,
    "if": _if,
    "call": _call,
}


def name_of(item: Any, key: Tree | None) -> str:
    """Return the name of an item, by an expression over `item` or of itself; raises EvaluationError: it has none."""
    value = item if key is None else evaluate(key, {"item": item})
    if value is None or isinstance(value, list | tuple | dict):
        raise EvaluationError("has no name" if key else "has no name; name it by `key:`")
    name = spelled_value(value)
    wrong = "has an empty name" if not name else unnameable(name)
    if wrong:
        raise EvaluationError(wrong if not name else f"has a name that {wrong}")
    return name
