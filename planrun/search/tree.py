"""What a search leaves behind: its tree with scores, its limits, why it ended, and the plan that it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from planrun.search.relaxed import INFINITE, Relaxation
from planrun.search.space import Action, Move, Problem, Space

ALGORITHMS = ("beam", "mcts", "astar")
SUCCESS, COST, PROGRESS, DEPTH = 0.4, 0.3, 0.3, 0.02
"""The weights of the score."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a plan is searched, and how far; `planning_timeout` in seconds."""

    algorithm: str = "beam"
    beam_width: int = 5
    mcts_iterations: int = 100
    exploration: float = 1.414
    max_tree_depth: int = 10
    max_tree_nodes: int = 1000
    planning_timeout: float = 60.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a node by its parts.

    `success`: the probability that all actions so far succeed at once. `cost`: theirs, as a share of the least that
    the goal can cost. `progress`: the share of the estimated cost to the goal that is behind. `depth`: actions so far.
    """

    success: float
    cost: float
    progress: float
    depth: int

    @property
    def raw(self) -> float:
        """The weighted sum, which orders the nodes."""
        return SUCCESS * self.success + COST * (1 - self.cost) + PROGRESS * self.progress - DEPTH * self.depth

    @property
    def total(self) -> float:
        """The weighted sum between 0 and 1."""
        return min(1.0, max(0.0, self.raw))


@dataclass(slots=True, eq=False)
class Node:
    """One node: the state after `move`. `status`: open, expanded, pruned, deeper, goal, or plan on the way found."""

    number: int
    state: int
    parent: Node | None
    move: Move | None
    depth: int
    g: float
    h: float
    score: Score
    status: str = "open"
    expanded: int = 0  # its turn, from 1
    visits: int = 0
    value: float = 0.0  # the sum of the rewards of its visits

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one."""
        found: list[Node] = []
        node: Node | None = self
        while node is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    def actions(self) -> tuple[Action, ...]:
        """Return the actions from the root to this node."""
        return tuple(node.move.action for node in self.path() if node.move is not None)


@dataclass(slots=True)
class Tree:
    """A tree that grows: it makes nodes within the limits, and keeps the best way to the goal."""

    space: Space
    limits: Limits
    clock: Callable[[], float] = monotonic
    nodes: list[Node] = field(default_factory=list)
    best: Node | None = None
    dearer: list[tuple[Node, Move, int]] = field(default_factory=list)  # to states known for less
    truncated: set[str] = field(default_factory=set)
    expanded: int = 0
    relaxed: Relaxation = field(init=False)
    least: float = field(init=False)
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self.relaxed = Relaxation(self.space)
        self.least = self.relaxed.lm_cut(self.space.start)
        self._until = self.clock() + self.limits.planning_timeout
        self.add(None, None, self.space.start)

    @property
    def root(self) -> Node:
        """The first node."""
        return self.nodes[0]

    @property
    def bound(self) -> float:
        """The cost of the best way so far."""
        return self.best.g if self.best is not None else INFINITE

    def is_over(self, reserved: int = 0) -> bool:
        """Return whether the time or the number of nodes is used up, and note which; `reserved` nodes are to come."""
        if len(self.nodes) + reserved >= self.limits.max_tree_nodes:
            self.truncated.add("max_tree_nodes")
            return True
        return self.is_late()

    def is_late(self) -> bool:
        """Return whether the time is used up, and note it."""
        if self.clock() >= self._until:
            self.truncated.add("planning_timeout")
            return True
        return False

    def add(self, parent: Node | None, move: Move | None, state: int) -> Node:
        """Add a node; one that has the goal becomes the best way if it is cheaper than all before."""
        depth = parent.depth + 1 if parent is not None else 0
        g = parent.g + move.cost if parent is not None and move is not None else 0.0
        h = self.relaxed.lm_cut(state)
        score = self._score(parent, move, (state, depth, g))
        node = Node(len(self.nodes), state, parent, move, depth, g, h, score)
        self.nodes.append(node)
        if self.space.holds(state):
            node.status = "goal"
            if g < self.bound - 1e-9:
                self.best = node
        elif depth >= self.limits.max_tree_depth:
            node.status = "deeper"
        return node

    def expand(self, node: Node) -> list[tuple[Move, int]]:
        """Return the moves from a node, and note its turn; none at the depth of the tree, which is noted too."""
        if node.status == "deeper":
            self.truncated.add("max_tree_depth")
            return []
        self.expanded += 1
        node.expanded = self.expanded
        node.status = "expanded"
        return self.space.after(node.state)

    def share(self, cost: float) -> float:
        """Return a cost as a share of the least that the goal can cost."""
        return cost / self.least if 0 < self.least < INFINITE else 0.0

    def progress(self, state: int) -> float:
        """Return how much of the estimated cost to the goal a state has behind it."""
        whole, left = self.relaxed.h_add(self.space.start), self.relaxed.h_add(state)
        return (
            1 - left / whole if 0 < whole < INFINITE and left < INFINITE else float(self.space.holds(state))
        )

    def _score(self, parent: Node | None, move: Move | None, at: tuple[int, int, float]) -> Score:
        state, depth, g = at
        before = parent.score.success if parent is not None else 1.0
        success = before * (move.action.success if move is not None else 1.0)
        return Score(success, self.share(g), self.progress(state), depth)


@dataclass(frozen=True, slots=True)
class Found:
    """The result: `actions` reach the goal if `solved`, else they are the way to the most promising node.

    `optimal`: no other plan is cheaper. `truncated`: the limits that ended the search before it was complete.
    """

    problem: Problem
    limits: Limits
    tree: Tree
    actions: tuple[Action, ...]
    solved: bool
    optimal: bool
    truncated: tuple[str, ...]

    @property
    def cost(self) -> float:
        """The expected cost of the actions."""
        return sum(action.expected for action in self.actions)
