"""The expressions of GitHub workflows, `${{ … }}`, as trees.

A tree is one of ("const", value), ("path", names), ("index", tree, tree), ("call", name, trees), ("not", tree),
("and", left, right), ("or", left, right), ("compare", operator, left, right). `names` of a path are texts; `*` stands
for all. Names of contexts and functions are in small letters, as GitHub ignores case.

Texts of a workflow cut into what stands there and the expressions between `${{` and `}}`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    Tree = tuple[Any, ...]

MAX_DEPTH = 50
MAX_LENGTH = 21_000  # characters of one expression, as GitHub has it

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))(?![\w-])"
    r"|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\].,*]))"
)
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
_COMPARING = ("==", "!=", "<", "<=", ">", ">=")


class NotAnExpressionError(Exception):
    """A text that is no expression of GitHub's; the message says why."""


def parse(text: str) -> Tree:
    """Return the tree of an expression without its braces; raises NotAnExpressionError."""
    if len(text) > MAX_LENGTH:
        raise NotAnExpressionError(f"longer than {MAX_LENGTH:,} characters")
    reading = _Parsing(_tokens(text))
    tree = reading.either(0)
    if reading.at < len(reading.tokens):
        raise NotAnExpressionError(f"`{reading.tokens[reading.at][1]}` is not expected there")
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotAnExpressionError(f"`{text[at:].strip()[:20]}` cannot be read")
        kind = str(match.lastgroup)
        found.append((kind, match.group(kind)))
        at = match.end()
    return found


class _Parsing:
    """One descent over the tokens of an expression."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.at = 0

    def sees(self, *signs: str) -> str:
        """Take the next token when it is one of these signs; "" when it is not."""
        if self.at < len(self.tokens):
            kind, text = self.tokens[self.at]
            if kind == "sign" and text in signs:
                self.at += 1
                return text
        return ""

    def take(self, sign: str) -> None:
        if not self.sees(sign):
            raise NotAnExpressionError(f"`{sign}` is missing")

    def either(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise NotAnExpressionError("nested too deeply")
        tree = self.both(depth)
        while self.sees("||"):
            tree = ("or", tree, self.both(depth))
        return tree

    def both(self, depth: int) -> Tree:
        tree = self.compared(depth)
        while self.sees("&&"):
            tree = ("and", tree, self.compared(depth))
        return tree

    def compared(self, depth: int) -> Tree:
        tree = self.negated(depth)
        while sign := self.sees(*_COMPARING):
            tree = ("compare", sign, tree, self.negated(depth))
        return tree

    def negated(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise NotAnExpressionError("nested too deeply")
        if self.sees("!"):
            return ("not", self.negated(depth + 1))
        return self.primary(depth)

    def primary(self, depth: int) -> Tree:
        if self.sees("("):
            tree = self.either(depth + 1)
            self.take(")")
            return self.behind(tree, depth)
        if self.at >= len(self.tokens):
            raise NotAnExpressionError("it breaks off")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "text":
            return ("const", text[1:-1].replace("''", "'"))
        if kind == "number":
            return ("const", _number(text))
        if kind == "name":
            return self.named(text, depth)
        raise NotAnExpressionError(f"`{text}` is not expected there")

    def named(self, text: str, depth: int) -> Tree:
        low = text.lower()
        if self.sees("("):
            return self.behind(("call", low, self.arguments(depth)), depth)
        if low in _CONSTANTS:
            return ("const", _CONSTANTS[low])
        return self.behind(("path", (low,)), depth)

    def arguments(self, depth: int) -> tuple[Tree, ...]:
        found: list[Tree] = []
        if self.sees(")"):
            return ()
        while True:
            found.append(self.either(depth + 1))
            if not self.sees(","):
                break
        self.take(")")
        return tuple(found)

    def behind(self, tree: Tree, depth: int) -> Tree:
        """Read what follows a value: members and items."""
        while True:
            if self.sees("."):
                tree = _member(tree, self.member())
            elif self.sees("["):
                inner = ("const", "*") if self.sees("*") else self.either(depth + 1)
                self.take("]")
                tree = _member(tree, inner)
            else:
                return tree

    def member(self) -> Tree:
        if self.sees("*"):
            return ("const", "*")
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "name":
            self.at += 1
            return ("const", self.tokens[self.at - 1][1])
        raise NotAnExpressionError("a name is missing behind `.`")


def _member(tree: Tree, key: Tree) -> Tree:
    if tree[0] == "path" and key[0] == "const" and isinstance(key[1], str):
        return ("path", (*tree[1], key[1]))
    return ("index", tree, key)


def _number(text: str) -> int | float:
    try:
        return int(text, 0) if re.fullmatch(r"[-+]?(?:0x|0o)?[0-9a-fA-F]+", text) else float(text)
    except ValueError:  # 007
        return float(text)


if TYPE_CHECKING:
    Piece = str | Tree


def pieces_of(text: str) -> list[Piece]:
    """Return the literal texts and the trees of a text, in order; raises NotAnExpressionError."""
    found: list[Piece] = []
    at = 0
    while (start := text.find("${{", at)) >= 0:
        if start > at:
            found.append(text[at:start])
        end = _end(text, start + 3)
        found.append(parse(text[start + 3 : end]))
        at = end + 2
    if at < len(text):
        found.append(text[at:])
    return found


def _end(text: str, at: int) -> int:
    """Return where `}}` stands, outside of texts in quotes."""
    is_quoted = False
    while at < len(text):
        if text[at] == "'":
            is_quoted = not is_quoted
        elif not is_quoted and text.startswith("}}", at):
            return at
        at += 1
    raise NotAnExpressionError("`}}` is missing")


def condition_of(text: str) -> Tree:
    """Return the tree of an `if`, whose braces may be left out; raises NotAnExpressionError.

    With text beside the braces it is a text that is not empty, which GitHub takes for true; see `is_always_true`.
    """
    stripped = text.strip()
    if "${{" not in stripped:
        return parse(stripped)
    found = pieces_of(stripped)
    if len(found) == 1 and not isinstance(found[0], str):
        return found[0]
    return ("const", True)


def is_always_true(text: str) -> bool:
    """Say whether an `if` is a text that is never empty, because something stands beside `${{ … }}`."""
    stripped = text.strip()
    return "${{" in stripped and not (stripped.startswith("${{") and len(pieces_of(stripped)) == 1)
