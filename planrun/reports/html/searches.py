"""The trees of searches as pictures: of a run in its page, and by themselves as SVG."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.html.layout import layout
from planrun.reports.html.picture import Drawing, Pen
from planrun.reports.searches import read_searches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.model.state import RunState

MOST = 60
"""Nodes in a picture: the plan, and the first others."""
_PLAN, _OTHER = "completed", "skipped"  # statuses whose colours the nodes have


class Tree(Record):
    """A search: what it was for, the way that it found, why the runner-up lost, and the picture; `left_out`: nodes."""

    title: str
    found: str
    runner_up: str
    drawing: Drawing
    left_out: int = 0


def of_run(state: RunState, rundir: str) -> list[Tree]:
    """Return the trees of the searches of a run; nothing is read of one that did not search."""
    begun = state.planning.started if state.planning else []
    if not any(event.model.startswith("search:") for event in begun):
        return []
    return [*trees(read_searches(rundir, len(begun)))]


def trees(records: Iterable[Mapping[str, Any]]) -> Iterator[Tree]:
    """Yield what is shown of searches."""
    for record in records:
        nodes = shown(record)
        ways = [f"{step['action']} ({_source(step.get('from'))})" for step in record["plan"]]
        failed = ", ".join(record["failed"])
        other = record["runner_up"]
        yield Tree(
            title=f"instead of {failed}" if failed else f"to {', '.join(record['goal'])}",
            found=" → ".join(ways) or "no way",
            runner_up=f"{' → '.join(other['actions']) or 'the start'}: {other['why']}" if other else "",
            drawing=_drawn(nodes),
            left_out=len(record["nodes"]) - len(nodes),
        )


def shown(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the nodes of a tree that are drawn, in their order, each after its parent."""
    by_number = {node["node"]: node for node in record["nodes"]}
    wanted = {node["node"] for node in record["nodes"] if node["status"] == "plan"}
    for node in record["nodes"]:
        if len(wanted) >= MOST:
            break
        if node["parent"] is None or node["parent"] in wanted:
            wanted.add(node["node"])
    return [by_number[number] for number in sorted(wanted)]


def _source(source: str | None) -> str:
    return {None: "step", "step": "step of the plan", "part": "part of the plan"}.get(
        source, f"from {source}"
    )


def _drawn(nodes: list[Mapping[str, Any]]) -> Drawing:
    waits = {str(node["node"]): [] if node["parent"] is None else [str(node["parent"])] for node in nodes}
    found = layout(waits)
    assert found is not None  # it has MOST nodes at most, and no long edges
    by_name = {str(node["node"]): node for node in nodes}
    labels = {
        name: f"{node['action'] or 'start'} {node['score']['total']:.2f}" for name, node in by_name.items()
    }
    on_plan = {name for name, node in by_name.items() if node["status"] == "plan"}
    pen = Pen(
        found,
        {
            name: (label, _PLAN if name in on_plan else _OTHER, _about(by_name[name]))
            for name, label in labels.items()
        },
        on_plan,
    )
    return Drawing(
        width=pen.width,
        height=pen.height,
        boxes=tuple(pen.boxes),
        curves=tuple([pen.curve(pair, "ok", critical=on_plan.issuperset(pair)) for pair in found.edges]),
    )


def _about(node: Mapping[str, Any]) -> str:
    score = node["score"]
    return (
        f"{node['action'] or 'start'}: {node['status']}, score {score['total']:.3f} (success {score['success']:.2f}, "
        f"cost {score['cost']:.2f}, progress {score['progress']:.2f}, depth {score['depth']})"
    )
