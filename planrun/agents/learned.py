"""What was learned from errors: normalised messages, what was tried, and how often that helped, from run to run.

Nothing is written but by `save`, which takes what this run learned into what other runs have written meanwhile.
"""

from __future__ import annotations

import os
import re

from planrun.agents import kept
from planrun.clock import between
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "errors.json"
MAX_ERRORS = 5000
ALPHA = 0.3
"""Of the moving average of a weight."""
FIRST_WEIGHT = 0.5
TOP = 3
"""How many solutions are offered."""
LOW_WEIGHT = 0.3
"""Below it an entry is pruned when it was not used for PRUNE_AFTER."""
PRUNE_AFTER = 30 * 86400.0  # seconds
LIKENESS = 0.6
"""The least share of words that two messages have in common, for the solution of one to be offered for the other."""
LONGEST_PATTERN, LONGEST_SOLUTION = 300, 300  # characters
_FORM = "planrun errors 1"
_DIGITS = 6
_ROUNDS = 10  # what was cut or replaced may make a new match; two rounds are usual

_ANSI = re.compile(r"\x1b\[[0-?]{0,40}[ -/]{0,10}[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
# In this order: an address is no path, a hash no number.
_PLACEHOLDERS = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>]{1,500}"), "<url>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<id>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
        "<time>",
    ),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2}|[\w.@+-]{1,200})?(?:/[\w.@+-]{1,200}){1,60}/?"), "<path>"),
    (re.compile(r"\b[A-Za-z]:\\[^\s'\"<>|:]{1,500}"), "<path>"),
    (re.compile(r"\b[\w-]{1,100}\.(?:[a-z]{1,5}|[a-z]{1,3}\d)\b(?=[:\s'\"),]|$)"), "<path>"),
    (re.compile(r"\b0x[0-9a-fA-F]{1,64}\b"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-f]{0,63}\d)(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}\b"), "<hex>"),
    (re.compile(r"(?<![\w<])[-+]?\d{1,30}(?:\.\d{1,30})?"), "<n>"),
)
_WORD = re.compile(r"[A-Za-z_]{2,40}|<\w{1,6}>")


def normalised(message: str) -> str:
    """Return the last line of a message with placeholders for what differs from time to time.

    Paths, addresses, times, ids, hexadecimal and other numbers are replaced. What is normalised stays as it is when it
    is normalised again.
    """
    lines = [line.strip() for line in _ANSI.sub("", message[-20_000:]).splitlines()]
    text = next((line for line in reversed(lines) if line), "")[:2000]
    for _ in range(_ROUNDS):
        before = text
        for pattern, placeholder in _PLACEHOLDERS:
            text = pattern.sub(placeholder, text)
        text = " ".join(text.split())[:LONGEST_PATTERN].rstrip()
        if text == before:
            break
    return text


def moved(weight: float, *, ok: bool) -> float:
    """Return a weight after one result: a step towards 1 or 0, and never beyond."""
    return round(min(1.0, max(0.0, weight + ALPHA * (float(ok) - weight))), _DIGITS)


class Learned(Record):
    """One solution of one kind of error; `weight`: the moving average of its results, `count`: how many there were."""

    id: str
    pattern: str  # the normalised message
    category: str
    solution: str
    weight: float = FIRST_WEIGHT
    count: int = 0
    successes: int = 0
    first_at: str = ""
    last_at: str = ""

    def after(self, at: str, *, ok: bool) -> Learned:
        """Return it after one more result."""
        return self.but(
            weight=moved(self.weight, ok=ok),
            count=self.count + 1,
            successes=self.successes + ok,
            last_at=at,
        )

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS = ("id", "pattern", "category", "solution", "weight", "count", "successes", "first_at", "last_at")


class _Tried(Record):
    """A solution that was tried in this run, and how that went."""

    pattern: str
    category: str
    solution: str
    ok: bool
    at: str


