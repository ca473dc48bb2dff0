"""The graph of a run as geometry for a picture: boxes and lines, or in large graphs one square for each step."""

from __future__ import annotations

from itertools import pairwise

from planrun.model import graph
from planrun.model.groups import chain, drawn
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.html.layout import MAX_NODES, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.html.layout import Layout

_CHARS = 20  # of an id in a box
_CHAR, _BOX, _ROW, _GAP, _EDGE = 6.7, 26.0, 38.0, 44.0, 8.0  # pixels, of text of 11 pixels
_MANY = 60  # steps from which on a group with more than so many instances is one box
_INSTANCES = 8
_SQUARE, _PER_ROW, _LAYERS = 12, 60, 100


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
    divider: float | None = None  # where the steps end and `finally` begins
    groups: int = 0  # that are one box each


class Layer(Record):
    """A layer of a graph that is too large to draw: one path of squares for each status."""

    number: int
    paths: tuple[tuple[str, str], ...]  # status, `d`
    text: str


class Matrix(Record):
    """A large graph: its layers, and what is left out."""

    width: int
    height: int
    layers: tuple[Layer, ...]
    more: int  # layers that are left out
    steps: int
    edges: int


def picture(state: RunState, path: Sequence[str]) -> Drawing | Matrix | None:
    """Return how the graph is drawn; None where no step depends on another. `path`: the critical path."""
    boxes = _boxes(state)
    edges = [
        (boxes[on], boxes[name], kind)
        for on, name, kind in drawn(state.plan.steps)
        if on in boxes and name in boxes and boxes[on] != boxes[name]
    ]
    if not edges:
        return None
    waits: dict[str, list[str]] = {name: [] for name in boxes.values()}
    kinds: dict[tuple[str, str], str] = {}
    for on, name, kind in edges:
        if (on, name) not in kinds:
            waits[name].append(on)
            kinds[on, name] = kind
    path = list(dict.fromkeys([boxes[name] for name in path if name in boxes]))
    shown = {
        name: (_label(state, state.steps[name]), state.steps[name].status, _title(state, state.steps[name]))
        for name in waits
    }
    pens = [
        Pen(found, shown, path)
        for section in ("steps", "finally")
        if (found := layout(_within(state, waits, section)))
    ]
    if len(waits) > MAX_NODES or not pens or sum([len(pen.boxes) for pen in pens]) < len(waits):
        return _matrix(state, waits, len(kinds))
    groups = {box for name, box in boxes.items() if box != name}
    return _beside(pens, kinds, {*pairwise(path)}).but(groups=len(groups))


def _boxes(state: RunState) -> dict[str, str]:
    """Return for each step the one whose box it is in: in a large run that of its group, if this has many members."""
    found = {name: name for name in state.steps}
    if len(found) <= _MANY:
        return found
    for name in found:
        for group in chain(state, name):
            if group in state.steps and len(state.steps[group].step.grouping.members) > _INSTANCES:
                found[name] = group
    return found


def _within(state: RunState, waits: dict[str, list[str]], section: str) -> dict[str, list[str]]:
    """Return the steps of a section and what they wait for in it."""
    names = {name for name in waits if state.steps[name].step.section == section}
    return {name: [on for on in needed if on in names] for name, needed in waits.items() if name in names}


def _beside(
    pens: Sequence[Pen], kinds: Mapping[tuple[str, str], str], critical: Collection[tuple[str, str]]
) -> Drawing:
    """Return the sections beside each other, as `finally` comes after all steps."""
    pens = [pen for pen in pens if pen.boxes]
    height = max([pen.height for pen in pens])
    boxes, curves, x = [], [], 0.0
    for pen in pens:
        down = (height - pen.height) / 2
        boxes += [box.but(x=box.x + x, y=box.y + down) for box in pen.boxes]
        curves += [
            pen.curve(pair, kinds[pair], (x, down), critical=pair in critical) for pair in pen.found.edges
        ]
        x += pen.width
    divider = pens[0].width if len(pens) > 1 else None
    return Drawing(width=x, height=height, boxes=tuple(boxes), curves=tuple(curves), divider=divider)


