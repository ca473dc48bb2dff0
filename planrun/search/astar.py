"""A*: the node with the least cost so far plus lower bound of the rest comes first (f = g + h, h by LM-cut)."""

from __future__ import annotations

from heapq import heappop, heappush

from planrun.search.relaxed import INFINITE
from planrun.search.tree import Node, Tree


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
