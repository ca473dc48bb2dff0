"""Is a node tree shaped like a plan: keys, types, forms; every finding in one pass. Meaning is checked later."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.node import Node
    from planrun.source.problems import Problem


def check(root: Node, file: str) -> list[Problem]:
    """Return every finding about keys, types and forms. When it is empty, the functions below do not raise."""
    raise NotImplementedError


def as_text(node: Node) -> str:
    """Return a scalar's text as it was written."""
    return str(node.value)


def as_int(node: Node) -> int:
    """Return a decimal integer; raises ValueError."""
    raise NotImplementedError


def as_number(node: Node) -> int | float:
    """Return a decimal number; raises ValueError."""
    raise NotImplementedError


def as_bool(node: Node) -> bool:
    """Return True or False; raises ValueError for anything but the words true and false, unquoted."""
    raise NotImplementedError


def as_duration(text: str) -> float:
    """Return seconds of a duration such as `500ms` or `1h30m`; raises ValueError."""
    raise NotImplementedError


def to_data(node: Node) -> Any:
    """Return plain data with YAML 1.2 core types, for places that take any JSON value (parameter schemas)."""
    raise NotImplementedError