class Pen:
    """Turns a layout into pixels; `shown`: by node its text, status and title, `critical`: nodes with a thick frame."""

    def __init__(
        self, found: Layout, shown: Mapping[str, tuple[str, str, str]], critical: Collection[str]
    ) -> None:
        self.found = found
        self._widths = [0.0] * found.layers
        for name, point in found.places.items():
            self._widths[point.layer] = max(self._widths[point.layer], 16 + _CHAR * len(shown[name][0]))
        self._lefts, x = [], _EDGE
        for width in self._widths:
            self._lefts.append(x)
            x += width + _GAP
        self.width = x - _GAP + _EDGE
        self.height = 2 * _EDGE + (found.rows - 1) * _ROW + _BOX
        self.boxes = [
            Box(
                step=name,
                x=self._lefts[point.layer],
                y=_EDGE + point.row * _ROW,
                width=self._widths[point.layer],
                text=shown[name][0],
                status=shown[name][1],
                title=shown[name][2],
                critical=name in critical,
            )
            for name, point in found.places.items()
        ]

    def curve(
        self, pair: tuple[str, str], kind: str, at: tuple[float, float] = (0, 0), *, critical: bool
    ) -> Curve:
        """Return an edge; `at`: pixels further to the right, and down."""
        right, down = at
        lefts = [left + right for left in self._lefts]
        y = [_EDGE + down + point.row * _ROW + _BOX / 2 for point in self.found.edges[pair]]
        return Curve(
            d=_curve([point.layer for point in self.found.edges[pair]], y, lefts, self._widths),
            kind=kind,
            title="" if kind == "ok" else f"{pair[1]} waits for {pair[0]} ({kind})",
            critical=critical,
        )


def _label(state: RunState, step: StepState) -> str:
    """Return icon and id, short enough for a box; of a group how many members it has, and how many failed."""
    name = facts.name(step)
    name = name if len(name) <= _CHARS else f"{name[: _CHARS - 9]}…{name[-8:]}"
    counts = _counts(state, step)
    total = sum(counts.values())
    failed = f", {counts['failed']} failed" if "failed" in counts else ""
    more = f" ({total}{failed})" if counts else ""
    return f"{facts.ICONS[step.status]} {name}{more}"


def _counts(state: RunState, step: StepState) -> dict[str, int]:
    """Return the members of a group by status; empty for a step."""
    found: dict[str, int] = {}
    for name in step.step.grouping.members if step.step.kind == "group" else ():
        status = state.steps[name].status
        found[status] = found.get(status, 0) + 1
    return found


def _title(state: RunState, step: StepState) -> str:
    if counts := _counts(state, step):
        return f"{facts.name(step)}: {', '.join([f'{count} {status}' for status, count in counts.items()])}"
    about = f": {line(step.step.title)}" if step.step.title else ""
    return f"{facts.name(step)}{about} ({facts.details(step)})"


def _curve(layers: Sequence[int], y: Sequence[float], lefts: Sequence[float], widths: Sequence[float]) -> str:
    """Return a line from the right edge of the first box to the left edge of the last, level beside other boxes."""
    x = lefts[layers[0]] + widths[layers[0]]
    d = [f"M{x:.0f} {y[0]:.1f}"]
    for number in range(1, len(layers)):
        to, half = lefts[layers[number]], (lefts[layers[number]] + x) / 2
        d.append(f"C{half:.0f} {y[number - 1]:.1f} {half:.0f} {y[number]:.1f} {to:.0f} {y[number]:.1f}")
        if layers[number] != layers[-1]:
            x = to + widths[layers[number]]
            d.append(f"H{x:.0f}")
    return "".join(d)


def _matrix(state: RunState, waits: dict[str, list[str]], edges: int) -> Matrix:
    layers: list[Layer] = []
    y, levels = 0, graph.levels(waits)
    for number, level in enumerate(levels[:_LAYERS], 1):
        groups: dict[str, list[str]] = {}
        for place, name in enumerate(level):
            at = f"M{place % _PER_ROW * _SQUARE} {y + place // _PER_ROW * _SQUARE}h9v9h-9z"
            groups.setdefault(state.steps[name].status, []).append(at)
        text = ", ".join([f"{len(found)} {status}" for status, found in groups.items()])
        paths = tuple([(status, "".join(found)) for status, found in groups.items()])
        layers.append(Layer(number=number, paths=paths, text=text))
        y += (-(-len(level) // _PER_ROW)) * _SQUARE + _SQUARE // 2
    widest = max([min(_PER_ROW, len(level)) for level in levels])
    return Matrix(
        width=widest * _SQUARE,
        height=y,
        layers=tuple(layers),
        more=len(levels) - len(layers),
        steps=len(waits),
        edges=edges,
    )


def shown_kinds(drawing: Drawing) -> Collection[str]:
    """Return the kinds of dependencies in a drawing besides the usual one."""
    return sorted({curve.kind for curve in drawing.curves} - {"ok"})
