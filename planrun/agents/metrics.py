"""How delegations went: successes and failures of each path, and of each type of agent, from run to run.

A path is `from:to:context`. Its weight is a moving average between 0.5 and 2.0 that starts at 1.0. Nothing is written
but by `save`, which takes the results of this run into what other runs have written meanwhile.
"""

from __future__ import annotations

import os

from planrun.agents import kept
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "delegation.json"
MAX_PATHS = 200
MAX_STRATEGIES = 200
RECENT = 20
"""How many of the last results of a path are kept."""
LEAST_WEIGHT, MOST_WEIGHT, FIRST_WEIGHT = 0.5, 2.0, 1.0
TREND_SAMPLES = 5
"""With fewer results a path has no trend."""
UNKNOWN = 0.5
"""The rate of success where nothing is known."""
_FORM = "planrun delegation 1"
_DIGITS = 6  # of a weight in the file


class PathStats(Record):
    """What is known of one path; `recent`: its last results, the oldest first; `seconds`: of all delegations."""

    success: int = 0
    failure: int = 0
    seconds: float = 0.0
    weight: float = FIRST_WEIGHT
    recent: tuple[bool, ...] = ()
    last_used: str = ""

    @property
    def rate(self) -> float:
        """The share of successes; UNKNOWN where there are no results. 0 and 1 count as they are."""
        return _rate(self.success, self.failure)

    @property
    def trend(self) -> float:
        """The rate of the second half of the last results minus that of the first, from -1 to 1."""
        if len(self.recent) < TREND_SAMPLES:
            return 0.0
        middle = len(self.recent) // 2
        first, second = self.recent[:middle], self.recent[middle:]
        return sum(second) / len(second) - sum(first) / len(first)

    def after(self, result: Result, alpha: float) -> PathStats:
        """Return what is known after one more result."""
        return PathStats(
            success=self.success + result.ok,
            failure=self.failure + (not result.ok),
            seconds=round(self.seconds + result.seconds, 3),
            weight=moved(self.weight, alpha, ok=result.ok),
            recent=(*self.recent, result.ok)[-RECENT:],
            last_used=result.at,
        )


class Result(Record):
    """The end of one delegation: its path, the type of the agent that did it, and how long it took."""

    path: str
    strategy: str
    ok: bool
    seconds: float
    at: str


def path_key(source: str, target: str, context: str) -> str:
    """Return the key of a path: `from:to:context`."""
    return f"{source}:{target}:{context}"


def moved(weight: float, alpha: float, *, ok: bool) -> float:
    """Return a weight after one result: a step towards 2.0 or 0.5, and never beyond."""
    target = MOST_WEIGHT if ok else LEAST_WEIGHT
    return round(min(MOST_WEIGHT, max(LEAST_WEIGHT, weight + alpha * (target - weight))), _DIGITS)


class Metrics:
    """The store of one run; `alpha`: of the moving average."""

    def __init__(self, alpha: float = 0.1) -> None:
        self.paths: dict[str, PathStats] = {}  # the least recently used first
        self.strategies: dict[str, tuple[int, int]] = {}  # successes and failures, in the same order
        self._alpha = alpha
        self._results: list[Result] = []  # of this run, not saved yet

    def of(self, path: str) -> PathStats:
        """Return what is known of a path."""
        return self.paths.get(path) or PathStats()

    def base_rate(self, strategy: str) -> float:
        """Return the share of successes of a type of agent; UNKNOWN where it has no results."""
        return _rate(*self.strategies.get(strategy, (0, 0)))

    def record(self, result: Result) -> None:
        """Take the result of a delegation."""
        self._take(result)
        self._results.append(result)

    def _take(self, result: Result) -> None:
        self.paths[result.path] = self.paths.pop(result.path, PathStats()).after(result, self._alpha)
        success, failure = self.strategies.pop(result.strategy, (0, 0))
        self.strategies[result.strategy] = (success + result.ok, failure + (not result.ok))
        _evict(self.paths, MAX_PATHS)
        _evict(self.strategies, MAX_STRATEGIES)

    def load(self, folder: str) -> None:
        """Take what a folder holds in place of what is known; nothing where it holds nothing."""
        data = kept.read(os.path.join(folder, FILE), _FORM)
        self.paths = dict(_paths(data.get("paths")))
        self.strategies = dict(_strategies(data.get("strategies")))
        _evict(self.paths, MAX_PATHS)
        _evict(self.strategies, MAX_STRATEGIES)

    def save(self, folder: str, since: str = "") -> None:
        """Add the results of this run after a time to a folder; does nothing without any. Raises RecordsLost."""
        results = [result for result in self._results if result.at > since]
        self._results = []
        if not results:
            return
        path = os.path.join(folder, FILE)
        with kept.locked(path):
            self.load(folder)
            for result in results:
                self._take(result)
            kept.write(path, _FORM, self.as_data())

    def as_data(self) -> dict[str, Any]:
        """Return the store as JSON data."""
        return {
            "paths": {
                key: {
                    "success": stats.success,
                    "failure": stats.failure,
                    "seconds": stats.seconds,
                    "weight": stats.weight,
                    "recent": [int(ok) for ok in stats.recent],
                    "last_used": stats.last_used,
                }
                for key, stats in self.paths.items()
            },
            "strategies": {name: list(counts) for name, counts in self.strategies.items()},
        }


def _rate(success: int, failure: int) -> float:
    return success / (success + failure) if success + failure else UNKNOWN


def _evict(table: dict[str, Any], most: int) -> None:
    """Drop the least recently used rows over a limit."""
    while len(table) > most:
        del table[next(iter(table))]


# A file may have been edited: rows of another form are left out.


def _paths(data: object) -> list[tuple[str, PathStats]]:
    rows = [(key, _stats(row)) for key, row in data.items()] if isinstance(data, dict) else []
    return [(key, stats) for key, stats in rows if stats is not None]


def _stats(row: Mapping[str, Any]) -> PathStats | None:
    try:
        stats = PathStats(
            success=int(row["success"]),
            failure=int(row["failure"]),
            seconds=max(0.0, float(row["seconds"])),
            weight=min(MOST_WEIGHT, max(LEAST_WEIGHT, float(row["weight"]))),  # also of what is no number
            recent=tuple([bool(ok) for ok in row["recent"]])[-RECENT:],
            last_used=str(row["last_used"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    is_sound = stats.success >= 0 and stats.failure >= 0 and stats.seconds < float("inf")
    return stats if is_sound else None


def _strategies(data: object) -> list[tuple[str, tuple[int, int]]]:
    if not isinstance(data, dict):
        return []
    return [
        (name, (counts[0], counts[1]))
        for name, counts in data.items()
        if isinstance(counts, list) and len(counts) == 2 and all(type(n) is int and n >= 0 for n in counts)
    ]
