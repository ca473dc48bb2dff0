"""The plan files in `bad/` and `good/`, and the problems that the head of a bad one expects.

# expect: E104 5:5 did you mean "retries"     a finding: code, line:column, part of its text; one line each
# stage: semantic                             only the meaning is wrong: the shape check must be content
# schema: accepts                             the JSON Schema cannot see it: only the loader finds it
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_EXPECT = re.compile(r"^# expect: (E\d{3}) (\d+):(\d+) ?(.*)$", re.MULTILINE)


class Expected(NamedTuple):
    """One finding that a file must give."""

    code: str
    line: int
    col: int
    part: str


class BadPlan(NamedTuple):
    """A file with everything that is wrong with it."""

    path: Path
    expected: tuple[Expected, ...]
    semantic: bool
    schema_accepts: bool

    @property
    def name(self) -> str:
        """What a test is called by."""
        return self.path.stem

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.path.read_bytes()


def bad_plans() -> list[BadPlan]:
    """Return every bad plan file, by name."""
    return [_read(path) for path in sorted((HERE / "bad").glob("*.yml"))]


def good_plans() -> list[Path]:
    """Return every good plan file, by name."""
    return sorted((HERE / "good").glob("*.yml"))


def _read(path: Path) -> BadPlan:
    text = path.read_text(encoding="utf-8")
    found = tuple(
        Expected(code, int(line), int(col), part) for code, line, col, part in _EXPECT.findall(text)
    )
    return BadPlan(path, found, "\n# stage: semantic\n" in text, _accepted(text))


def _accepted(text: str) -> bool:
    return "\n# stage: semantic\n" in text or "\n# schema: accepts\n" in text
