"""Monte Carlo tree search: UCB1 chooses where the tree grows, and seeded rollouts show what that is worth."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random

from planrun.search.relaxed import INFINITE
from planrun.search.space import Move
from planrun.search.tree import Node, Score, Tree

GREEDY = 0.85
"""The share of a rollout's moves that follow the estimate; the others are drawn at random."""


class Mcts:
    """One search. `untried`: the moves of a node that have no child yet, the most promising last."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.random = Random(tree.limits.seed)  # noqa: S311 - the same seed has to give the same plan
        self.untried: dict[Node, list[tuple[Move, int]]] = {}
        self.children: dict[Node, list[Node]] = {}
        self.way: tuple[float, Node, list[tuple[Move, int]]] | None = None  # the best one, with its rollout

    def run(self) -> bool:
        """Iterate until the limits are reached; False: never is every other plan ruled out."""
        for _ in range(self.tree.limits.mcts_iterations):
            if self.tree.is_over(self.way[1].depth + len(self.way[2]) if self.way is not None else 0):
                break
            node = self._grown(self._selected())
            reward = self._rollout(node)
            for each in node.path():
                each.visits += 1
                each.value += reward
        if self.way is not None:
            _, node, played = self.way
            moves = [each.move for each in node.path() if each.move is not None] + [
                pair[0] for pair in played
            ]
            moves = _needed(moves, self.tree)
            node = self.tree.root
            for move in moves:
                state = node.state & move.keeps | move.provides
                same = [child for child in self.children.get(node, ()) if child.move is move]
                node = same[0] if same else self.tree.add(node, move, state)
        return False

    def _selected(self) -> Node:
        """Follow the children with the highest upper confidence bound to a node that can grow, or ends."""
        node = self.tree.root
        while True:
            if node.status in ("goal", "deeper"):
                return node
            if node not in self.untried:
                moves = self.tree.expand(node)
                moves.sort(key=lambda pair: -(pair[0].cost + self.tree.relaxed.h_add(pair[1])))
                self.untried[node] = [pair for pair in moves if self._is_new(node, pair[1])]
                self.children[node] = []
            if self.untried[node] or not self.children[node]:
                return node
            node = max(self.children[node], key=lambda child: (self._ucb(child), -child.number))

    def _is_new(self, node: Node, state: int) -> bool:
        return self.tree.relaxed.h_add(state) < INFINITE and all(each.state != state for each in node.path())

    def _ucb(self, child: Node) -> float:
        assert child.parent is not None
        mean = child.value / child.visits
        return mean + self.tree.limits.exploration * sqrt(log(child.parent.visits) / child.visits)

    def _grown(self, node: Node) -> Node:
        if not self.untried.get(node):
            return node
        move, state = self.untried[node].pop()
        child = self.tree.add(node, move, state)
        self.children[node].append(child)
        return child

    def _rollout(self, node: Node) -> float:
        """Play to the goal or the depth of the tree; returns the score of where that ends, by the logistic function.

        A clamped score would make all dear plans equal.
        """
        space, relaxed = self.tree.space, self.tree.relaxed
        state, g, success, seen = node.state, node.g, node.score.success, {each.state for each in node.path()}
        played: list[tuple[Move, int]] = []
        while not space.holds(state) and node.depth + len(played) < self.tree.limits.max_tree_depth:
            choices = [pair for pair in space.after(state) if pair[1] not in seen]
            choices = [pair for pair in choices if relaxed.h_add(pair[1]) < INFINITE]
            if not choices or self.tree.is_late():
                break
            if self.random.random() >= GREEDY:
                move, state = choices[self.random.randrange(len(choices))]
            else:
                values = [pair[0].cost + self.tree.relaxed.h_add(pair[1]) for pair in choices]
                least = min(values) + 1e-9
                nearest = [pair for pair, value in zip(choices, values, strict=True) if value <= least]
                move, state = nearest[self.random.randrange(len(nearest))]
            seen.add(state)
            played.append((move, state))
            g, success = g + move.cost, success * move.action.success
        if space.holds(state):
            if self.way is None or g < self.way[0] - 1e-9:
                if len(self.tree.nodes) + node.depth + len(played) <= self.tree.limits.max_tree_nodes:
                    self.way = (g, node, played)
                else:
                    self.tree.truncated.add("max_tree_nodes")
        elif node.depth + len(played) >= self.tree.limits.max_tree_depth:
            self.tree.truncated.add("max_tree_depth")
        depth = node.depth + len(played)
        score = Score(success, self.tree.share(g), max(0.0, self.tree.progress(state)), depth)
        return 1 / (1 + exp(min(50.0, -score.raw)))


def _needed(moves: list[Move], tree: Tree) -> list[Move]:
    """Leave out every move, and what only it made possible, without which the rest still reaches the goal."""
    at = 0
    while at < len(moves):
        state, kept = tree.space.start, moves[:at]
        for move in kept:
            state = state & move.keeps | move.provides
        for move in moves[at + 1 :]:
            if state & move.requires == move.requires:
                state = state & move.keeps | move.provides
                kept.append(move)
        if tree.space.holds(state):
            moves = kept
        else:
            at += 1
    return moves


def mcts(tree: Tree) -> bool:
    """Search by iterations."""
    if tree.best is not None:
        return True
    return Mcts(tree).run()
