"""A GitHub expression as a planrun expression, with its type; a different meaning is refused or reported.

GitHub converts types as it compares, and takes `TEST` for `test`; planrun does neither.
"""

from __future__ import annotations

import json
import re

from planrun.convert.draft import quoted
from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from planrun.convert.github.grammar import Tree

    class Names(Protocol):
        """What the names of contexts stand for at one place."""

        def path(self, names: tuple[str, ...]) -> Spelled:
            """Return what a path reads; raises UntranslatableError."""

        def call(self, name: str) -> Spelled:
            """Return what a status function says; raises UntranslatableError."""

        def whole(self, root: str) -> Spelled:
            """Return a whole context as JSON text; raises UntranslatableError."""

        def note(self, code: str, message: str) -> None:
            """Report that something has another meaning."""


# How tightly the outermost operator of a text binds.
CHOICE, OR, AND, NOT, COMPARE, JOIN, ATOM = range(7)
STATUS_CALLS = ("success", "failure", "always", "cancelled")
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


class Spelled(Record):
    """An expression of planrun: its text, its type, how tightly it binds, and its value where that is known.

    `kind` is string, number, boolean, list or any. `is_known`: `value` is its value.
    """

    text: str
    kind: str = "string"
    level: int = ATOM
    value: Any = None
    is_known: bool = False

    def within(self, level: int) -> str:
        """The text as an operand of something that binds as `level`."""
        return self.text if self.level >= level else f"({self.text})"


def const(value: Any) -> Spelled:
    """Return a literal."""
    if isinstance(value, bool):
        return Spelled(text="true" if value else "false", kind="boolean", value=value, is_known=True)
    if isinstance(value, (int, float)):
        if not -(2**53) <= value <= 2**53:
            raise UntranslatableError("expression", "a number that is too large")
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        return Spelled(text=repr(number), kind="number", value=number, is_known=True)
    if value is None:  # GitHub writes nothing for null
        return Spelled(text="''", kind="string", value="", is_known=True)
    if isinstance(value, list):
        inner = ", ".join(const(item).text for item in value)
        return Spelled(text=f"[{inner}]", kind="list", value=value, is_known=True)
    if isinstance(value, str):
        return Spelled(text=quoted(value), value=value, is_known=True)
    raise UntranslatableError("expression", "an object cannot be written in an expression of planrun")


TRUE, FALSE = const(True), const(False)


def spell(tree: Tree, names: Names) -> Spelled:
    """Return an expression in planrun's words; raises UntranslatableError."""
    spelled = _SPELLERS[tree[0]](tree, names)
    if len(spelled.text) > 8000:  # planrun's own limit of an expression is 8,192
        raise UntranslatableError("expression", "an expression becomes too long")
    return spelled


def truth(tree: Tree, names: Names) -> Spelled:
    """Return an expression as true or false, as GitHub takes any value for it."""
    if tree[0] == "and":
        return both(truth(tree[1], names), truth(tree[2], names))
    if tree[0] == "or":
        return either(truth(tree[1], names), truth(tree[2], names))
    if tree[0] == "not":
        return negated(truth(tree[1], names))
    return as_truth(spell(tree, names))


def as_truth(value: Spelled) -> Spelled:
    """Return whether GitHub takes a value for true: text that is not empty, numbers but 0."""
    if value.kind == "boolean":
        return value
    if value.is_known:
        return const(bool(value.value))
    if value.kind in ("string", "number"):
        nothing = "''" if value.kind == "string" else "0"
        return Spelled(text=f"{value.within(COMPARE + 1)} != {nothing}", kind="boolean", level=COMPARE)
    if value.kind == "any":  # of JSON: anything but true and false fails where it is read
        return Spelled(text=value.text, kind="boolean", level=value.level)
    raise UntranslatableError(
        "expression", f"`{value.text}` has no certain type, and is taken for true or false"
    )


def both(left: Spelled, right: Spelled) -> Spelled:
    """Return what is true when both are."""
    for one, other in ((left, right), (right, left)):
        if one.is_known:
            return other if one.value else FALSE
    return Spelled(text=f"{left.within(AND)} and {right.within(AND)}", kind="boolean", level=AND)


def either(left: Spelled, right: Spelled) -> Spelled:
    """Return what is true when one of them is."""
    for one, other in ((left, right), (right, left)):
        if one.is_known:
            return TRUE if one.value else other
    return Spelled(text=f"{left.within(OR)} or {right.within(OR)}", kind="boolean", level=OR)


def negated(value: Spelled) -> Spelled:
    """Return what is true when something is not."""
    if value.is_known:
        return const(not value.value)
    return Spelled(text=f"not {value.within(NOT)}", kind="boolean", level=NOT)


