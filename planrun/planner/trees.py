"""The record of a search as plain data, and as text and mermaid: what was expanded, the scores, why others lost."""

from __future__ import annotations

from planrun.planner.facts import plain_facts
from planrun.search.find import runner_up
from planrun.search.relaxed import INFINITE
from planrun.search.tree import COST, DEPTH, PROGRESS, SUCCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.planner.candidates import Offer
    from planrun.search.find import Other
    from planrun.search.space import Action
    from planrun.search.tree import Found, Node

FORMULA = f"{SUCCESS:g}*success + {COST:g}*(1-cost) + {PROGRESS:g}*progress - {DEPTH:g}*depth"
"""The score, as it is shown."""
SETTINGS = ("algorithm", "beam_width", "mcts_iterations", "max_tree_depth", "max_tree_nodes", "seed")
_ARROW = " → "
_SOURCES = {"step": "the steps of the plan", "part": "its parts"}
_MOST_SHOWN = 60  # nodes in the text and in the picture


def record_of(
    found: Found, purpose: str, failed: Sequence[str] = (), offer: Offer | None = None
) -> dict[str, Any]:
    """Return a search as JSON data; the same search gives the same data."""
    tree = found.tree
    return {
        "purpose": purpose,
        "failed": list(failed),
        "limits": {name: getattr(found.limits, name) for name in (*SETTINGS, "planning_timeout")},
        "start": list(plain_facts(found.problem.start)),
        "goal": list(plain_facts(found.problem.goal)),
        "solved": found.solved,
        "optimal": found.optimal,
        "truncated": list(found.truncated),
        "cost": _number(found.cost),
        "success": _number(tree.best.score.success if tree.best else 0.0),
        "least": _number(tree.least),
        "expanded": tree.expanded,
        "plan": [_action(action) for action in found.actions],
        "runner_up": _runner_up(found),
        "sources": {action.name: action.source or None for action in found.problem.actions},
        "candidates": offer.recorded() if offer is not None and offer.model else None,
        "nodes": [_node(node) for node in tree.nodes],
    }


def _number(value: float) -> float | None:
    return None if value == INFINITE else round(value, 6)


def _action(action: Action) -> dict[str, Any]:
    return {
        "action": action.name,
        "kind": action.kind,
        "from": action.source or None,
        "cost": _number(action.cost),
        "parts": {name: _number(part) for name, part in action.parts if part},
        "success": _number(action.success),
        "expected": _number(action.expected),
        "requires": list(plain_facts(action.requires)),
        "provides": list(plain_facts(action.provides)),
        "deletes": list(plain_facts(action.deletes)),
    }


def _node(node: Node) -> dict[str, Any]:
    score = node.score
    return {
        "node": node.number,
        "parent": node.parent.number if node.parent else None,
        "action": node.move.action.name if node.move else None,
        "kind": node.move.action.kind if node.move else None,
        "depth": node.depth,
        "g": _number(node.g),
        "h": _number(node.h),
        "score": {
            "success": _number(score.success),
            "cost": _number(score.cost),
            "progress": _number(score.progress),
            "depth": score.depth,
            "total": _number(score.total),
        },
        "status": node.status,
        "expanded": node.expanded or None,
        "visits": node.visits,
        "value": _number(node.value),
    }


def _runner_up(found: Found) -> dict[str, Any] | None:
    other = runner_up(found)
    if other is None:
        return None
    return {
        "node": other.node.number if other.node else None,
        "actions": [each.name for each in other.actions],
        "cost": None if other.cost is None else _number(other.cost),
        "why": _why(found, other),
    }


def _why(found: Found, other: Other) -> str:
    """Return why another way lost."""
    best, node = found.tree.best, other.node
    if best is not None and other.cost is not None:
        more = other.cost - best.g
        if more < 1e-6:
            return f"it costs as much ({other.cost:.1f}) and was found later"
        return f"it costs {other.cost:.1f}, which is {more:.1f} more"
    assert node is not None
    if best is None:
        return f"no way to the goal was found; its score is {node.score.total:.3f}"
    if node.g + node.h >= best.g - 1e-9:
        return f"it costs at least {node.g + node.h:.1f}, and the plan {best.g:.1f}"
    if node.status == "deeper":
        return f"it is at the depth of the tree ({found.limits.max_tree_depth}) and not at the goal"
    if found.limits.algorithm == "beam":
        return (
            f"its score of {node.score.raw:.3f} was not among the {found.limits.beam_width} best of its depth"
        )
    visits = f"; it was visited {node.visits} times" if found.limits.algorithm == "mcts" else ""
    return f"the search ended before it was expanded{visits}"


# Text.


def headline(record: Mapping[str, Any]) -> str:
    """Return in one line what was found."""
    size = f"{len(record['nodes'])} nodes, {record['expanded']} expanded"
    stop = f"; truncated: {', '.join(record['truncated'])}" if record["truncated"] else ""
    if not record["solved"]:
        return f"no way to {', '.join(record['goal']) or 'the goal'} found; {size}{stop}"
    cheapest = ", the cheapest there is" if record["optimal"] else ""
    count = len(record["plan"])
    return (
        f"{count} step{'' if count == 1 else 's'}, expected cost {record['cost']:.1f} s{cheapest}, "
        f"success at once {record['success']:.0%}; {size}{stop}"
    )


