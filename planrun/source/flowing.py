"""Values of a plan as YAML in one line, between braces and brackets, so that they read back as the same data."""

from __future__ import annotations

import re

from planrun.source.node import MAPPING, SCALAR, Node

_BARE = re.compile(r"[-+]?[A-Za-z0-9_./][-+A-Za-z0-9_./]*")
_JSON = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false|null")
_SHORT = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def flow(node: Node, *, is_json: bool = False) -> str:
    """Return a value in one line: numbers, booleans and simple words as they are, all other text in double quotes.

    `is_json`: as JSON, where words are in quotes, too.
    """
    if node.kind == SCALAR:
        return _scalar(node, is_json=is_json)
    if node.kind == MAPPING:
        pairs = [
            f"{_scalar(node.keys[name], is_json=is_json)}: {flow(value, is_json=is_json)}"
            for name, value in node.value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    return f"[{', '.join([flow(item, is_json=is_json) for item in node.value])}]"


def quoted(text: str) -> str:
    """Return a text in double quotes, whatever is in it."""
    return f'"{"".join([_SHORT.get(character) or _visible(character) for character in text])}"'


def _scalar(node: Node, *, is_json: bool) -> str:
    text: str = node.value
    if node.plain and (not text or (_JSON if is_json else _BARE).fullmatch(text)):
        return text or "null"
    return quoted(text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
