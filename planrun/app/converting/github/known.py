"""GitHub's expressions computed at conversion time, for the values of one instance of a matrix.

What a run decides (outputs, events, inputs) is unknown. For a choice between unknown conditions all texts that it can
result in are returned.
"""

from __future__ import annotations

import json

from planrun.app.converting.github.grammar import NotAnExpressionError
from planrun.app.converting.github.pieces import pieces_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.app.converting.github.grammar import Tree

    Values = Mapping[tuple[str, ...], Any]

MAX_RESULTS = 64  # of one expression; more count as unknown


class UnknownError(Exception):
    """The value is decided when the workflow runs."""


def texts_of(text: str, values: Values) -> set[str] | None:
    """Return all texts that a text with expressions can result in; None where one is unknown.

    `values`: known values by path, `("matrix", "os")`; a path below a known root without a value is null.
    """
    try:
        found = {""}
        for piece in pieces_of(text):
            options = (
                {piece} if isinstance(piece, str) else {_shown(each) for each in _results(piece, values)}
            )
            found = {before + each for before in found for each in options}
            if len(found) > MAX_RESULTS:
                return None
    except (UnknownError, NotAnExpressionError):
        return None
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(_shown(each) for each in value)
    return str(value)


def _results(tree: Tree, values: Values) -> list[Any]:
    """Return all values that an expression can have; raises UnknownError."""
    kind = tree[0]
    if kind == "const":
        return [tree[1]]
    if kind == "path":
        return [_read(tree[1], values)]
    if kind in ("and", "or"):
        return _joined(tree, values)
    if kind == "not":
        return [not each for each in _results(tree[1], values)]
    if kind == "compare" and tree[1] in ("==", "!="):
        left, right = _results(tree[2], values), _results(tree[3], values)
        return [_same(one, other) == (tree[1] == "==") for one in left for other in right]
    if kind == "call":
        return _called(tree, values)
    raise UnknownError


def _read(names: tuple[str, ...], values: Values) -> Any:
    if names in values:
        return values[names]
    if names[0] != "inputs" and any(path[0] == names[0] for path in values) and "*" not in names:
        return None
    raise UnknownError


def _joined(tree: Tree, values: Values) -> list[Any]:
    wanted = tree[0] == "and"  # `a && b` is b where a holds, `a || b` where it does not
    try:
        left = _results(tree[1], values)
    except UnknownError:
        if not wanted:
            raise
        return [False, *_results(tree[2], values)]
    found = [each for each in left if bool(each) != wanted]
    if any(bool(each) == wanted for each in left):
        found += _results(tree[2], values)
    return found


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if type(left) is not type(right):
        raise UnknownError
    return bool(left == right)


def _called(tree: Tree, values: Values) -> list[Any]:
    name, arguments = tree[1], [_results(each, values) for each in tree[2]]
    if any(len(each) != 1 for each in arguments):
        raise UnknownError
    given = [each[0] for each in arguments]
    try:
        if name == "fromjson":
            return [json.loads(str(given[0]))]
        if name == "format":
            return [str(given[0]).format(*map(_shown, given[1:]))]
        where, what = given
        if name == "contains":
            inside = (
                [_shown(each).lower() for each in where] if isinstance(where, list) else _shown(where).lower()
            )
            return [_shown(what).lower() in inside]
        if name in ("startswith", "endswith"):
            return [bool(getattr(_shown(where).lower(), name)(_shown(what).lower()))]
    except (ValueError, IndexError, KeyError, RecursionError):
        raise UnknownError from None
    raise UnknownError
