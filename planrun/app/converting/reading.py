"""Values of somebody else's file: what a node is, read with care and without exceptions."""

from __future__ import annotations

import re

from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from planrun.app.converting.findings import Findings

NOTHING = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "on"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "off"))
_NAMES = {SCALAR: "text", SEQUENCE: "a list", MAPPING: "a mapping"}
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\Z")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?\Z")


def is_nothing(node: Node | None) -> bool:
    """Say whether a key is missing, or has no value."""
    return node is None or (node.kind == SCALAR and node.plain and node.value in NOTHING)


def text_of(node: Node | None) -> str:
    """Return the text of a scalar; "" for anything else."""
    if node is None or node.kind != SCALAR or is_nothing(node):
        return ""
    return str(node.value)


def truth_of(node: Node | None) -> bool | None:
    """Return what an unquoted true or false says; None for anything else."""
    if node is None or node.kind != SCALAR or not node.plain:
        return None
    return True if node.value in _TRUE else False if node.value in _FALSE else None


def data_of(node: Node) -> str | int | float | bool | None:
    """Return the value of a scalar as tools that read YAML 1.2 take it; a list or mapping is None."""
    if node.kind != SCALAR or is_nothing(node):
        return None
    text = str(node.value)
    if not node.plain:
        return text
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if INTEGER.match(text):
        return int(text)
    return float(text) if NUMBER.match(text) else text


class Reader:
    """Reads values of one file; what has another shape than it must have is reported, and read as nothing."""

    def __init__(self, found: Findings) -> None:
        self.found = found

    def mapping(self, node: Node | None, what: str) -> dict[str, Node]:
        """Return the members of a mapping; nothing where there is no value."""
        if node is None or is_nothing(node):
            return {}
        if node.kind != MAPPING:
            self._misshapen(node, what, "a mapping")
            return {}
        members: dict[str, Node] = node.value
        return members

    def items(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list."""
        if node is None or is_nothing(node):
            return []
        if node.kind != SEQUENCE:
            self._misshapen(node, what, "a list")
            return []
        members: list[Node] = node.value
        return members

    def either(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list, or the only value."""
        if node is None or is_nothing(node):
            return []
        if node.kind == MAPPING:
            self._misshapen(node, what, "text or a list")
            return []
        return list(node.value) if node.kind == SEQUENCE else [node]

    def text(self, node: Node | None, what: str) -> str:
        """Return the text of a scalar, "" where there is none."""
        if node is not None and node.kind != SCALAR:
            self._misshapen(node, what, "text")
        return text_of(node)

    def texts(self, node: Node | None, what: str) -> list[str]:
        """Return a text or a list of texts as a list."""
        return [self.text(item, what) for item in self.either(node, what)]

    def unknown(
        self, members: dict[str, Node], known: Container[str], owner: Node, what: str
    ) -> Iterator[str]:
        """Yield the keys that are not known, after having refused each."""
        for name in members:
            if name not in known:
                self.found.refuse(
                    f"key:{name}", f"{what}: planrun does not know the key `{name}`", owner.key(name)
                )
                yield name

    def _misshapen(self, node: Node, what: str, wanted: str) -> None:
        self.found.refuse("shape", f"{what} is {wanted}, and this is {_NAMES[node.kind]}", node)
