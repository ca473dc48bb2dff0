"""Where the lists of steps stand in a plan's text, and each step in them: from its first character to its last.

Offsets count characters of the text without a byte order mark. For edits; nothing that runs a plan needs it.
"""

from __future__ import annotations

import re

from planrun.plan.yaml.document import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECTIONS = ("steps", "finally")
_KEPT = re.compile(r"[|>][0-9]*\+")
_BARE_DASH = re.compile(r"[ \t]*-[ \t]*(#.*)?")
_NO_CONTENT = re.compile(r"[ \t]*(#.*)?")


class Entry:
    """One step of a list.

    `dash` is the offset of its `-`; of an entry between brackets, that of its value. `start` and `end` are those of the
    value, `end` behind its last character. `first` is the offset of its first key; -1: it has none, as an alias.
    `is_flow`: it stands between braces. `is_kept`: it ends with a text that counts every empty line after it.
    `block` is the offset of the header (`|`, `>`) of the text in lines that it ends with, else -1. `scalars` are the
    extents of the scalars in it. `keys` are its own keys in order, each with where it begins, where its value ends and
    whether that is a text that counts every empty line after it. `anchors` are the extents of all marks `&name`.
    """

    __slots__ = ("anchors", "block", "dash", "end", "first", "is_flow", "is_kept", "keys", "scalars", "start")

    def __init__(self, start: int, *, is_flow: bool) -> None:
        self.start = self.dash = self.end = start
        self.first = -1
        self.is_flow = is_flow
        self.is_kept = False
        self.block = -1
        self.scalars: list[tuple[int, int]] = []
        self.keys: list[tuple[str, int, int, bool]] = []
        self.anchors: list[tuple[int, int]] = []


class Listing:
    """The list of one section; `end` is behind its last character, of a list in brackets the closing one."""

    __slots__ = ("end", "entries", "is_flow")

    def __init__(self, start: int, *, is_flow: bool) -> None:
        self.end = start
        self.is_flow = is_flow
        self.entries: list[Entry] = []


def listings(text: str) -> dict[str, Listing]:
    """Return the lists of steps that are written out below their keys, by section; `text` can be read as a plan."""
    return _Walk(text).run()


class _Walk:
    """One pass over the events: how deep it is, which key's value is due, and the entry that it is in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, Listing] = {}
        self.depth = 0
        self.key: str | None = None  # of the plan, whose value is due or being read
        self.listing: Listing | None = None
        self.entry: Entry | None = None
        self.inner: tuple[str, int] | None = (
            None  # the key of the entry whose value is due, and where it begins
        )
        self.flows: list[bool] = []

    def run(self) -> dict[str, Listing]:
        get_event = events(self.text)
        while True:
            event = get_event()
            kind = type(event).__name__
            if kind == "DocumentEndEvent":
                return self.found
            if kind in ("ScalarEvent", "AliasEvent"):
                self.leaf(event)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self.open(event, is_list=kind == "SequenceStartEvent")
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self.close(event)

    def leaf(self, event: Any) -> None:
        """Take a scalar or an alias."""
        start, end = event.start_mark.index, event.end_mark.index
        if self.depth == 1 and self.key is None:
            self.key = getattr(event, "value", "")
        elif self.depth == 1:
            self.key = None
        elif self.depth == 2 and self.listing is not None:
            self.begin(start, is_flow=False)
            self.reach(end)
            self.finish()
        elif self.entry is not None:
            entry = self.entry
            self.mark(event)
            entry.scalars.append((start, end))
            self.reach(end)
            if getattr(event, "style", None) in ("|", ">"):
                header = self.text.find(event.style, start)
                entry.block, entry.is_kept = header, bool(_KEPT.match(self.text, header))
            if self.depth == 3 and self.inner is None:
                entry.first = start if entry.first < 0 else entry.first
                self.inner = (getattr(event, "value", ""), start)
            elif self.depth == 3:
                self.conclude()

    def open(self, event: Any, *, is_list: bool) -> None:
        """Take the beginning of a list or mapping."""
        start, is_flow = event.start_mark.index, bool(event.flow_style)
        if self.depth == 1 and is_list and self.key in SECTIONS:
            self.listing = self.found[str(self.key)] = Listing(start, is_flow=is_flow)
        elif self.depth == 2 and self.listing is not None:
            self.begin(start, is_flow=is_flow)
        self.mark(event)
        self.depth += 1
        self.flows.append(is_flow)

    def close(self, event: Any) -> None:
        """Take the end of a collection; its mark gives the position only between brackets."""
        self.depth -= 1
        if self.flows.pop():
            self.reach(event.end_mark.index)
            if self.depth == 1 and self.listing is not None:
                self.listing.end = event.end_mark.index
        if self.depth == 3 and self.entry is not None:
            self.conclude()
        elif self.depth == 2:
            self.finish()
        elif self.depth == 1:
            self.listing = self.key = None

    def begin(self, start: int, *, is_flow: bool) -> None:
        """Begin an entry of the list."""
        listing = self.listing
        assert listing is not None
        self.entry = Entry(start, is_flow=is_flow)
        if not listing.is_flow:
            self.entry.dash = _dash_before(self.text, start)
        listing.entries.append(self.entry)

    def reach(self, end: int) -> None:
        """Take note that something ends here."""
        if self.entry is not None:
            self.entry.end = end
            self.entry.block, self.entry.is_kept = -1, False
            if self.listing is not None and not self.listing.is_flow:
                self.listing.end = end

    def mark(self, event: Any) -> None:
        """Take note of an anchor."""
        if self.entry is not None and event.anchor is not None and type(event).__name__ != "AliasEvent":
            start = event.start_mark.index
            self.entry.anchors.append((start, start + 1 + len(event.anchor)))

    def conclude(self) -> None:
        """End the value of a key."""
        entry, inner = self.entry, self.inner
        if entry is not None and inner is not None:
            entry.keys.append((*inner, entry.end, entry.is_kept))
        self.inner = None

    def finish(self) -> None:
        """End the entry."""
        self.entry = self.inner = None


def _dash_before(text: str, start: int) -> int:
    """Return the offset of the `-` of an entry: on its own line, or above it with nothing but comments between."""
    line = line_start(text, start)
    prefix = text[line:start]
    if prefix.strip():
        return line + prefix.rindex("-")
    while line > 0:
        line = line_start(text, line - 1)
        row = text[line : line_end(text, line)]
        if _BARE_DASH.fullmatch(row):
            return line + row.index("-")
        if not _NO_CONTENT.fullmatch(row):
            break
    return start


def line_start(text: str, at: int) -> int:
    """Return the offset of the first character of the line that holds the one at `at`."""
    while at > 0:
        if text[at - 1] == "\n" or (text[at - 1] == "\r" and text[at : at + 1] != "\n"):
            return at
        at -= 1
    return 0


def line_end(text: str, at: int) -> int:
    """Return the offset behind the last character of the line that holds `at`, before its line end."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)


def next_line(text: str, at: int) -> int:
    """Return the offset of the line after the one that holds `at`; the text's length when there is none."""
    found = _BREAK.search(text, at)
    return found.end() if found else len(text)


_BREAK = re.compile(r"\r\n|\r|\n")
