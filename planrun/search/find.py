"""The entrance: search a plan for a problem within limits, whatever the algorithm."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from planrun.search.astar import astar
from planrun.search.beam import beam
from planrun.search.mcts import mcts
from planrun.search.relaxed import INFINITE
from planrun.search.space import Problem, Space
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


def runner_up(found: Found) -> Node | None:
    """Return the end of the best other way: the cheapest other node with the goal, else the one with the best score."""
    on_way = set(map(id, found.tree.best.path())) if found.tree.best is not None else set()
    nodes = [node for node in found.tree.nodes if id(node) not in on_way]
    ends = [node for node in nodes if node.status == "goal"]
    if ends:
        return min(ends, key=lambda node: (node.g, node.number))
    left = [node for node in nodes if node.status in ("open", "pruned", "deeper") and node.h < INFINITE]
    return max(left, key=lambda node: (node.score.raw, -node.number)) if left else None
