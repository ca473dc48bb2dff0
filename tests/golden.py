"""Golden files: texts as somebody read and accepted them, held against what comes now.

A test asks for the fixture `golden` and calls `golden(path, text)`. When they differ, the test fails with the
difference and the command that accepts it. `pytest --update-goldens` writes the files anew.
"""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
OPTION = "--update-goldens"


class Golden:
    """Compares texts with golden files, or writes these anew."""

    def __init__(self, test: str, *, update: bool) -> None:
        self._test = test
        self._update = update

    def __call__(self, path: Path, text: str, steady: Callable[[str], str] = str) -> None:
        """Fail unless the file holds this text.

        `steady` takes out of both what differs from run to run; a file that differs in nothing else stays as it is.
        """
        kept = path.read_text("utf-8") if path.exists() else ""
        if self._update and (steady(kept) != steady(text) or not path.exists()):
            path.write_text(kept := text, "utf-8")
        if steady(kept) != steady(text):
            pytest.fail(self._difference(path, steady(kept), steady(text)), pytrace=False)

    def _difference(self, path: Path, kept: str, text: str) -> str:
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), name, "now", lineterm="")
        shown = "\n".join(lines) or "they differ in how lines end"
        return f"{shown}\n\nTo accept this: pytest {shlex.quote(self._test)} {OPTION}"
