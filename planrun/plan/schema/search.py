"""The key `search`: how a way to a goal is searched, as a pydantic model with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.plan.schema.fields import Count, Duration, Lines, Positive, Written, key
from planrun.plan.schema.step import Step


class Search(Written):
    """How planrun searches a way to a goal by itself."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    goal: Lines | None = key(
        "Facts that must hold at the end. Left out: all that the steps provide.", ["published"]
    )
    start: Lines | None = key("Facts that hold at the beginning.", ["checkout"])
    algorithm: Literal["beam", "mcts", "astar"] | None = key(
        "Beam search, Monte Carlo tree search, or A*, which finds the cheapest plan.", "beam"
    )
    thoroughness: Literal["quick", "normal", "thorough"] | None = key(
        "Sets beam_width 3/5/7, mcts_iterations 50/100/200, max_tree_depth 5/10/15 and max_replans 1/3/5.",
        "normal",
    )
    beam_width: Annotated[int, Field(ge=1, le=1000)] | None = key(
        "How many nodes of each depth beam search expands.", 5
    )
    mcts_iterations: Annotated[int, Field(ge=1, le=100_000)] | None = key("How often MCTS iterates.", 100)
    max_tree_depth: Annotated[int, Field(ge=1, le=1000)] | None = key("How many actions a plan may have.", 10)
    max_tree_nodes: Positive | None = key("How many nodes the tree may have.", 1000)
    planning_timeout: Duration | None = key(
        "How long one search may take; then the best plan so far counts.", "1m"
    )
    seed: Count | None = key("The seed of MCTS: the same seed gives the same plan.", 7)
    replan_on_failure: bool | None = key(
        "Whether a failed step that provides facts is replaced by another way during the run.", example=True
    )
    candidates: Annotated[int, Field(ge=0, le=20)] | None = key(
        "How many steps a model may offer to each search; they count as written by a model. 0: no model is asked.",
        3,
    )
    parts: Annotated[list[Step], Field(min_length=1)] | None = key(
        "Steps that run only where a search takes them; each has an `id` and `provides`.",
        [{"id": "mirror", "run": "./mirror.sh", "provides": "published"}],
    )
