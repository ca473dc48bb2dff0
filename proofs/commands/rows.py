"""The labelled commands of tests/data/risk, and what the classifier makes of them."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planrun.risk import classifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "risk"
LEVELS = ("read-only", "low", "medium", "high")
ALLOWED = {"read-only": 0.10, "low": 0.15, "medium": 0.15, "high": 0.0}
"""Which share of a class may be given a higher one: that costs use, not safety."""
MEDIAN_MS, WORST_MS = 1.0, 50.0
"""How long one command may take."""
_ESCAPES = re.compile(r"\\(?:[\\ntr]|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
_ONE = {"\\\\": "\\", "\\n": "\n", "\\t": "\t", "\\r": "\r"}


@dataclass(frozen=True)
class Row:
    """A command, the class that it is in, and the file and line that say so."""

    level: str
    text: str
    place: str


@dataclass(frozen=True)
class Figures:
    """What came out for one file; `wrong` has a line of text per row, `ms` the time of each in milliseconds."""

    under: Counter[str]
    over: Counter[str]
    rows: Counter[str]
    wrong: tuple[str, ...]
    ms: tuple[float, ...]

    @property
    def problems(self) -> list[str]:
        """What must not be: anything taken for less than it is, or too much for more; not the times."""
        found = [f"{self.under[level]} of {level} taken for less" for level in LEVELS if self.under[level]]
        found += [
            f"{self.over[level]} of {self.rows[level]} of {level} taken for more"
            for level in LEVELS
            if self.over[level] > ALLOWED[level] * self.rows[level]
        ]
        return found

    def __str__(self) -> str:
        parts = [
            f"{level} {self.rows[level]} (under {self.under[level]}, over {self.over[level]})"
            for level in LEVELS
        ]
        ms = sorted(self.ms)
        return f"{', '.join(parts)}; median {ms[len(ms) // 2]:.3f} ms, worst {ms[-1]:.2f} ms"


def decoded(text: str) -> str:
    """Put the character that is meant in the place of each escape."""
    return _ESCAPES.sub(lambda match: _ONE.get(match[0]) or chr(int(match[1] or match[2], 16)), text)


def encoded(text: str) -> str:
    """Write a command so that it fits into a row: the way back from `decoded`."""
    names = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

    def one(sign: str) -> str:
        if sign in names:
            return names[sign]
        if sign.isprintable() and sign.isascii():
            return sign
        return f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}"

    return "".join(map(one, text))


def read(file: Path) -> list[Row]:
    """Read the rows of a file."""
    lines = file.read_text("utf-8").split("\n")
    assert lines[0] == "expected_class\tcommand"
    assert lines[-1] == ""
    return [
        Row(level, decoded(text), f"{file.name}:{number}")
        for number, line in enumerate(lines[1:-1], 2)
        for level, _, text in [line.partition("\t")]
    ]


def files() -> list[Path]:
    """All files with labelled commands."""
    return sorted(FOLDER.glob("*.tsv"))


def everything() -> list[Row]:
    """All labelled commands there are."""
    return [row for file in files() for row in read(file)]


def judged(rows: Iterable[Row], tries: int = 1) -> Figures:
    """Have each row classified; of so many tries the fastest counts, because others use the machine."""
    under: Counter[str] = Counter()
    over: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    ms: list[float] = []
    for row in rows:
        counted[row.level] += 1
        given, fastest = level_of(row.text, tries)
        ms.append(fastest)
        distance = LEVELS.index(given) - LEVELS.index(row.level)
        if distance:
            (under if distance < 0 else over)[row.level] += 1
            word = "UNDER" if distance < 0 else "over"
            wrong.append(f"{word}: {row.place}: {given}, not {row.level}: {encoded(row.text)[:200]}")
    return Figures(under, over, counted, tuple(sorted(wrong)), tuple(ms))


def level_of(text: str, tries: int = 1) -> tuple[str, float]:
    """Return the class that a text is given, and the shortest time in ms that this took."""
    level, times = "", []
    for _ in range(tries):
        began = time.perf_counter()
        level = classifier.classify(text).level
        times.append((time.perf_counter() - began) * 1000)
    return level, min(times)


def slow(figures: Sequence[Figures]) -> list[str]:
    """Say whether classifying took longer than it may."""
    ms = sorted(value for one in figures for value in one.ms)
    found = [f"the median is {ms[len(ms) // 2]:.2f} ms"] if ms[len(ms) // 2] > MEDIAN_MS else []
    return found + ([f"the worst is {ms[-1]:.1f} ms"] if ms[-1] > WORST_MS else [])
