"""Values of a plan as YAML in one line, between braces and brackets, so that they read back as the same data."""

from __future__ import annotations

import re

from planrun.source.node import MAPPING, SCALAR, Node

# What stands plain in a file and holds none of the marks of a list or mapping in one line.
_BARE = re.compile(r"(?!.*(?:: |:$| #))[^\s,\[\]{}][^,\[\]{}\n\r\t]*")
_JSON = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false|null")
_SHORT = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def flow(node: Node, *, is_json: bool = False) -> str:
    """Return a value in one line: what stands plain in the file stays so where it can, all other text is in quotes.

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
