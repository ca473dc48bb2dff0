"""The options of a search, for the verbs that search."""

from __future__ import annotations

from planrun.cliutil.options import Option
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SECTION = "Search"
MOST_CANDIDATES = 20
SEARCH = Option(
    flags=("--search",),
    name="search",
    kind="flag",
    section=_SECTION,
    help="Search a way through known steps and parts; call no model.",
)
CANDIDATES = Option(
    flags=("--candidates",),
    name="candidates",
    kind="count",
    section=_SECTION,
    metavar="N",
    help="With --search: ask the model for up to N more steps, which count as written by it. Default: the plan's, or 0",
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


def check_candidates(count: int | None) -> None:
    """Raise InvalidInput for more candidates than one search can have."""
    if (count or 0) > MOST_CANDIDATES:
        raise InvalidInput(f"--candidates takes at most {MOST_CANDIDATES}")


def limits_in(own: Mapping[str, Any], *, without: tuple[str, ...]) -> dict[str, Any]:
    """Return the limits of a search among the options of a verb; raises InvalidInput where they do not apply.

    `without`: options that do not go with --search, since they are about a model.
    """
    options = (*LIMITS, CANDIDATES)
    found = {option.name: own[option.name] for option in options if own[option.name] is not None}
    if not own["search"]:
        if found or own.get("parts"):
            raise InvalidInput(
                "--algorithm, --thoroughness, --seed, --candidates and --parts are for --search"
            )
    elif given := [name for name in without if own[name]]:
        raise InvalidInput(f"--search does not go with --{given[0].replace('_', '-')}")
    check_candidates(found.get("candidates"))
    return found
