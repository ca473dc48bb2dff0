"""Search a plan for a problem within limits, by A*, beam search or Monte Carlo tree search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from time import monotonic

from planrun.search.mcts import mcts
from planrun.search.relaxed import INFINITE
from planrun.search.space import Action, Problem, Space
from planrun.search.tree import Found, Limits, Node, Tree


def beam(tree: Tree) -> bool:
    """Search depth by depth until no node could lead to a cheaper plan; returns whether nothing was left out.

    A node that cannot beat the best way so far is left out without loss; all others that do not fit the width are lost.
    """
    level, known, complete = [tree.root], {tree.root.state: 0.0}, True
    if tree.best is not None:
        return True
    while level:
        children: dict[int, Node] = {}
        for node in level:
            if not _children(tree, node, (known, children)):
                return False
        promising = [child for child in children.values() if _may_win(tree, child)]
        promising.sort(key=lambda node: (-node.score.raw, node.number))
        for lost in promising[tree.limits.beam_width :]:
            lost.status = "pruned"
            complete = False
        level = promising[: tree.limits.beam_width]
    return complete and "max_tree_depth" not in tree.truncated


def _children(tree: Tree, node: Node, seen: tuple[dict[int, float], dict[int, Node]]) -> bool:
    """Add the nodes after a node, of two with one state the cheaper; returns whether the limits allow more."""
    known, children = seen
    for move, state in tree.expand(node):
        g = node.g + move.cost
        if g >= known.get(state, INFINITE) - 1e-9:
            tree.dearer.append((node, move, state))
            continue
        if tree.is_over():
            return False
        known[state] = g
        child = tree.add(node, move, state)
        if state in children:
            children[state].status = "pruned"
        children[state] = child
    return True


def _may_win(tree: Tree, node: Node) -> bool:
    if node.status == "goal":
        return False
    if node.g + node.h >= tree.bound - 1e-9:
        node.status = "pruned"
        return False
    return True


def astar(tree: Tree) -> bool:
    """Search until the plan found is the cheapest, or a limit is reached; returns whether it is the cheapest.

    Of nodes with the same f the one closest to the goal comes first, then the older one. The bound is admissible and
    not always consistent, so a state that is reached again for less is looked at again.
    """
    root = tree.root
    known = {root.state: 0.0}
    heap: list[tuple[float, float, int, Node]] = [(root.h, root.h, 0, root)]
    while heap:
        f, _, _, node = heappop(heap)
        if f >= tree.bound - 1e-9:
            return "max_tree_depth" not in tree.truncated
        if node.g > known[node.state] + 1e-9:
            node.status = "pruned"
            continue
        for move, state in tree.expand(node):
            g = node.g + move.cost
            if g >= known.get(state, INFINITE) - 1e-9:
                tree.dearer.append((node, move, state))
                continue
            if tree.is_over():
                return False
            child = tree.add(node, move, state)
            known[state] = g
            if child.h == INFINITE:
                child.status = "pruned"
            elif child.status != "goal":
                heappush(heap, (g + child.h, child.h, child.number, child))
    return "max_tree_depth" not in tree.truncated


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
