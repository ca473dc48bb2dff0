r"""The tokens that a text consists of, and the parts of their words.

A token is a tuple `(kind, value, start, end)`; offsets are characters of the text.

    ("word", Word, start, end)
    ("op", "&&" | "\n" | "(" | …, start, end)
    ("redirect", Redirect, start, end)     its target is the word token that follows

The parts of a word are tuples `(kind, value, quoted)`:

    ("text", str, quoted)       literal; quoted text has no globs, braces or tildes
    ("glob", str, False)        `*`, `?` or `[`
    ("name", str, quoted)       `$NAME`, `${NAME}`
    ("number", "", quoted)      `$?`, `$#`, `$((1 + 2))`: digits, whatever the value
    ("command", tokens, quoted) `$(…)` or backticks
    ("file", tokens, False)     `<(…)`: the name of what the commands print
    ("hole", str, quoted)       one of HOLES: a value that the caller inserts
    ("home", "", False)         `~` where bash puts in the home folder
    ("strange", str, quoted)    another expansion, in words
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Part = tuple[str, Any, bool]
    Token = tuple[str, Any, int, int]

QUOTED_HOLE = "\ue001"
HOLES = "\ue000" + QUOTED_HOLE
"""Placeholders of values that are put in before the text runs; each is (part of) one word."""
NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
NAME = NAME_START | frozenset("0123456789")
DIGITS = frozenset("0123456789")


class NotUnderstood(Exception):
    """A text that is not read; `reason` says what stands where."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"{what} at character {at + 1}")
        self.reason = f"{what} at character {at + 1}"


class Word:
    """One word of the text with its parts."""

    __slots__ = ("end", "parts", "start")

    def __init__(self, parts: list[Part], start: int, end: int) -> None:
        self.parts = parts
        self.start = start
        self.end = end

    @property
    def plain(self) -> str | None:
        """The text of a word in which nothing is quoted or expanded; None for any other."""
        if len(self.parts) == 1 and self.parts[0][0] == "text" and not self.parts[0][2]:
            text: str = self.parts[0][1]
            return text
        return None


class Redirect:
    """A redirection: descriptor (None: its default), operator, and the parts of a here-document."""

    __slots__ = ("fd", "here", "op")

    def __init__(self, fd: int | None, op: str) -> None:
        self.fd = fd
        self.op = op
        self.here: list[Part] | None = None


class Frame:
    """A list of tokens that is being read: the text itself, or one substitution in it."""

    __slots__ = (
        "closer", "delimiter", "end", "names_file", "opened", "parens", "parts", "quoted", "start", "text",
        "tokens",
    )  # fmt: skip

    def __init__(self, closer: str, end: int, opened: int) -> None:
        self.closer = closer  # "": the end of the text, ")" or "`"
        self.end = end
        self.opened = opened
        self.tokens: list[Token] = []
        self.parts: list[Part] = []
        self.text = ""  # unquoted text of the last part, while it grows
        self.start = -1  # of the word that is being read; -1: none
        self.quoted = -1  # where the double quote opened; -1: none is open
        self.parens = 0
        self.names_file = False  # it is `<(…)`, in whose place the name of a file stands
        self.delimiter: Redirect | None = None  # a here-document whose delimiter is the next word
