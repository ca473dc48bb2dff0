"""What stands at a place of a plan: the key or value of its tree, and the way that leads there."""

from __future__ import annotations

from bisect import bisect_right

from planrun.model.record import Record
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Path = tuple[str | int, ...]


class Spot(Record):
    """A key (`is_key`) or value: its node and its path from the top, of a key with the key itself at the end."""

    node: Node
    path: Path
    is_key: bool = False


class Tree:
    """The nodes of a plan in the order of its text; an alias stands only where its anchor does."""

    def __init__(self, root: Node | None) -> None:
        self.root = root
        self.spots = list(_walk(root, ())) if root is not None else []
        self.spots.sort(key=lambda spot: (spot.node.line, spot.node.col))
        self._places = [(spot.node.line, spot.node.col) for spot in self.spots]

    def at(self, line: int, col: int) -> Spot | None:
        """Return the last scalar that begins at a place or before; None before the first one.

        Of a scalar that ends on an earlier line only a block of lines goes on: `holds` tells.
        """
        found = bisect_right(self._places, (line, col))
        return self.spots[found - 1] if found else None

    def texts(self) -> Iterator[Spot]:
        """Yield every value that is a scalar."""
        return (spot for spot in self.spots if not spot.is_key)


def holds(spot: Spot, line: int, col: int, row: str) -> bool:
    """Whether a place is in the text of a scalar; `row`: the line of the place."""
    node = spot.node
    if node.plain and "\n" not in node.value and node.line == line:
        return col <= node.col + len(node.value)
    if node.line == line:
        return True
    return bool(row.strip()) and not spot.is_key  # a block, or quoted text of several lines


def _walk(root: Node, path: Path) -> Iterator[Spot]:
    seen: set[int] = set()
    waiting: list[tuple[Node, Path]] = [(root, path)]
    while waiting:
        node, way = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == SCALAR:
            yield Spot(node=node, path=way)
        elif node.kind == SEQUENCE:
            waiting += [(item, (*way, at)) for at, item in enumerate(node.value)]
        elif node.kind == MAPPING:
            for name, value in node.value.items():
                yield Spot(node=node.key(name), path=(*way, name), is_key=True)
                waiting.append((value, (*way, name)))
