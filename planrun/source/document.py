"""From the bytes of a plan file to nodes with line and column; the only module that knows the YAML library."""

from __future__ import annotations

from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.source.problems import Problem

__all__ = ["MAPPING", "SCALAR", "SEQUENCE", "Node", "parse", "read_source"]


def read_source(path: str) -> bytes:
    """Read a plan file; raises InvalidPlan (one Problem) for anything but a readable regular file of ≤ 8 MiB."""
    raise NotImplementedError


def parse(data: bytes, file: str) -> tuple[Node | None, list[Problem]]:
    """Read YAML into a node tree; the tree is None when nothing usable was found. `file` names it in problems."""
    raise NotImplementedError
