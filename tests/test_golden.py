"""A golden file that is no longer true fails its test with what changed and how that is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.golden import OPTION, Golden

if TYPE_CHECKING:
    from pathlib import Path

NAME = "tests/test_x.py::test_y[a b]"


def test_a_difference_is_shown_with_the_command_that_accepts_it(tmp_path: Path) -> None:
    """It is a unified diff; the file stays as it is."""
    path = tmp_path / "x.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(pytest.fail.Exception) as caught:
        Golden(NAME, update=False)(path, "one\n2\n")
    assert "\n one\n-two\n+2\n" in str(caught.value)
    assert f"pytest '{NAME}' {OPTION}" in str(caught.value)
    assert path.read_text() == "one\ntwo\n"


def test_a_file_is_written_anew_when_more_than_the_unsteady_differs(tmp_path: Path) -> None:
    """Another time alone changes no file; a file that is missing is made."""

    def steady(text: str) -> str:
        return re.sub(r"\d+s", "TIME", text)

    path = tmp_path / "x.txt"
    golden = Golden(NAME, update=True)
    golden(path, "took 1s\n", steady)
    golden(path, "took 2s\n", steady)
    assert path.read_text() == "took 1s\n"
    golden(path, "lasted 3s\n", steady)
    assert path.read_text() == "lasted 3s\n"
