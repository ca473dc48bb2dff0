"""Beam search: of each depth only the nodes with the highest scores are expanded."""

from __future__ import annotations

from planrun.search.relaxed import INFINITE
from planrun.search.tree import Node, Tree


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
