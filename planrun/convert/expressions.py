"""Expressions of other tools as planrun's: one grammar, a table for each language, and one writer.

A tree is one of ("const", value), ("path", names), ("index", tree, tree), ("call", name, trees), ("not", tree),
("and", left, right), ("or", left, right), ("compare", sign, left, right), ("pattern", text, flags). `names` of a path
are texts; `*` stands for all.
"""

from __future__ import annotations

import re

from planrun.convert.draft import quoted
from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    Tree = tuple[Any, ...]

    class Names(Protocol):
        """What names, functions and comparisons of a language mean at one place; all raise UntranslatableError."""

        def path(self, names: tuple[str, ...]) -> Spelled:
            """Return what a path reads."""

        def call(self, name: str, arguments: tuple[Tree, ...]) -> Spelled:
            """Return what a function gives."""

        def compare(self, sign: str, first: Tree, second: Tree) -> Spelled:
            """Return the result of a comparison."""

        def note(self, code: str, message: str) -> None:
            """Report that something has another meaning."""


MAX_DEPTH = 50
MAX_LENGTH = 21_000  # characters of one expression, as GitHub has it


class NotAnExpressionError(Exception):
    """A text that is no expression of the language; the message says why."""


class Language(Record):
    """What an expression of a language consists of.

    `token`: groups number, text, name, variable, pattern, flags and sign, of which each match has one kind. `binary`:
    level and kind of the operators between two values; `negation`: the least level of what `!` stands before.
    """

    token: re.Pattern[str]
    binary: Mapping[str, tuple[int, str]]
    negation: int
    constants: Mapping[str, object]
    unquote: Callable[[str], str]


def parse(text: str, language: Language) -> Tree:
    """Return the tree of an expression; raises NotAnExpressionError."""
    if len(text) > MAX_LENGTH:
        raise NotAnExpressionError(f"longer than {MAX_LENGTH:,} characters")
    reading = _Parsing(text, language)
    tree = reading.joined(0, 0)
    if reading.at < len(reading.tokens):
        raise NotAnExpressionError(f"`{reading.tokens[reading.at][0]}` is not expected there")
    return tree


