"""`planrun classify`: the level of a task, its reasons, and the advice that follows."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Said
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.shows("D-01", "D-02", "D-03")
@pytest.mark.parametrize(
    ("text", "level", "planning"),
    [
        ("explain the code", "simple", "not needed"),
        ("refactor the reader", "medium", "optional"),
        ("migrate to another database", "complex", "suggested"),
    ],
)
def test_the_level_and_what_follows_from_it(
    say: Callable[..., Said], text: str, level: str, planning: str
) -> None:
    """Simple tasks need no plan, medium ones may have one, complex ones should."""
    found = json.loads(say("classify", "--json", text).out)
    assert (found["level"], found["planning"], found["threshold"]) == (level, planning, "complex")
    assert found["reasons"]
    result = say("classify", *text.split())
    assert result.code == 0
    assert result.out.startswith(f"complexity: {level}\n")
    assert f"\nplan: {planning}" in result.out


def test_reasons_name_rule_and_words(say: Callable[..., Said], tmp_path: Path) -> None:
    """Each reason says which rule and which words; files count when they are there."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("")
    found = json.loads(say("classify", "--json", "rewrite a.py and b.py, not c.py").out)
    assert [(each["rule"], each["level"], each["matched"]) for each in found["reasons"]] == [
        ("files", "medium", ["a.py", "b.py"]),
        ("keyword", "complex", ["rewrite"]),
    ]
    assert found["files"] == ["a.py", "b.py"]
    output = say("classify", "rewrite a.py and b.py, not c.py").out
    assert "files: 2 files of this repository are named; more than 1 is medium: a.py, b.py" in output
    assert 'keyword: "rewrite" is complex' in output


@pytest.mark.shows("D-37", "D-39")
def test_a_threshold_sets_when_a_plan_is_suggested(
    say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option or its variable; the same text gets the same advice each time."""
    assert "plan: suggested" in say("classify", "--threshold", "medium", "refactor x").out
    monkeypatch.setenv("PLANRUN_THRESHOLD", "medium")
    assert len({say("classify", "refactor x").out for _ in range(5)}) == 1
    assert "plan: suggested" in say("classify", "refactor x").out
    monkeypatch.setenv("PLANRUN_THRESHOLD", "often")
    assert say("classify", "x").code == 2


def given(text: bytes, *words: str) -> Said:
    """Return the output of `planrun classify WORDS` for a text on standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "classify", *words],
        input=text,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_text_may_come_from_standard_input(say: Callable[..., Said]) -> None:
    """`-` reads it; nothing to read, no text, or too much of it is exit 2."""
    assert given(b"migrate it", "-").out.startswith("complexity: complex\n")
    assert given(b"", "-").code == 2
    assert "is empty" in say("classify", " ").err
    assert "at most 20000 are read" in given(b"x" * 30_000, "-").err
    assert given(b"\xff", "-").err == "planrun: error: TEXT on standard input is not UTF-8 text\n"
