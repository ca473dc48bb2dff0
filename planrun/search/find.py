"""The entrance: search a plan for a problem within limits, whatever the algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic

from planrun.search.astar import astar
from planrun.search.beam import beam
from planrun.search.mcts import mcts
from planrun.search.relaxed import INFINITE
from planrun.search.space import Action, Problem, Space
from planrun.search.tree import Found, Limits, Node, Tree

_ALGORITHMS: dict[str, Callable[[Tree], bool]] = {"beam": beam, "mcts": mcts, "astar": astar}


def find(problem: Problem, limits: Limits, clock: Callable[[], float] = monotonic) -> Found:
    """Return the best plan found within the limits; anytime: what was found before a limit counts.

    The same problem and limits give the same tree and plan, unless the time runs out.
    """
    tree = Tree(Space(problem), limits, clock)
    if tree.least == INFINITE:
        return Found(problem, limits, tree, (), solved=False, optimal=False, truncated=())
    complete = _ALGORITHMS[limits.algorithm](tree)
    end = tree.best or max(tree.nodes, key=lambda node: (node.score.raw, -node.number))
    for node in end.path():
        node.status = "plan" if tree.best is not None else node.status
    solved = tree.best is not None
    lowest = solved and (complete or end.g <= tree.least + 1e-9)
    truncated = () if lowest and limits.algorithm != "mcts" else tuple(sorted(tree.truncated))
    return Found(problem, limits, tree, end.actions(), solved=solved, optimal=lowest, truncated=truncated)


@dataclass(frozen=True, slots=True)
class Other:
    """The best way that lost; `cost`: None for one that did not reach the goal, and ends in `node`."""

    actions: tuple[Action, ...]
    cost: float | None
    node: Node | None = None


def runner_up(found: Found) -> Other | None:
    """Return the cheapest other way to the goal that was seen, else the other node with the best score."""
    tree = found.tree
    way = tree.best.path() if tree.best is not None else []
    nodes = [node for node in tree.nodes if node not in way]
    others = [Other(node.actions(), node.g, node) for node in nodes if node.status == "goal"]
    others += _dearer(found, way)
    if others:
        return min(others, key=lambda other: other.cost or 0.0)
    left = [node for node in nodes if node.status in ("open", "pruned", "deeper") and node.h < INFINITE]
    if not left:
        return None
    best = max(left, key=lambda node: (node.score.raw, -node.number))
    return Other(best.actions(), None, best)


def _dearer(found: Found, way: list[Node]) -> Iterator[Other]:
    """Yield the ways that reach a state of the plan for more, and go on like the plan."""
    states = {node.state: at for at, node in enumerate(way)}
    for parent, move, state in found.tree.dearer:
        at = states.get(state)
        if at is None or any(node.state == state for node in parent.path()):
            continue
        rest = way[-1].actions()[at:]
        cost = parent.g + move.cost + way[-1].g - way[at].g
        yield Other((*parent.actions(), move.action, *rest), cost)
