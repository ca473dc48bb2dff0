"""Orders of steps that mean the same: how long each would take, and the one in which the longest path comes first."""

from __future__ import annotations

from heapq import heappop, heappush

from planrun.model import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.model.graph import Waits


def by_longest_path(before: Waits, names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return steps so that each follows what it waits for, otherwise that with the longest path left first."""
    rank = graph.weights(before, seconds)
    return _taken(before, {name: (-rank[name], at) for at, name in enumerate(names)})


def makespan(before: Waits, names: Sequence[str], seconds: Mapping[str, float], places: int) -> float:
    """Return the seconds that steps take as a run without records starts them, `places` at once.

    Such a run takes all steps for equally long, and starts first what most others wait behind, then by the file.
    """
    rank = graph.weights(before, {})
    order = {name: (-rank[name], at) for at, name in enumerate(names)}
    open_ = {name: len(before[name]) for name in names}
    after = graph.reverse(before)
    ready = [(order[name], name) for name in names if not open_[name]]
    ready.sort()
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < places:
            name = heappop(ready)[1]
            heappush(running, (now + seconds[name], name))
        now, ended = heappop(running)
        for other in after[ended]:
            open_[other] -= 1
            if not open_[other]:
                heappush(ready, (order[other], other))
    return now


def _taken(before: Waits, order: Mapping[str, tuple[float, int]]) -> list[str]:
    open_ = {name: len(before[name]) for name in order}
    after = graph.reverse(before)
    ready = sorted([(order[name], name) for name in order if not open_[name]])
    found = []
    while ready:
        name = heappop(ready)[1]
        found.append(name)
        for other in after[name]:
            open_[other] -= 1
            if not open_[other]:
                heappush(ready, (order[other], other))
    return found
