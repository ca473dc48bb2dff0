"""From a tree back to the text of an expression: one spelling of each meaning, whatever was written."""

from __future__ import annotations

from planrun.expressions.tree import spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.expressions.tree import Tree

_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# What needs no brackets as a part of something else.
_ATOMS = ("const", "path", "item", "list", "call")


def spell(tree: Tree) -> str:
    """Return an expression that is parsed to the same tree, places left aside."""
    return _SPELLINGS[tree[0]](*tree[3:])


def _part(tree: Tree) -> str:
    text = spell(tree)
    negative = tree[0] == "const" and text.startswith("-")
    return text if tree[0] in _ATOMS and not negative else f"({text})"


def _const(value: Any) -> str:
    if isinstance(value, str):
        return f"'{''.join([_ESCAPES.get(char) or _escape(char) for char in value])}'"
    if value is None:
        return "none"
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _joined(word: str) -> Callable[[tuple[Tree, ...]], str]:
    return lambda operands: f" {word} ".join([_part(operand) for operand in operands])


def _infix(operator: str, left: Tree, right: Tree) -> str:
    return f"{_part(left)} {operator} {_part(right)}"


def _listed(items: tuple[Tree, ...]) -> str:
    return ", ".join([spell(item) for item in items])


_SPELLINGS: dict[str, Callable[..., str]] = {
    "const": _const,
    "path": spelled,
    "item": lambda base, index: f"{_part(base)}[{spell(index)}]",
    "list": lambda items: f"[{_listed(items)}]",
    "and": _joined("and"),
    "or": _joined("or"),
    "not": lambda operand: f"not {_part(operand)}",
    "neg": lambda operand: f"-{_part(operand)}",
    "compare": _infix,
    "math": _infix,
    "concat": _joined("~"),
    "if": lambda test, then, otherwise: f"{_part(then)} if {_part(test)} else {_part(otherwise)}",
    "call": lambda name, arguments: f"{name}({_listed(arguments)})",
    "sh": lambda operand: f"{_part(operand)} | sh",
}
