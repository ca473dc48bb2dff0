"""What the key `search` of a plan says: how a way to a goal is searched, and with which further steps."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from planrun.model.plan import Step

    Algorithm = Literal["beam", "mcts", "astar"]
    Thoroughness = Literal["quick", "normal", "thorough"]

PRESETS = {
    "quick": {"beam_width": 3, "mcts_iterations": 50, "max_tree_depth": 5, "max_replans": 1},
    "normal": {"beam_width": 5, "mcts_iterations": 100, "max_tree_depth": 10, "max_replans": 3},
    "thorough": {"beam_width": 7, "mcts_iterations": 200, "max_tree_depth": 15, "max_replans": 5},
}
"""What a thoroughness stands for, as far as the plan does not say it."""


class Search(Record):
    """The settings of the search; times in seconds. `parts`: steps that run only where a search takes them."""

    goal: tuple[str, ...] = ()  # facts; (): all that the steps provide
    start: tuple[str, ...] = ()
    algorithm: Algorithm = "beam"
    thoroughness: Thoroughness = "normal"
    beam_width: int = 5
    mcts_iterations: int = 100
    max_tree_depth: int = 10
    max_tree_nodes: int = 1000
    planning_timeout: float = 60.0
    seed: int = 0
    replan_on_failure: bool = True
    candidates: int = 0  # steps that a model may offer to each search
    parts: tuple[Step, ...] = ()
