"""The documents of a Dagu file: the first is what runs, the others are DAGs that its steps may call."""

from __future__ import annotations

import re

from planrun.convert.reader import text_of
from planrun.plan.yaml.node import MAPPING, Node

_BREAK = re.compile(rb"^---[ \t]*(?:#.*)?$", re.MULTILINE)


def documents(data: bytes) -> list[bytes]:
    """Return the documents of a file, each after as many empty lines as stand before it."""
    starts = [0, *(match.end() for match in _BREAK.finditer(data))]
    ends = [*(match.start() for match in _BREAK.finditer(data)), len(data)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        if data[start:end].strip() and re.search(rb"^[^\s#]", data[start:end], re.MULTILINE):
            found.append(b"\n" * data.count(b"\n", 0, start) + data[start:end])
    return found or [data]


def names_of(nodes: list[Node]) -> dict[str, Node]:
    """Return the documents behind the first by their names."""
    return {
        text_of(node.get("name")): node
        for node in nodes[1:]
        if node.kind == MAPPING and node.get("name") is not None
    }
