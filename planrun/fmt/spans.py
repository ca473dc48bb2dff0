"""A plan's text as a tree of extents: each value, key and `-` of a list with the place where it stands.

Offsets count characters. Line ends of the text are single line feeds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

from planrun.plan.yaml.document import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LINE_END = re.compile("\n")
_PROPERTY = re.compile(r"&\S+")
_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
KEPT = re.compile(r"[|>][0-9]*\+")


class UnsupportedError(Exception):
    """A construct whose layout stays as it is, such as `? ` before a key."""


class Span:
    """A value from its first character, its anchor included, to behind its last.

    `kind`: scalar, alias, map or list. `style` of a scalar: quote, `|`, `>` or "". `pairs`: keys and values of a
    mapping; `entries`: the items of a list with the offset of their `-`, -1 between brackets.
    """

    __slots__ = ("end", "entries", "has_anchor", "is_flow", "kind", "pairs", "start", "style", "value")

    def __init__(self, kind: str, event: Any) -> None:
        self.kind = kind
        self.start: int = event.start_mark.index
        self.end: int = event.end_mark.index
        self.style: str = getattr(event, "style", None) or ""
        self.value: str = getattr(event, "value", None) or ""
        self.has_anchor = getattr(event, "anchor", None) is not None
        self.is_flow = bool(getattr(event, "flow_style", False))
        self.pairs: list[tuple[Span, Span]] = []
        self.entries: list[tuple[int, Span]] = []

    @property
    def is_block(self) -> bool:
        """A mapping or a list that is written in lines."""
        return self.kind in ("map", "list") and not self.is_flow

    @property
    def is_empty(self) -> bool:
        """A value of which nothing is written."""
        return self.start == self.end

    def walk(self) -> Iterator[Span]:
        """Yield this value and all inside it, keys included, in the order of the text."""
        yield self
        for key, value in self.pairs:
            yield key
            yield from value.walk()
        for _, item in self.entries:
            yield from item.walk()

    def get(self, name: str) -> Span | None:
        """Return the value of a key of a mapping."""
        return next((value for key, value in self.pairs if key.value == name), None)


class Lines:
    """The lines of a text by number, from 0."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *[each.end() for each in _LINE_END.finditer(text)]]

    def number(self, at: int) -> int:
        """Return the number of the line that holds an offset."""
        return bisect_right(self.starts, at) - 1

    def column(self, at: int) -> int:
        """Return the column of an offset, from 0."""
        return at - self.starts[self.number(at)]

    def row(self, number: int) -> str:
        """Return a line without its end."""
        end = self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end]

    def last_of(self, span: Span) -> int:
        """Return the number of the last line of a value; a text in lines (`|`) ends where the next line begins."""
        number = self.number(span.end)
        return number - 1 if span.end > span.start and self.starts[number] == span.end else number


@lru_cache(maxsize=2)  # most passes change nothing, and each reads the text before and after
def read(text: str) -> Span:
    """Return the root of a text that can be read as a plan; raises UnsupportedError."""
    get_event = events(text)
    while True:
        event = get_event()
        if type(event).__name__ == "MappingStartEvent":
            return _value(event, get_event, text)


def _value(event: Any, get_event: Callable[[], Any], text: str) -> Span:
    name = type(event).__name__
    if name == "ScalarEvent":
        return Span("scalar", event)
    if name == "AliasEvent":
        return Span("alias", event)
    found = Span("map" if name == "MappingStartEvent" else "list", event)
    at = found.start
    mark = _PROPERTY.match(text, at) if found.has_anchor else None
    at = mark.end() if mark else at
    while True:
        event = get_event()
        if type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
            break
        if found.kind == "map":
            key = _value(event, get_event, text)
            value = _value(get_event(), get_event, text)
            found.pairs.append((key, value))
        else:
            value = _value(event, get_event, text)
            found.entries.append((-1 if found.is_flow else _dash(text, at), value))
        at = value.end
    found.end = event.end_mark.index if found.is_flow else at
    return found


def _dash(text: str, at: int) -> int:
    """Return the offset of the `-` that follows the end of the item before, at `at`."""
    space = _SPACE.match(text, at)
    assert space is not None
    if text[space.end() : space.end() + 1] != "-":
        raise UnsupportedError
    return space.end()


def covered(text: str, root: Span) -> set[int]:
    """Return the numbers of the lines that begin inside a scalar or a value in brackets.

    Blank lines below a text in lines belong to it only where it keeps them (`|+`).
    """
    lines = Lines(text)
    found: set[int] = set()
    for span in root.walk():
        if span.is_block or span.is_empty:
            continue
        last = lines.last_of(span)
        if span.style in ("|", ">") and not KEPT.match(text, text.index(span.style, span.start)):
            while last > lines.number(span.start) and not lines.row(last).strip():
                last -= 1
        found.update(range(lines.number(span.start) + 1, last + 1))
    return found
