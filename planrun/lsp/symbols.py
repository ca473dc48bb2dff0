"""The outline of a plan, and the line above it that names its digest."""

from __future__ import annotations

from lsprotocol import types

from planrun.model.record import Record
from planrun.plan.keys.outline import scalar
from planrun.plan.yaml.node import MAPPING, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.lsp.analysis import Analysis

SECTIONS = ("steps", "finally")


class _Item(Record):
    """A symbol before its end is known: where it starts, what it is."""

    name: str
    detail: str
    kind: types.SymbolKind
    node: Node


def symbols(analysis: Analysis) -> list[types.DocumentSymbol]:
    """Return parameters and steps below the keys that hold them."""
    root = analysis.root
    if root is None:
        return []
    keys = sorted(root.keys.items(), key=lambda pair: (pair[1].line, pair[1].col))
    ends = [*[key.line - 1 for _, key in keys[1:]], len(analysis.text.starts)][: len(keys)]
    return [
        _section(
            _Item(name=name, detail="", kind=types.SymbolKind.Key, node=key),
            end,
            analysis,
            root.value.get(name),
        )
        for (name, key), end in zip(keys, ends, strict=True)
    ]


def _section(own: _Item, end: int, analysis: Analysis, value: Node | None) -> types.DocumentSymbol:
    """Return the symbol of a key at the top, with those of the steps or parameters below it."""
    items = _steps(value) if own.name in SECTIONS else _members(value) if own.name == "params" else []
    ends = [*[item.node.line - 1 for item in items[1:]], end][: len(items)]
    symbol = _symbol(own, max(end, own.node.line), analysis)
    symbol.children = [
        _symbol(item, max(last, item.node.line), analysis) for item, last in zip(items, ends, strict=True)
    ] or None
    return symbol


def _steps(value: Node | None) -> list[_Item]:
    items = []
    for at, node in enumerate(value.value if value is not None and value.kind == SEQUENCE else (), 1):
        if node.kind != MAPPING or not node.value:
            continue
        written = scalar(node.value.get("id"))
        title = scalar(node.value.get("title"))
        first = min(node.keys.values(), key=lambda key: (key.line, key.col))
        items.append(
            _Item(
                name=written.value if written else str(at),
                detail=title.value if title else "",
                kind=types.SymbolKind.Function,
                node=first,
            )
        )
    return items


def _members(value: Node | None) -> list[_Item]:
    if value is None or value.kind != MAPPING:
        return []
    return [
        _Item(name=name, detail="", kind=types.SymbolKind.Variable, node=key)
        for name, key in value.keys.items()
    ]


def _symbol(item: _Item, end: int, analysis: Analysis) -> types.DocumentSymbol:
    text = analysis.text
    start = text.position(item.node.line, item.node.col)
    whole = types.Range(start, text.position(end, len(text.line(end)) + 1))
    return types.DocumentSymbol(
        name=" ".join(item.name.split()) or "?",
        detail=" ".join(item.detail.split()),
        kind=item.kind,
        range=whole,
        selection_range=types.Range(start, start),
    )


def lenses(analysis: Analysis) -> list[types.CodeLens]:
    """Return the line above a valid plan: its digest, which approvals name, and how many steps it has."""
    if not analysis.digest or analysis.plan is None:
        return []
    steps = len(analysis.plan.steps)
    title = f"digest {analysis.digest[:12]} · {steps} step{'s' * (steps != 1)}"
    command = types.Command(title=title, command="planrun.digest", arguments=[analysis.digest])
    place = types.Position(0, 0)
    return [types.CodeLens(range=types.Range(place, place), command=command)]
