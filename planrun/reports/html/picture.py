"""The graph of a run as geometry for a picture: boxes and lines, or in large graphs one square for each step."""

from __future__ import annotations

from planrun.model import graph
from planrun.model.groups import drawn
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.html.layout import MAX_NODES, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.html.layout import Layout, Point

_CHARS = 20  # of an id in a box
_CHAR, _BOX, _ROW, _GAP, _EDGE = 6.7, 26.0, 38.0, 44.0, 8.0  # pixels, of text of 11 pixels
_SQUARE, _PER_ROW = 12, 60


class Box(Record):
    """A step: its place in pixels, and what is written into it."""

    step: str
    x: float
    y: float
    width: float
    text: str
    status: str
    title: str
    critical: bool


class Curve(Record):
    """An edge as the `d` of a path; `kind` is that of the dependency."""

    d: str
    kind: str
    title: str
    critical: bool


class Drawing(Record):
    """A graph with all its edges."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]


class Layer(Record):
    """A layer of a graph that is too large to draw: one path of squares for each status."""

    y: int
    number: int
    paths: tuple[tuple[str, str], ...]  # status, `d`
    text: str


class Matrix(Record):
    """A large graph: its layers, and what is left out."""

    width: int
    height: int
    layers: tuple[Layer, ...]
    steps: int
    edges: int


def picture(state: RunState, path: Sequence[str]) -> Drawing | Matrix | None:
    """Return how the graph is drawn; None where no step depends on another. `path`: the critical path."""
    known = list(state.steps)
    edges = [edge for edge in drawn(state.plan.steps) if edge[0] in state.steps and edge[1] in state.steps]
    if not edges:
        return None
    waits: dict[str, list[str]] = {name: [] for name in known}
    kinds: dict[tuple[str, str], str] = {}
    for on, name, kind in edges:
        if on not in waits[name]:
            waits[name].append(on)
            kinds[on, name] = kind
    found = layout(waits) if len(known) <= MAX_NODES else None
    if found is None:
        return _matrix(state, waits, len(kinds))
    return _drawing(state, found, kinds, path)


def _drawing(
    state: RunState, found: Layout, kinds: dict[tuple[str, str], str], path: Sequence[str]
) -> Drawing:
    names = {name: _label(state.steps[name]) for name in found.places}
    widths = [0.0] * found.layers
    for name, point in found.places.items():
        widths[point.layer] = max(widths[point.layer], 16 + _CHAR * len(names[name]))
    lefts, x = [], _EDGE
    for width in widths:
        lefts.append(x)
        x += width + _GAP
    on_path = set(zip(path, path[1:], strict=False))
    boxes = [
        Box(
            step=name,
            x=lefts[point.layer],
            y=_EDGE + point.row * _ROW,
            width=widths[point.layer],
            text=names[name],
            status=state.steps[name].status,
            title=_title(state.steps[name]),
            critical=name in path,
        )
        for name, point in found.places.items()
    ]
    curves = [
        Curve(
            d=_curve(points, lefts, widths),
            kind=kinds[pair],
            title="" if kinds[pair] == "ok" else f"{pair[1]} waits for {pair[0]} ({kinds[pair]})",
            critical=pair in on_path,
        )
        for pair, points in found.edges.items()
    ]
    height = 2 * _EDGE + (found.rows - 1) * _ROW + _BOX
    return Drawing(width=x - _GAP + _EDGE, height=height, boxes=tuple(boxes), curves=tuple(curves))


def _label(step: StepState) -> str:
    """Return icon and id, short enough for a box."""
    name = facts.name(step)
    name = name if len(name) <= _CHARS else f"{name[: _CHARS - 9]}…{name[-8:]}"
    return f"{facts.ICONS[step.status]} {name}"


def _title(step: StepState) -> str:
    about = f": {line(step.step.title)}" if step.step.title else ""
    return f"{facts.name(step)}{about} ({facts.details(step)})"


def _curve(points: Sequence[Point], lefts: Sequence[float], widths: Sequence[float]) -> str:
    """Return a line from the right edge of the first box to the left edge of the last, level beside other boxes."""
    y = [_EDGE + point.row * _ROW + _BOX / 2 for point in points]
    first, last = points[0].layer, points[-1].layer
    x = lefts[first] + widths[first]
    d = [f"M{x:.0f} {y[0]:.1f}"]
    for number in range(1, len(points)):
        layer = points[number].layer
        to, half = lefts[layer], (lefts[layer] + x) / 2
        d.append(f"C{half:.0f} {y[number - 1]:.1f} {half:.0f} {y[number]:.1f} {to:.0f} {y[number]:.1f}")
        if layer != last:
            x = to + widths[layer]
            d.append(f"H{x:.0f}")
    return "".join(d)


def _matrix(state: RunState, waits: dict[str, list[str]], edges: int) -> Matrix:
    layers: list[Layer] = []
    y = 0
    for number, level in enumerate(graph.levels(waits), 1):
        groups: dict[str, list[str]] = {}
        for place, name in enumerate(level):
            at = f"M{place % _PER_ROW * _SQUARE} {y + place // _PER_ROW * _SQUARE}h9v9h-9z"
            groups.setdefault(state.steps[name].status, []).append(at)
        text = ", ".join([f"{len(found)} {status}" for status, found in groups.items()])
        paths = tuple([(status, "".join(found)) for status, found in groups.items()])
        layers.append(Layer(y=y, number=number, paths=paths, text=text))
        y += (-(-len(level) // _PER_ROW)) * _SQUARE + _SQUARE
    return Matrix(width=_PER_ROW * _SQUARE, height=y, layers=tuple(layers), steps=len(waits), edges=edges)


def shown_kinds(drawing: Drawing) -> Collection[str]:
    """Return the kinds of dependencies in a drawing besides the usual one."""
    return sorted({curve.kind for curve in drawing.curves} - {"ok"})