class ErrorStore:
    """What is known of errors, the least recently used first; a file of it is read and written as a whole."""

    def __init__(self) -> None:
        self.entries: dict[str, Learned] = {}
        self._tried: list[_Tried] = []  # in this run, not saved yet

    def __len__(self) -> int:
        return len(self.entries)

    def learn(self, message: str, category: str, solution: str, at: str, *, ok: bool) -> Learned | None:
        """Record a solution that was tried: success raises its weight, failure lowers it.

        Returns None for a message or a solution without text: nothing is learned from it.
        """
        tried = _Tried(
            pattern=normalised(message),
            category=category,
            solution=" ".join(solution.split())[:LONGEST_SOLUTION],
            ok=ok,
            at=at,
        )
        if not tried.pattern or not tried.solution:
            return None
        self._tried.append(tried)
        return self._take(tried)

    def _take(self, tried: _Tried) -> Learned:
        name = entry_id(tried.pattern, tried.solution)
        entry = self.entries.pop(name, None) or Learned(
            id=name,
            pattern=tried.pattern,
            category=tried.category,
            solution=tried.solution,
            first_at=tried.at,
        )
        found = self.entries[name] = entry.after(tried.at, ok=tried.ok)
        _evict(self.entries)
        return found

    def offered(self, message: str, category: str = "") -> tuple[Learned, ...]:
        """Return the best solutions of errors like this one, at most TOP; none that failed more than it helped.

        A message counts as alike when it is normalised to the same text, or shares most of its words in one category.
        """
        pattern = normalised(message)
        if not pattern:
            return ()
        ranked = []
        for entry in self.entries.values():
            likeness = 1.0 if entry.pattern == pattern else _likeness(entry, pattern, category)
            if likeness >= LIKENESS and entry.weight >= FIRST_WEIGHT:
                ranked.append((-likeness * entry.weight, -entry.count, entry.id, entry))
        ranked.sort(key=lambda row: row[:3])
        return tuple([row[-1] for row in ranked[:TOP]])

    def prune(self, now: str) -> int:
        """Remove what helped rarely and was not used for long; returns how many entries that were."""
        old = [
            name
            for name, entry in self.entries.items()
            if entry.weight < LOW_WEIGHT and between(entry.last_at, now) > PRUNE_AFTER
        ]
        for name in old:
            del self.entries[name]
        return len(old)

    def load(self, folder: str) -> None:
        """Take what a folder holds in place of what is known; nothing where it holds nothing."""
        data = kept.read(os.path.join(folder, FILE), _FORM)
        rows = [_entry(row) for row in data["errors"]] if isinstance(data.get("errors"), list) else []
        self.entries = {entry.id: entry for entry in rows if entry is not None}
        _evict(self.entries)

    def save(self, folder: str, now: str, since: str = "") -> None:
        """Add what this run tried after a time to a folder, and prune; does nothing without any. Raises RecordsLost."""
        tried = [each for each in self._tried if each.at > since]
        self._tried = []
        if not tried:
            return
        path = os.path.join(folder, FILE)
        with kept.locked(path):
            self.load(folder)
            for each in tried:
                self._take(each)
            self.prune(now)
            kept.write(path, _FORM, self.as_data())

    def as_data(self) -> dict[str, Any]:
        """Return the store as JSON data."""
        return {"errors": [entry.as_data() for entry in self.entries.values()]}


def clear(folder: str) -> int:
    """Forget everything that a folder holds; returns how many entries that were. Raises RecordsLost."""
    path = os.path.join(folder, FILE)
    if not os.path.lexists(path):
        return 0
    with kept.locked(path):
        store = ErrorStore()
        store.load(folder)
        kept.write(path, _FORM, {"errors": []})
    return len(store)


def entry_id(pattern: str, solution: str) -> str:
    """Return the id of a solution of a kind of error: 16 hexadecimal digits."""
    return str(sha256(f"{pattern}\0{solution}".encode("utf-8", "replace")).hexdigest())[:16]


def _likeness(entry: Learned, pattern: str, category: str) -> float:
    if not category or entry.category != category:
        return 0.0
    ours, theirs = set(_WORD.findall(pattern)), set(_WORD.findall(entry.pattern))
    both = ours | theirs
    return len(ours & theirs) / len(both) if both else 0.0


def _evict(entries: dict[str, Learned]) -> None:
    """Drop entries over the limit: those of the lowest weight, and of them the least recently used."""
    if over := len(entries) - MAX_ERRORS:
        for name in sorted(entries, key=lambda name: entries[name].weight)[: max(over, 0)]:
            del entries[name]


def _entry(row: Mapping[str, Any]) -> Learned | None:
    """Return an entry of a file; None for one that is not as we write it."""
    try:
        entry = Learned(**{name: row[name] for name in _FIELDS})
        between(entry.last_at, entry.last_at)
    except (KeyError, TypeError, ValueError):
        return None
    texts = (entry.pattern, entry.category, entry.solution, entry.first_at)
    numbers = (entry.count, entry.successes)
    is_sound = (
        all(isinstance(text, str) for text in texts)
        and all(type(number) is int and number >= 0 for number in numbers)
        and type(row["weight"]) in (int, float)
        and 0 <= entry.weight <= 1
        and entry.id == entry_id(entry.pattern, entry.solution)
    )
    return entry if is_sound else None
