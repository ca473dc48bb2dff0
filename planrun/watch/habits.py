"""Which files a run writes itself, so that their changes during a run do not start it again for ever.

A file that appeared during a run is the run's own. One that was there before and changes is taken for the work of a
person, until it has changed in several runs in a row, each time after about as many seconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TIMES = 3  # changes in a row, after about the same time
_AT_MOST = 10  # changes in a row, whenever they came
_APART = 0.5  # seconds
_SHARE = 0.25  # of the time since the start of the run


class Habits:
    """What is known of the files that runs write."""

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._after: dict[
            str, list[float]
        ] = {}  # seconds from the start of the run, in the last runs in a row
        self._now: set[str] = set()  # that changed in this run
        self._news: list[str] = []

    def made(self, paths: Iterable[str]) -> None:
        """Note that files appeared during a run."""
        self._own.update(paths)

    def of_others(self, paths: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Return the files that a person changed, so many seconds after the start of a run."""
        found = [path for path in paths if path not in self._own]
        if found:
            for path in found:
                if path not in self._now:
                    self._now.add(path)
                    self._after.setdefault(path, []).append(seconds)
        for path in list(found):
            times = self._after[path]
            last = times[-_TIMES:]
            close = max(last) - min(last) <= max(_APART, _SHARE * sum(last) / len(last))
            if (len(times) >= _TIMES and close) or len(times) >= _AT_MOST:
                self._own.add(path)
                self._news.append(path)
                found.remove(path)
        return tuple(found)

    def begin(self) -> None:
        """A run begins; of files that did not change in the last one nothing is kept."""
        self._after = {path: times for path, times in self._after.items() if path in self._now}
        self._now = set()

    def news(self) -> list[str]:
        """Return the files that were recognised since the last call."""
        news, self._news = self._news, []
        return news
