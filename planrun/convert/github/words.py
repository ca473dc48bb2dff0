"""The expressions of GitHub workflows, `${{ … }}`: the language, its functions, and what its comparisons mean.

GitHub converts types as it compares, and takes `TEST` for `test`; planrun does neither: a different meaning is refused
or reported.
"""

from __future__ import annotations

import json
import re

from planrun.convert.expressions import (
    ATOM,
    COMPARE,
    JOIN,
    Language,
    NotAnExpressionError,
    Spelled,
    const,
    fact,
    negated,
    parse,
    spell,
)
from planrun.convert.reader import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.convert.expressions import Names, Tree

    Piece = str | Tree
    Values = Mapping[tuple[str, ...], Any]

_COMPARING = dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), (3, "compare"))
GITHUB = Language(
    token=re.compile(
        r"\s*(?:(?P<number>[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))(?![\w-])"
        r"|(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<variable>(?!))|(?P<flags>(?!))"
        r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\].,*]))"
    ),
    binary={"||": (1, "or"), "&&": (2, "and"), **_COMPARING},
    negation=4,
    constants={"true": True, "false": False, "null": None},
    unquote=lambda text: text[1:-1].replace("''", "'"),
)
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_CAPITALS = "GitHub ignores case when it compares strings; planrun does not"
MAX_RESULTS = 64  # of one text that is worked out; more count as unknown


def cut(text: str) -> list[Piece]:
    """Return the literal texts and the trees of a text, in order; raises UntranslatableError."""
    found: list[Piece] = []
    at = 0
    try:
        while (start := text.find("${{", at)) >= 0:
            end = start + 3
            while not text.startswith("}}", end):
                if end >= len(text):
                    raise NotAnExpressionError("`}}` is missing")
                if text[end] == "'":  # braces in a text do not count
                    end = text.find("'", end + 1) if "'" in text[end + 1 :] else len(text) - 1
                end += 1
            found += [text[at:start]] if start > at else []
            found.append(parse(text[start + 3 : end], GITHUB))
            at = end + 2
    except NotAnExpressionError as error:
        raise UntranslatableError("expression", f"not an expression: {error}") from None
    return [*found, text[at:]] if at < len(text) else found