def _choice(condition: Spelled, then: Spelled, otherwise: Spelled) -> Spelled:
    if condition.is_known:
        return then if condition.value else otherwise
    kind = then.kind if then.kind == otherwise.kind else "any"
    text = f"{then.within(OR)} if {condition.within(OR)} else {otherwise.within(OR)}"
    return Spelled(text=text, kind=kind, level=CHOICE)


def _and(tree: Tree, names: Names) -> Spelled:
    left, right = spell(tree[1], names), spell(tree[2], names)
    if left.kind == "boolean" and right.kind == "boolean":
        return both(left, right)
    return _choice(as_truth(left), right, left)


def _or(tree: Tree, names: Names) -> Spelled:
    if tree[1][0] == "and":  # `a && b || c`, the way to write a choice
        condition, then = truth(tree[1][1], names), spell(tree[1][2], names)
        if then.kind != "boolean":
            met = both(condition, as_truth(then))
            return _choice(met, then, spell(tree[2], names))
    left, right = spell(tree[1], names), spell(tree[2], names)
    if left.kind == "boolean" and right.kind == "boolean":
        return either(left, right)
    return _choice(as_truth(left), left, right)


def _compare(tree: Tree, names: Names) -> Spelled:
    _, sign, first, second = tree
    special = getattr(names, "compared", None)
    if special is not None and (found := special(sign, first, second)) is not None:
        return found  # type: ignore[no-any-return]
    left, right = spell(first, names), spell(second, names)
    if left.is_known and not right.is_known:
        left, right, sign = right, left, _FLIPPED[sign]
    if (
        left.kind == "boolean"
        and right.is_known
        and right.value in ("true", "false")
        and right.kind == "string"
    ):
        message = f"`{left.text}` is true or false, and never equal to the text '{right.value}' on GitHub"
        names.note("coercion", message)
        if sign in ("==", "!="):
            return const(sign == "!=")
    right = _fitted(right, left)
    if "any" in (left.kind, right.kind) and (left.is_known or right.is_known):
        names.note(
            "json-type",
            "a value of JSON has to have the type of what it is compared with, else the step fails",
        )
    elif left.kind != right.kind or left.kind in ("any", "list"):
        message = f"`{left.text}` ({left.kind}) is compared with `{right.text}` ({right.kind})"
        raise UntranslatableError(
            "coercion", f"{message}; GitHub converts both to numbers, planrun does not compare them"
        )
    if left.kind == "boolean" and right.is_known and sign in ("==", "!="):
        return left if (sign == "==") == right.value else negated(left)
    if left.kind == "string" and not _has_no_case(left, right):
        names.note(
            "capitals",
            "GitHub ignores case when it compares strings; planrun does not",
        )
    if left.is_known and right.is_known and sign in ("==", "!="):
        same = str(left.value).lower() == str(right.value).lower()
        return const(same == (sign == "=="))
    return Spelled(
        text=f"{left.within(COMPARE + 1)} {sign} {right.within(COMPARE + 1)}", kind="boolean", level=COMPARE
    )


def _fitted(literal: Spelled, other: Spelled) -> Spelled:
    """Return a literal in the type of what it is compared with, where GitHub's conversion gives the same."""
    if not literal.is_known or literal.kind == other.kind:
        return literal
    if other.kind == "number" and literal.kind == "string":
        try:
            return const(float(literal.value))
        except ValueError:
            return literal
    if other.kind == "string" and literal.kind == "boolean":
        raise UntranslatableError("coercion", f"the text `{other.text}` is compared with {literal.text}")
    if other.kind == "string" and literal.kind == "number":
        return const(str(literal.value))
    return literal


def _has_no_case(*sides: Spelled) -> bool:
    return any(side.is_known and str(side.value).lower() == str(side.value).upper() for side in sides)


def _path(tree: Tree, names: Names) -> Spelled:
    return names.path(tree[1])


def _index(tree: Tree, names: Names) -> Spelled:
    if tree[1][0] == "path" and tree[2][0] == "path":
        key = names.path(tree[2][1])
        if key.is_known and isinstance(key.value, str):
            return names.path((*tree[1][1], key.value))
    if tree[1][0] == "path" and tree[1][1][:2] == ("job", "services") and tree[2][0] == "const":
        return names.path((*tree[1][1], str(tree[2][1])))  # ports are written as numbers there
    inner = spell(tree[1], names)
    if tree[2][0] == "const" and isinstance(tree[2][1], (int, str)) and tree[2][1] != "*":
        key_text = repr(tree[2][1]) if isinstance(tree[2][1], int) else quoted(tree[2][1])
        return Spelled(text=f"{inner.within(ATOM)}[{key_text}]", kind="any")
    raise UntranslatableError("expression", "an index that is worked out when the workflow runs")


