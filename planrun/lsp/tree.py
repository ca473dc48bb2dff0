"""What stands at a place of a plan: the key or value of its tree, and the way that leads there."""

from __future__ import annotations

from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Path = tuple[str | int, ...]


class Spot:
    """A key (`is_key`) or value: its node and its path from the top, of a key with the key itself at the end."""

    __slots__ = ("is_key", "node", "path")

    def __init__(self, node: Node, path: Path, *, is_key: bool = False) -> None:
        self.node = node
        self.path = path
        self.is_key = is_key


class Tree:
    """The nodes of a plan; an alias stands only where its anchor does."""

    def __init__(self, root: Node | None) -> None:
        self.root = root

    def at(self, line: int, col: int) -> Spot | None:
        """Return the last scalar that begins at a place or before; None before the first one.

        Of a scalar that ends on an earlier line only a block of lines goes on: `holds` tells.
        """
        place, node = (line, col), self.root
        path: Path = ()
        found: Spot | None = None
        while node is not None and node.kind != SCALAR:
            inside = _before(node, place)
            if inside is None:
                return found
            step, key, value = inside
            path = (*path, step)
            if key is not None:
                found = Spot(key, path, is_key=True)
                if _place(value) > place or _place(value) < _place(key):
                    return found  # the value comes later, or is an alias
            node = value
        return Spot(node, path) if node is not None else found

    def texts(self) -> Iterator[Spot]:
        """Yield every value that is a scalar."""
        return (
            (spot for spot in _walk(self.root, ()) if not spot.is_key) if self.root is not None else iter(())
        )


def _place(node: Node) -> tuple[int, int]:
    return node.line, node.col


def _before(node: Node, place: tuple[int, int]) -> tuple[str | int, Node | None, Node] | None:
    """Return the last entry of a list or mapping that begins at a place or before: its path, key and value."""
    found: tuple[str | int, Node | None, Node] | None = None
    last = (0, 0)
    if node.kind == SEQUENCE:
        for at, item in enumerate(node.value):
            if last <= _place(item) <= place:
                found, last = (at, None, item), _place(item)
    else:
        for name, value in node.value.items():
            key = node.key(name)
            if last <= _place(key) <= place:
                found, last = (name, key, value), _place(key)
    return found


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
            yield Spot(node, way)
        elif node.kind == SEQUENCE:
            waiting += [(item, (*way, at)) for at, item in enumerate(node.value)]
        elif node.kind == MAPPING:
            for name, value in node.value.items():
                yield Spot(node.key(name), (*way, name), is_key=True)
                waiting.append((value, (*way, name)))
