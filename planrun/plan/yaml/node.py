"""A value of the plan file with its place: what the reader makes and everything after it reads."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCALAR = 0
SEQUENCE = 1
MAPPING = 2


class Node:
    """One YAML value: a scalar (`value` is its text), a sequence (list of Node) or a mapping (dict of text to Node).

    `line` and `col` are 1-based and count characters. `plain` is true for an unquoted scalar; only such a one can
    be a number, a boolean or nothing. `keys` of a mapping holds the key nodes, for their places.
    A value that an alias names is the same Node again: never change one.
    """

    __slots__ = ("col", "keys", "kind", "line", "plain", "value")

    kind: int
    value: Any
    line: int
    col: int
    plain: bool
    keys: dict[str, Node]

    def __init__(self, kind: int, value: Any, line: int, col: int, plain: bool = False) -> None:  # noqa: FBT001, FBT002
        self.kind = kind
        self.value = value
        self.line = line
        self.col = col
        self.plain = plain

    def __repr__(self) -> str:
        return f"Node({('scalar', 'sequence', 'mapping')[self.kind]}, {self.line}:{self.col}, {self.value!r})"

    @property
    def end_col(self) -> int:
        """The column after an unquoted scalar of one line; 0 for anything else, whose end is unknown."""
        if self.kind != SCALAR or not self.plain or not self.value or "\n" in self.value:
            return 0
        return self.col + len(self.value)

    def get(self, key: str) -> Node | None:
        """Return the value under `key` of a mapping, or None; of anything else, None."""
        found: Node | None = self.value.get(key) if self.kind == MAPPING else None
        return found

    def key(self, key: str) -> Node:
        """Return the node of a mapping's key, for its place; the mapping itself if it has no such key."""
        return self.keys.get(key, self) if self.kind == MAPPING else self


class Origins:
    """Where the nodes of a merged tree are from that other files brought along.

    `places`: by the id of a node the path and the shown name of its file, and the path of the file that its own paths
    are seen from; `sources`: bytes by shown name; `kept` holds the nodes.
    """

    __slots__ = ("kept", "places", "sources")

    def __init__(
        self, places: dict[int, tuple[str, str, str]], sources: dict[str, bytes], kept: tuple[Node, ...]
    ) -> None:
        self.places = places
        self.sources = sources
        self.kept = kept