def _call(tree: Tree, names: Names) -> Spelled:
    name, arguments = tree[1], tree[2]
    if name in STATUS_CALLS and not arguments:
        return names.call(name)
    if name not in _CALLS:
        raise UntranslatableError("expression", f"the function `{name}`")
    try:
        return _CALLS[name](arguments, names)
    except (IndexError, ValueError):
        raise UntranslatableError("expression", f"the function `{name}` with these arguments") from None


def _contains(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    where, what = (spell(each, names) for each in arguments)
    if where.kind == "any" and where.text.startswith("fromjson("):
        names.note("json-type", "a value of JSON has to be a list of texts where `contains` looks into it")
        return Spelled(
            text=f"{what.within(COMPARE + 1)} in {where.within(ATOM)}", kind="boolean", level=COMPARE
        )
    if where.kind == "list":
        names.note(
            "capitals",
            "GitHub ignores case when it compares strings; planrun does not",
        )
        return Spelled(text=f"{what.within(COMPARE + 1)} in {where.text}", kind="boolean", level=COMPARE)
    return _asked("contains", where, what, names)


def _asked(function: str, where: Spelled, what: Spelled, names: Names) -> Spelled:
    if where.kind != "string" or what.kind != "string":
        raise UntranslatableError(
            "coercion", f"`{function}` of something that is not certainly text: `{where.text}`"
        )
    if where.is_known and what.is_known:
        text, part = str(where.value).lower(), str(what.value).lower()
        return const(
            {"contains": part in text, "startswith": text.startswith(part)}.get(function, text.endswith(part))
        )
    if not _has_no_case(what):
        names.note(
            "capitals",
            "GitHub ignores case when it compares strings; planrun does not",
        )
    return Spelled(text=f"{function}({where.text}, {what.text})", kind="boolean")


def _affix(function: str) -> Callable[[tuple[Tree, ...], Names], Spelled]:
    def spelled(arguments: tuple[Tree, ...], names: Names) -> Spelled:
        where, what = (spell(each, names) for each in arguments)
        return _asked(function, where, what, names)

    return spelled


def _format(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    pattern, *values = (spell(each, names) for each in arguments)
    if not pattern.is_known:
        raise UntranslatableError("expression", "`format` with a pattern that is worked out")
    parts = []
    for literal, number in re.findall(r"((?:\{\{|\}\}|[^{}])+)|\{(\d+)\}", str(pattern.value)):
        parts.append(const(literal.replace("{{", "{").replace("}}", "}")) if literal else values[int(number)])
    if any(part.kind not in ("string", "number", "boolean") for part in parts):
        raise UntranslatableError("expression", "`format` of a value without a certain type")
    if len(parts) == 1 and parts[0].kind == "string":
        return parts[0]
    return Spelled(text=" ~ ".join(part.within(JOIN + 1) for part in parts) or "''", level=JOIN)


def _join(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    items = spell(arguments[0], names)
    separator = spell(arguments[1], names).text if len(arguments) > 1 else "','"
    return Spelled(text=f"join({items.text}, {separator})")


def _from_json(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    (text,) = (spell(each, names) for each in arguments)
    if not text.is_known:
        return Spelled(text=f"fromjson({text.text})", kind="any")
    try:
        return const(json.loads(str(text.value)))
    except (ValueError, RecursionError):
        raise UntranslatableError("expression", "`fromJSON` of a text that is not JSON") from None


def _to_json(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    if len(arguments) == 1 and arguments[0][0] == "path" and len(arguments[0][1]) == 1:
        return names.whole(arguments[0][1][0])
    (value,) = (spell(each, names) for each in arguments)
    return Spelled(text=f"tojson({value.text})")


def _hash_files(arguments: tuple[Tree, ...], names: Names) -> Spelled:
    globs = [spell(each, names) for each in arguments]
    if not globs or any(not glob.is_known or str(glob.value).startswith("!") for glob in globs):
        raise UntranslatableError("expression", "`hashFiles` with globs that are worked out or taken away")
    names.note("hash-files", "`hash_files` gives another hash than `hashFiles` for the same files")
    return Spelled(text=f"default(hash_files({', '.join(glob.text for glob in globs)}), '')")


_CALLS: dict[str, Callable[[tuple[Tree, ...], Names], Spelled]] = {
    "contains": _contains,
    "startswith": _affix("startswith"),
    "endswith": _affix("endswith"),
    "format": _format,
    "join": _join,
    "fromjson": _from_json,
    "tojson": _to_json,
    "hashfiles": _hash_files,
}
_SPELLERS: dict[str, Callable[[Tree, Names], Spelled]] = {
    "const": lambda tree, _names: const(tree[1]),
    "path": _path,
    "index": _index,
    "call": _call,
    "not": lambda tree, names: negated(truth(tree[1], names)),
    "and": _and,
    "or": _or,
    "compare": _compare,
}