class _Parsing:
    """One descent over the tokens of an expression."""

    def __init__(self, text: str, language: Language) -> None:
        self.language = language
        self.tokens: list[re.Match[str]] = []
        self.at, place, end = 0, 0, len(text.rstrip())
        while place < end:
            match = language.token.match(text, place)
            if match is None or match.end() == place:
                raise NotAnExpressionError(f"`{text[place:].strip()[:20]}` cannot be read")
            self.tokens.append(match)
            place = match.end()

    def sees(self, *signs: str) -> str:
        """Take the next token when it is one of these signs; "" when it is not."""
        if self.at < len(self.tokens) and self.tokens[self.at]["sign"] in signs:
            self.at += 1
            return str(self.tokens[self.at - 1]["sign"])
        return ""

    def take(self, sign: str) -> None:
        if not self.sees(sign):
            raise NotAnExpressionError(f"`{sign}` is missing")

    def joined(self, least: int, depth: int) -> Tree:
        """Read values with operators between them that bind at least so tightly."""
        if depth > MAX_DEPTH:
            raise NotAnExpressionError("nested too deeply")
        if self.sees("!"):
            tree: Tree = ("not", self.joined(self.language.negation, depth + 1))
        else:
            tree = self.value(depth)
        signs = [sign for sign, (level, _) in self.language.binary.items() if level >= least]
        while sign := self.sees(*signs):
            level, kind = self.language.binary[sign]
            right = self.joined(level + 1, depth)
            tree = ("compare", sign, tree, right) if kind == "compare" else (kind, tree, right)
        return tree

    def value(self, depth: int) -> Tree:
        if self.sees("("):
            tree = self.joined(0, depth + 1)
            self.take(")")
            return self.behind(tree, depth)
        if self.at >= len(self.tokens):
            raise NotAnExpressionError("it breaks off")
        token = self.tokens[self.at]
        self.at += 1
        kind = str(token.lastgroup)
        text = token[kind]
        if kind == "text":
            return ("const", self.language.unquote(text))
        if kind == "number":
            return ("const", _number(text))
        if kind == "variable":
            return ("path", (text,))
        if kind == "flags":
            return ("pattern", token["pattern"], text)
        low = text.lower()
        if kind != "name":
            raise NotAnExpressionError(f"`{text}` is not expected there")
        if self.sees("("):
            return self.behind(("call", low, self.arguments(depth)), depth)
        if low in self.language.constants:
            return ("const", self.language.constants[low])
        return self.behind(("path", (low,)), depth)

    def arguments(self, depth: int) -> tuple[Tree, ...]:
        if self.sees(")"):
            return ()
        found = [self.joined(0, depth + 1)]
        while self.sees(","):
            found.append(self.joined(0, depth + 1))
        self.take(")")
        return tuple(found)

    def behind(self, tree: Tree, depth: int) -> Tree:
        """Read what follows a value: members and items."""
        while sign := self.sees(".", "["):
            if self.sees("*"):
                key: Tree = ("const", "*")
            elif sign == "[":
                key = self.joined(0, depth + 1)
            elif self.at < len(self.tokens) and self.tokens[self.at]["name"]:
                key = ("const", self.tokens[self.at]["name"])
                self.at += 1
            else:
                raise NotAnExpressionError("a name is missing behind `.`")
            if sign == "[":
                self.take("]")
            if tree[0] == "path" and key[0] == "const" and isinstance(key[1], str):
                tree = ("path", (*tree[1], key[1]))
            else:
                tree = ("index", tree, key)
        return tree


def _number(text: str) -> int | float:
    try:
        return int(text, 0) if re.fullmatch(r"[-+]?(?:0x|0o)?[0-9a-fA-F]+", text) else float(text)
    except ValueError:  # 007
        return float(text)


# How tightly the outermost operator of a text binds.
CHOICE, OR, AND, NOT, COMPARE, JOIN, ATOM = range(7)


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


def fact(text: str, level: int = COMPARE) -> Spelled:
    """Return an expression that is true or false."""
    return Spelled(text=text, kind="boolean", level=level)


def const(value: Any) -> Spelled:
    """Return a literal; raises UntranslatableError for a value that has none."""
    if isinstance(value, bool):
        return Spelled(text="true" if value else "false", kind="boolean", value=value, is_known=True)
    if isinstance(value, (int, float)):
        if not -(2**53) <= value <= 2**53:
            raise UntranslatableError("expression", "a number that is too large")
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        return Spelled(text=repr(number), kind="number", value=number, is_known=True)
    if isinstance(value, list):
        inner = ", ".join(const(item).text for item in value)
        return Spelled(text=f"[{inner}]", kind="list", value=value, is_known=True)
    if value is None or isinstance(value, str):  # nothing is written for null
        return Spelled(text=quoted(value or ""), value=value or "", is_known=True)
    raise UntranslatableError("expression", "an object cannot be written in an expression of planrun")


TRUE, FALSE = const(True), const(False)


def spell(tree: Tree, names: Names) -> Spelled:
    """Return an expression in planrun's words; raises UntranslatableError."""
    kind = tree[0]
    if kind == "const":
        spelled = const(tree[1])
    elif kind == "path":
        spelled = names.path(tree[1])
    elif kind == "call":
        spelled = names.call(tree[1], tree[2])
    elif kind == "compare":
        spelled = names.compare(tree[1], tree[2], tree[3])
    elif kind == "not":
        spelled = negated(truth(tree[1], names))
    elif kind == "index":
        spelled = _index(tree, names)
    elif kind in ("and", "or"):
        spelled = _joined(tree, names)
    else:
        raise UntranslatableError("expression", "a pattern that is compared with nothing")
    if len(spelled.text) > 8000:  # planrun's own limit of an expression is 8,192
        raise UntranslatableError("expression", "an expression becomes too long")
    return spelled