def shown(value: Any) -> str:
    """Return a value as GitHub puts it into a text."""
    if isinstance(value, (list, dict)):
        raise UntranslatableError("expression", "a list or mapping in the middle of a text")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def same(left: Any, right: Any) -> bool:
    """Say whether two values are equal, as GitHub compares: texts without case, different types as numbers."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    return bool(left == right) if type(left) is type(right) else _number(left) == _number(right)


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (ValueError, TypeError):
        return float("nan")


def compare(sign: str, first: Tree, second: Tree, names: Names) -> Spelled:
    """Return the result of a comparison; raises UntranslatableError."""
    left, right = spell(first, names), spell(second, names)
    if left.is_known and right.is_known and sign in ("==", "!="):
        return const(same(left.value, right.value) == (sign == "=="))
    if left.is_known and not right.is_known:
        left, right, sign = right, left, _FLIPPED[sign]
    if left.kind == "boolean" and right.kind == "string" and right.value in ("true", "false"):
        message = f"`{left.text}` is true or false, and never equal to the text '{right.value}' on GitHub"
        names.note("coercion", message)
        if sign in ("==", "!="):
            return const(sign == "!=")
    if right.is_known and left.kind != right.kind:
        if left.kind == "number" and right.kind == "string" and _number(right.value) == _number(right.value):
            right = const(_number(right.value))
        elif left.kind == "string" and right.kind == "number":
            right = const(str(right.value))
    if "any" in (left.kind, right.kind) and right.is_known:
        message = "a value of JSON has to have the type of what it is compared with, else the step fails"
        names.note("json-type", message)
    elif left.kind != right.kind or left.kind in ("any", "list"):
        message = f"`{left.text}` ({left.kind}) is compared with `{right.text}` ({right.kind})"
        raise UntranslatableError(
            "coercion", f"{message}; GitHub converts both to numbers, planrun does not compare them"
        )
    if left.kind == "boolean" and right.is_known and sign in ("==", "!="):
        return left if (sign == "==") == right.value else negated(left)
    if left.kind == "string" and not _has_no_case(right):
        names.note("capitals", _CAPITALS)
    return fact(f"{left.within(COMPARE + 1)} {sign} {right.within(COMPARE + 1)}")


def _has_no_case(value: Spelled) -> bool:
    return value.is_known and str(value.value).lower() == str(value.value).upper()


def call(name: str, arguments: tuple[Tree, ...], names: Names) -> Spelled:
    """Return what a function gives that is none of the status functions; raises UntranslatableError."""
    if name not in _CALLS:
        raise UntranslatableError("expression", f"the function `{name}`")
    try:
        return _CALLS[name]([spell(each, names) for each in arguments], names)
    except (IndexError, ValueError, TypeError, RecursionError):
        raise UntranslatableError("expression", f"the function `{name}` with these arguments") from None


def _contains(given: list[Spelled], names: Names) -> Spelled:
    where, what = given
    if where.is_known and what.is_known and where.kind == "list":
        return const(any(same(each, what.value) for each in where.value))
    if where.kind == "list" or where.text.startswith("fromjson("):
        message = "a value of JSON has to be a list of texts where `contains` looks into it"
        names.note(*(("capitals", _CAPITALS) if where.kind == "list" else ("json-type", message)))
        return fact(f"{what.within(COMPARE + 1)} in {where.within(ATOM)}")
    return _asked("contains", given, names)


def _asked(function: str, given: list[Spelled], names: Names) -> Spelled:
    where, what = given
    if where.is_known and what.is_known:
        text, part = shown(where.value).lower(), shown(what.value).lower()
        return const(part in text if function == "contains" else bool(getattr(text, function)(part)))
    if where.kind != "string" or what.kind != "string":
        message = f"`{function}` of something that is not certainly text: `{where.text}`"
        raise UntranslatableError("coercion", message)
    if not _has_no_case(what):
        names.note("capitals", _CAPITALS)
    return Spelled(text=f"{function}({where.text}, {what.text})", kind="boolean")


def _format(given: list[Spelled], _names: Names) -> Spelled:
    pattern, *values = given
    if not pattern.is_known:
        raise UntranslatableError("expression", "`format` with a pattern that is worked out")
    parts = [
        const(literal.replace("{{", "{").replace("}}", "}")) if literal else values[int(number)]
        for literal, number in re.findall(r"((?:\{\{|\}\}|[^{}])+)|\{(\d+)\}", str(pattern.value))
    ]
    if any(part.kind not in ("string", "number", "boolean") for part in parts):
        raise UntranslatableError("expression", "`format` of a value without a certain type")
    return put_together(parts)


def put_together(parts: list[Spelled]) -> Spelled:
    """Return several values as one text."""
    if all(part.is_known for part in parts):
        return const("".join(shown(part.value) for part in parts))
    if len(parts) == 1 and parts[0].kind == "string":
        return parts[0]
    text = " ~ ".join([*(part.within(JOIN + 1) for part in parts), *(["''"] if len(parts) == 1 else [])])
    return Spelled(text=text, level=JOIN)


def _join(given: list[Spelled], _names: Names) -> Spelled:
    separator = given[1] if len(given) > 1 else const(",")
    if given[0].is_known and separator.is_known and given[0].kind == "list":
        return const(str(separator.value).join(map(shown, given[0].value)))
    return Spelled(text=f"join({given[0].text}, {separator.text})")


def _from_json(given: list[Spelled], _names: Names) -> Spelled:
    (text,) = given
    return (
        const(json.loads(str(text.value)))
        if text.is_known
        else Spelled(text=f"fromjson({text.text})", kind="any")
    )


def _to_json(given: list[Spelled], _names: Names) -> Spelled:
    (value,) = given
    return Spelled(text=f"tojson({value.text})")


def _hash_files(given: list[Spelled], names: Names) -> Spelled:
    if not given or any(not glob.is_known or str(glob.value).startswith("!") for glob in given):
        raise UntranslatableError("expression", "`hashFiles` with globs that are worked out or taken away")
    names.note("hash-files", "`hash_files` gives another hash than `hashFiles` for the same files")
    return Spelled(text=f"default(hash_files({', '.join(glob.text for glob in given)}), '')")


_CALLS = {
    "contains": _contains,
    "startswith": lambda given, names: _asked("startswith", given, names),
    "endswith": lambda given, names: _asked("endswith", given, names),
    "format": _format,
    "join": _join,
    "fromjson": _from_json,
    "tojson": _to_json,
    "hashfiles": _hash_files,
}


class Known:
    """Names of which only some have values, by path: what is worked out before the plan is made.

    A path below a known root without a value is null there.
    """

    def __init__(self, values: Values) -> None:
        self.values = values

    def path(self, names: tuple[str, ...]) -> Spelled:
        """Return a known value; raises UntranslatableError for any other."""
        if names in self.values:
            return const(self.values[names])
        if names[0] == "inputs" or "*" in names or all(path[0] != names[0] for path in self.values):
            raise UntranslatableError("expression", "a value that is decided when the workflow runs")
        return const("")

    def call(self, name: str, arguments: tuple[Tree, ...]) -> Spelled:
        """Return what a function gives for known values."""
        return call(name, arguments, self)

    def compare(self, sign: str, first: Tree, second: Tree) -> Spelled:
        """Return the result of a comparison of known values."""
        return compare(sign, first, second, self)

    def note(self, code: str, message: str) -> None:
        """Report nothing: what is worked out now has the meaning that it has there."""


def texts_of(text: str, values: Values) -> set[str] | None:
    """Return all texts that a text with expressions can result in; None where one is unknown."""
    try:
        found = {""}
        for piece in cut(text):
            options = {piece} if isinstance(piece, str) else _options(piece, Known(values))
            found = {before + each for before in found for each in options}
            if len(found) > MAX_RESULTS:
                return None
    except UntranslatableError:
        return None
    return found


def _options(tree: Tree, names: Known) -> set[str]:
    """Return all texts that an expression can have: of a choice between unknown conditions each result."""
    try:
        spelled = spell(tree, names)
        if not spelled.is_known:
            raise UntranslatableError("expression", "it is decided when the workflow runs")
        value = spelled.value
        return {" ".join(map(shown, value)) if isinstance(value, list) else shown(value)}
    except UntranslatableError:
        if tree[0] == "or" and tree[1][0] == "and":
            return _options(tree[1][2], names) - {"", "false", "0"} | _options(tree[2], names)
        if tree[0] == "and":
            return {"false", *_options(tree[2], names)}
        raise