def lines_of(record: Mapping[str, Any], *, explain: bool) -> Iterator[str]:
    """Yield a search as lines of text."""
    limits = record["limits"]
    yield f"search: {', '.join([f'{name} {limits[name]}' for name in SETTINGS])}"
    if record["failed"]:
        yield f"instead of: {', '.join(record['failed'])}"
    yield f"from: {', '.join(record['start']) or 'no fact'}"
    yield f"goal: {', '.join(record['goal'])}"
    if offer := record.get("candidates"):
        yield f"candidates: {offered(offer)}"
    yield f"found: {headline(record)}"
    for number, action in enumerate(record["plan"], 1):
        yield f"  {number}. {_shown(action)}"
    if explain:
        yield from _explained(record)


def _shown(action: Mapping[str, Any]) -> str:
    parts = " + ".join([f"{name} {part:g}" for name, part in action["parts"].items()])
    source = action.get("from") or ""
    author = f", from {source}" if source not in ("", "step", "part") else ""
    return (
        f"{action['action']} ({action['kind']}{author}): expected {action['expected']:.1f} s"
        f" = ({parts or '0'}) / success {action['success']:.2f}"
    )


def offered(offer: Mapping[str, Any]) -> str:
    """Return in one line what a model offered, or why nothing."""
    names = ", ".join(offer["offered"]) or "none"
    refused = "".join([f"; refused: {each['step'] or 'all'} ({each['reason']})" for each in offer["refused"]])
    why = "" if offer["outcome"] == "accepted" else f" ({offer['outcome']}: {offer['message']})"
    return f"{names} from {offer['model']}{why}{refused}"


def _explained(record: Mapping[str, Any]) -> Iterator[str]:
    sources: dict[str, list[str]] = {}
    for name, source in record.get("sources", {}).items():
        sources.setdefault(source or "step", []).append(name)
    for source, names in sources.items():
        yield f"actions from {_SOURCES.get(source, source)}: {', '.join(names)}"
    yield f"score = {FORMULA}"
    nodes = sorted([node for node in record["nodes"] if node["expanded"]], key=lambda node: node["expanded"])
    mcts = record["limits"]["algorithm"] == "mcts"
    yield f"expanded, in order ({len(nodes)}):"
    for node in nodes[:_MOST_SHOWN]:
        score = node["score"]
        visits = f", visits {node['visits']}" if mcts else ""
        yield (
            f"  {node['expanded']}. {_way(record, node)}: score {score['total']:.3f} (success {score['success']:.2f}, "
            f"cost {score['cost']:.2f}, progress {score['progress']:.2f}, depth {score['depth']}), "
            f"f {node['g']:.1f} + {_left(node)}{visits}"
        )
    if len(nodes) > _MOST_SHOWN:
        yield f"  and {len(nodes) - _MOST_SHOWN} more; --json has all"
    other = record["runner_up"]
    if other:
        yield f"runner-up: {_ARROW.join(other['actions']) or 'the start'}: {other['why']}"
    else:
        yield "runner-up: none; there was no other way"


def _left(node: Mapping[str, Any]) -> str:
    return "∞" if node["h"] is None else f"{node['h']:.1f}"


def _way(record: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    found, at = [], node
    while at["parent"] is not None:
        found.append(at["action"])
        at = record["nodes"][at["parent"]]
    return _ARROW.join(found[::-1]) or "the start"


def statistics(records: Sequence[Mapping[str, Any]], *, active: int, replans: int) -> dict[str, Any]:
    """Return what the searches of a plan or a run amount to."""
    algorithms = sorted({record["limits"]["algorithm"] for record in records})
    return {
        "algorithm": algorithms[0] if len(algorithms) == 1 else algorithms or None,
        "active_trees": active,
        "total_trees": len(records),
        "total_nodes": sum(len(record["nodes"]) for record in records),
        "total_expanded": sum(record["expanded"] for record in records),
        "total_replans": replans,
        "truncated": sorted({limit for record in records for limit in record["truncated"]}),
    }


def mermaid(record: Mapping[str, Any]) -> str:
    """Return the tree as a mermaid graph: the plan, and the first other nodes."""
    wanted = [node for node in record["nodes"] if node["status"] == "plan"]
    wanted += [node for node in record["nodes"] if node["status"] != "plan"][
        : max(0, _MOST_SHOWN - len(wanted))
    ]
    shown = {node["node"] for node in wanted}
    rows = ["graph TD"]
    for node in sorted(wanted, key=lambda node: node["node"]):
        label = f"{node['action'] or 'start'}<br/>{node['score']['total']:.2f}"
        rows.append(f'  n{node["node"]}["{label}"]{":::plan" if node["status"] == "plan" else ""}')
        if node["parent"] in shown:
            rows.append(f"  n{node['parent']} --> n{node['node']}")
    rows.append("  classDef plan stroke-width:3px")
    return "\n".join(rows)