def truth(tree: Tree, names: Names) -> Spelled:
    """Return an expression as true or false, as text that is not empty is."""
    if tree[0] == "and":
        return both(truth(tree[1], names), truth(tree[2], names))
    if tree[0] == "or":
        return either(truth(tree[1], names), truth(tree[2], names))
    return as_truth(spell(tree, names))


def as_truth(value: Spelled) -> Spelled:
    """Return whether a value is taken for true: text that is not empty, numbers but 0."""
    if value.kind == "boolean":
        return value
    if value.is_known:
        return const(bool(value.value))
    if value.kind in ("string", "number"):
        return fact(f"{value.within(COMPARE + 1)} != {'0' if value.kind == 'number' else repr('')}")
    if value.kind == "any":  # of JSON: anything but true and false fails where it is read
        return fact(value.text, value.level)
    message = f"`{value.text}` has no certain type, and is taken for true or false"
    raise UntranslatableError("expression", message)


def both(left: Spelled, right: Spelled) -> Spelled:
    """Return what is true when both are."""
    for one, other in ((left, right), (right, left)):
        if one.is_known:
            return other if one.value else FALSE
    return fact(f"{left.within(AND)} and {right.within(AND)}", AND)


def either(left: Spelled, right: Spelled) -> Spelled:
    """Return what is true when one of them is."""
    for one, other in ((left, right), (right, left)):
        if one.is_known:
            return TRUE if one.value else other
    return fact(f"{left.within(OR)} or {right.within(OR)}", OR)


def negated(value: Spelled) -> Spelled:
    """Return what is true when something is not."""
    return const(not value.value) if value.is_known else fact(f"not {value.within(NOT)}", NOT)


def chosen(condition: Spelled, then: Spelled, otherwise: Spelled) -> Spelled:
    """Return one of two values."""
    if condition.is_known:
        return then if condition.value else otherwise
    kind = then.kind if then.kind == otherwise.kind else "any"
    text = f"{then.within(OR)} if {condition.within(OR)} else {otherwise.text}"
    return Spelled(text=text, kind=kind, level=CHOICE)


def _joined(tree: Tree, names: Names) -> Spelled:
    """Return `a && b` or `a || b`, which are one of their values, not only true or false."""
    if tree[0] == "or" and tree[1][0] == "and":  # `a && b || c`, the way to write a choice
        then = spell(tree[1][2], names)
        if then.kind != "boolean":
            met = both(truth(tree[1][1], names), as_truth(then))
            return chosen(met, then, spell(tree[2], names))
    left, right = spell(tree[1], names), spell(tree[2], names)
    if left.kind == "boolean" and right.kind == "boolean":
        return both(left, right) if tree[0] == "and" else either(left, right)
    return chosen(as_truth(left), *((right, left) if tree[0] == "and" else (left, right)))


def _index(tree: Tree, names: Names) -> Spelled:
    key = spell(tree[2], names) if tree[2] != ("const", "*") else None
    if key is None or not key.is_known or not isinstance(key.value, (int, str)):
        raise UntranslatableError("expression", "an index that is worked out when the workflow runs")
    if tree[1][0] == "path" and (isinstance(key.value, str) or tree[1][1][0] in ("github", "job")):
        return names.path((*tree[1][1], str(key.value)))
    inner = spell(tree[1], names)
    if inner.is_known and inner.kind == "list" and isinstance(key.value, int):
        return const(inner.value[key.value] if 0 <= key.value < len(inner.value) else None)
    if inner.kind not in ("any", "list"):
        raise UntranslatableError("expression", f"an item of `{inner.text}`, which is no list")
    return Spelled(text=f"{inner.within(ATOM)}[{key.text}]", kind="any")
