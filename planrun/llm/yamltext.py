"""YAML as recordings have it: it reads back to exactly the same data, and people can review it."""

from __future__ import annotations

import json
import re

from planrun.plan.yaml.node import MAPPING, SCALAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.plan.yaml.node import Node

DEEPEST = 40  # levels of lists and mappings; the reader takes 64

_KEY = re.compile(r"[a-z][a-z0-9_]*\Z")
_TAKEN = frozenset(("y", "yes", "n", "no", "true", "false", "on", "off", "null"))  # by YAML 1.1
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]*[A-Za-z0-9_/-]\Z")
_NUMBER = re.compile(r"-?[0-9][0-9.eE+-]*\Z")
_GOES_ON = "\\n\\\n"  # ends a line of a text, and of the file
_WORDS = {"true": True, "false": False, "null": None, "": None}


class NotPlainError(ValueError):
    """A value without quotes that is neither a number nor true, false or null; `node` says where."""

    def __init__(self, node: Node) -> None:
        super().__init__("a text stands in quotes here")
        self.node = node


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return a mapping as YAML; raises ValueError for what YAML cannot hold."""
    return "".join(_pairs(data, 0))


def data_of(node: Node) -> Any:
    """Return what a node holds; raises NotPlainError."""
    if node.kind == MAPPING:
        return {name: data_of(value) for name, value in node.value.items()}
    if node.kind != SCALAR:
        return [data_of(item) for item in node.value]
    if not node.plain:
        return node.value
    if node.value in _WORDS:
        return _WORDS[node.value]
    if _NUMBER.match(node.value):
        try:
            return json.loads(node.value)
        except ValueError:  # also of more digits than Python reads
            raise NotPlainError(node) from None
    if _WORD.match(node.value) and node.value.lower() not in _TAKEN:
        return node.value
    raise NotPlainError(node)


def _pairs(data: Mapping[str, Any], indent: int) -> Iterator[str]:
    if indent > 2 * DEEPEST:
        raise ValueError("nested too deeply")
    for name, value in data.items():
        yield f"{' ' * indent}{_key(name)}:{_value(value, indent + 2)}"


def _items(data: list[Any], indent: int) -> Iterator[str]:
    if indent > 2 * DEEPEST:
        raise ValueError("nested too deeply")
    margin = " " * indent
    for item in data:
        if isinstance(item, dict) and item:
            yield f"{margin}- {''.join(_pairs(item, indent + 2))[indent + 2 :]}"
        else:
            yield f"{margin}-{_value(item, indent + 2)}"


def _value(value: Any, indent: int) -> str:
    """Return what stands behind a colon or dash; lines of its own begin at column `indent`."""
    if isinstance(value, str):
        return f" {_text(value, indent)}\n"
    if isinstance(value, dict) and value:
        return "\n" + "".join(_pairs(value, indent))
    if isinstance(value, (list, tuple)) and value:
        return "\n" + "".join(_items(list(value), indent))
    return f" {json.dumps(value, allow_nan=False)}\n"


def _key(name: str) -> str:
    return name if _KEY.match(name) and name not in _TAKEN else _quoted(name)


def _text(text: str, indent: int) -> str:
    if _WORD.match(text) and len(text) <= 100 and text.lower() not in _TAKEN:
        return text
    lines = text.split("\n")
    if len(lines) == 1:
        return _quoted(text)
    margin = " " * indent
    ends = not lines[-1]
    if ends:
        del lines[-1]
    if lines[-1] and not lines[0].startswith(" ") and lines[0] and all(map(_is_clean, lines)):
        return f"|{'' if ends else '-'}\n" + "\n".join([f"{margin}{line}" if line else "" for line in lines])
    # The same line by line in quotes; a blank that begins a line needs an escape.
    parts = [_inner(line) for line in lines]
    shown = [part if not number or part[:1] != " " else f"\\{part}" for number, part in enumerate(parts)]
    end = "\\n" if ends else ""
    return f'"{(_GOES_ON + margin).join(shown)}{end}"'


def _is_clean(line: str) -> bool:
    """Whether a line may stand in a file as it is."""
    return line.isprintable() and not line.endswith(" ")


def _quoted(text: str) -> str:
    return f'"{_inner(text)}"'


def _inner(text: str) -> str:
    """Return one line of text as it stands in double quotes; raises ValueError for half a character."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    if inner.isprintable():
        return inner
    text.encode("utf-8")
    return "".join([char if char.isprintable() else _escape(char) for char in inner])


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
