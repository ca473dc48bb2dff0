"""How much a task asks for: simple, medium or complex, by fixed rules that can be explained; no chance and no model.

The tables are those of the planners that planrun's users come from, read as words: `build` is not in `rebuild`.
"""

from __future__ import annotations

import re

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    Level = Literal["simple", "medium", "complex"]
    Advice = Literal["not needed", "optional", "suggested"]

LEVELS: tuple[Level, ...] = ("simple", "medium", "complex")
THRESHOLD: Level = "complex"  # planning is suggested from here on
# More files, or more words, than this make a task medium or complex.
MANY_FILES: tuple[tuple[Level, int], ...] = (("complex", 3), ("medium", 1))
MANY_WORDS: tuple[tuple[Level, int], ...] = (("complex", 30), ("medium", 15))
KEYWORDS: dict[Level, tuple[str, ...]] = {
    "complex": (
        "refactor all",
        "update all",
        "add to all",
        "modify all",
        "migrate",
        "convert all",
        "restructure",
        "rewrite",
        "implement feature",
        "add system",
        "create module",
        "integrate",
        "build",
        "setup",
        "configure",
    ),
    "medium": (
        "refactor",
        "update multiple",
        "create several",
        "modify and test",
        "implement and test",
        "add and test",
        "create new",
        "build a",
        "add feature",
    ),
}
# What may stand between the words of a keyword without changing what they say.
_BETWEEN = r"\s+(?:(?:a|an|the|this|that|our|my|new)\s+){0,2}"
_NAME = re.compile(r"[\w./-]+")


class Reason(Record):
    """One finding: the rule (files, keyword, words or default), the level it speaks for, and what it matched."""

    rule: str
    level: Level
    matched: tuple[str, ...]
    message: str


class Complexity(Record):
    """The complexity of a text: the highest level of the rules that match, and all matches."""

    level: Level
    reasons: tuple[Reason, ...]
    words: int
    files: tuple[str, ...]

    def advice(self, threshold: Level = THRESHOLD) -> Advice:
        """Say whether a plan is suggested; from `threshold` on it is, and for a simple task it is not needed."""
        if LEVELS.index(self.level) >= LEVELS.index(threshold):
            return "suggested"
        return "optional" if self.level != "simple" else "not needed"


def classify(text: str, files: Collection[str] = ()) -> Complexity:
    """Return how much a text asks for. `files`: paths of the repository; other names with a dot count for nothing."""
    named = _files(text, files)
    words = len(text.split())
    reasons = [*_of_count("files", len(named), MANY_FILES, named), *_of_keywords(text)]
    reasons += _of_count("words", words, MANY_WORDS, ())
    if not reasons:
        reasons = [Reason(rule="default", level="simple", matched=(), message="nothing speaks for more")]
    level = max((reason.level for reason in reasons), key=LEVELS.index)
    return Complexity(level=level, reasons=tuple(reasons), words=words, files=named)


def _files(text: str, files: Collection[str]) -> tuple[str, ...]:
    """Return what names a file of the repository, by its path or its last part, each once."""
    known = set(files)
    known.update([path.rpartition("/")[2] for path in files])
    found = [match.group().removeprefix("./").rstrip(".-/") for match in _NAME.finditer(text)]
    return tuple(dict.fromkeys([name for name in found if name in known and ("." in name or "/" in name)]))


def _of_count(
    rule: str, count: int, steps: tuple[tuple[Level, int], ...], matched: tuple[str, ...]
) -> list[Reason]:
    for level, most in steps:
        if count > most:
            what = "files of this repository are named" if rule == "files" else "words"
            return [
                Reason(
                    rule=rule,
                    level=level,
                    matched=matched,
                    message=f"{count} {what}; more than {most} is {level}",
                )
            ]
    return []


def _of_keywords(text: str) -> list[Reason]:
    """Return a finding for each keyword, in the order of the tables."""
    found = []
    for level in ("complex", "medium"):
        for keyword in KEYWORDS[level]:
            match = _pattern(keyword).search(text)
            if match:
                said = " ".join(match.group().split())
                found.append(
                    Reason(rule="keyword", level=level, matched=(said,), message=f'"{keyword}" is {level}')
                )
    return found


def _pattern(keyword: str) -> re.Pattern[str]:
    words = [re.escape(word) if word != "setup" else r"set[ -]?up" for word in keyword.split()]
    return re.compile(rf"(?<![\w./-]){_BETWEEN.join(words)}(?![\w/-]|\.\w)", re.IGNORECASE)
