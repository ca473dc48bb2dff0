"""The options of a search, for the verbs that search."""

from __future__ import annotations

from planrun.cliutil.options import Option

_SECTION = "Search"
SEARCH = Option(
    flags=("--search",),
    name="search",
    kind="flag",
    section=_SECTION,
    help="Search a way through known steps and parts; call no model.",
)
LIMITS = (
    Option(
        flags=("--algorithm",),
        name="algorithm",
        kind="choice",
        section=_SECTION,
        choices=("beam", "mcts", "astar"),
        help="How to search, instead of the plan's search.algorithm. Default: beam",
    ),
    Option(
        flags=("--thoroughness",),
        name="thoroughness",
        kind="choice",
        section=_SECTION,
        choices=("quick", "normal", "thorough"),
        help="How far to search, instead of what the plan says. Default: normal",
    ),
    Option(
        flags=("--seed",),
        name="seed",
        kind="count",
        section=_SECTION,
        metavar="N",
        help="The seed of MCTS: the same seed gives the same plan. Default: 0",
    ),
)
