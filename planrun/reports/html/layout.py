"""A layered layout of a graph from left to right: longest-path layers, barycentre order, straightened coordinates.

Edges over several layers pass through a dummy node in each layer between. Written here because the libraries that are
kept well are a system's binary, or larger than planrun.
"""

from __future__ import annotations

from itertools import pairwise

from planrun.model import graph
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Waits = Mapping[str, Sequence[str]]
    Node = tuple[str, int]  # a step in its layer, or a dummy node of an edge in another one

MAX_NODES = 300
MAX_DUMMIES = 3000
_SWEEPS = 8  # orders settle after a few
_NUDGES = 12


class Point(Record):
    """The centre of a node: its layer, and its place across in rows."""

    layer: int
    row: float


class Layout(Record):
    """The places of nodes by id, and the points of each edge from the step waited for to the one that waits."""

    places: dict[str, Point]
    edges: dict[tuple[str, str], tuple[Point, ...]]
    layers: int
    rows: float


def layout(waits: Waits) -> Layout | None:
    """Return the layout of an acyclic graph; None for one that is too large to be read."""
    if len(waits) > MAX_NODES:
        return None
    depth = {name: number for number, level in enumerate(graph.levels(waits)) for name in level}
    spans = [(on, name) for name, needed in waits.items() for on in needed]
    if sum([depth[name] - depth[on] - 1 for on, name in spans]) > MAX_DUMMIES:
        return None
    net = _Net(depth, spans)
    net.order()
    rows = net.coordinates()
    return Layout(
        places={name: Point(layer=level, row=rows[name, level]) for name, level in depth.items()},
        edges={
            (on, name): tuple([Point(layer=node[1], row=rows[node]) for node in net.chains[on, name]])
            for on, name in spans
        },
        layers=len(net.layers),
        rows=max(rows.values(), default=0.0) + 1,
    )


class _Net:
    """Nodes and dummy nodes by layer, each with its neighbours in the layers beside it."""

    def __init__(self, depth: Mapping[str, int], spans: Sequence[tuple[str, str]]) -> None:
        self.layers: list[list[Node]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
        for name, level in depth.items():
            self.layers[level].append((name, level))
        self.left: dict[Node, list[Node]] = {}
        self.right: dict[Node, list[Node]] = {}
        self.chains: dict[tuple[str, str], list[Node]] = {}
        self.dummies: set[Node] = set()
        for on, name in spans:
            self._connect(on, name, depth)

    def _connect(self, on: str, name: str, depth: Mapping[str, int]) -> None:
        # Edges of one step share their dummies: they leave it as one line, and part where they end.
        between = [(f"{on}\0", level) for level in range(depth[on] + 1, depth[name])]
        chain: list[Node] = [(on, depth[on]), *between, (name, depth[name])]
        self.chains[on, name] = chain
        for node in between:
            if node not in self.dummies:
                self.dummies.add(node)
                self.layers[node[1]].append(node)
        for first, second in pairwise(chain):
            if second not in self.right.setdefault(first, []):
                self.right[first].append(second)
                self.left.setdefault(second, []).append(first)

    def order(self) -> None:
        """Order each layer by the mean place of its neighbours, forwards and backwards in turn; keep the best order."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(_SWEEPS):
            forwards = sweep % 2 == 0
            near = self.left if forwards else self.right
            for number in range(1, len(self.layers)):
                level = number if forwards else len(self.layers) - 1 - number
                beside = self.layers[level - 1 if forwards else level + 1]
                self._sort(level, near, {node: place for place, node in enumerate(beside)})
            if (count := self._crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], count
        self.layers = best

    def _sort(self, level: int, near: Mapping[Node, list[Node]], places: Mapping[Node, int]) -> None:
        layer = self.layers[level]
        own = {node: place for place, node in enumerate(layer)}

        def mean(node: Node) -> float:
            beside = near.get(node)
            return sum([places[other] for other in beside]) / len(beside) if beside else own[node]

        layer.sort(key=mean)

    def _crossings(self) -> int:
        """Return how many pairs of edges cross, by counting inversions in a binary indexed tree."""
        total = 0
        for level, layer in enumerate(self.layers[:-1]):
            places = {node: place for place, node in enumerate(self.layers[level + 1])}
            tree = [0] * (len(places) + 1)
            seen = 0
            for node in layer:
                ends = sorted([places[other] for other in self.right.get(node, ())])
                total += sum([seen - _sum(tree, end + 1) for end in ends])
                for end in ends:
                    at = end + 1
                    while at < len(tree):
                        tree[at] += 1
                        at += at & -at
                seen += len(ends)
        return total

    def coordinates(self) -> dict[Node, float]:
        """Return the row of each node: as near to its neighbours as the order of its layer allows."""
        rows = {node: float(place) for layer in self.layers for place, node in enumerate(layer)}
        for nudge in range(_NUDGES):
            layers = self.layers if nudge % 2 == 0 else self.layers[::-1]
            for layer in layers:
                self._nudge(layer, rows)
        lowest = min(rows.values(), default=0.0)
        return {node: row - lowest for node, row in rows.items()}

    def _nudge(self, layer: Sequence[Node], rows: dict[Node, float]) -> None:
        """Move the nodes of a layer to the mean of their neighbours, apart from each other, in their order."""
        wanted = []
        for node in layer:
            beside = [*self.left.get(node, ()), *self.right.get(node, ())]
            wanted.append(sum([rows[other] for other in beside]) / len(beside) if beside else rows[node])
        gaps = [
            0.5 if first in self.dummies and second in self.dummies else 1.0
            for first, second in pairwise(layer)
        ]
        rows.update(zip(layer, _apart(wanted, gaps), strict=True))


def _apart(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return places nearest to the wanted ones (least squares) that keep the order and the gaps between them."""
    offsets, total = [0.0], 0.0
    for gap in gaps:
        total += gap
        offsets.append(total)
    # Blocks of nodes that touch: sum of what they want, and how many they are (pool adjacent violators).
    blocks: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=False):
        blocks.append([want - offset, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            top = blocks.pop()
            blocks[-1][0] += top[0]
            blocks[-1][1] += top[1]
    means = [block[0] / block[1] for block in blocks for _ in range(int(block[1]))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _sum(tree: Sequence[int], end: int) -> int:
    total = 0
    while end > 0:
        total += tree[end]
        end -= end & -end
    return total
