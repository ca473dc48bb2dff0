"""The short form of the proof that no command is taken for less than it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import risk
from proofs.commands import faults, rows, shells

if TYPE_CHECKING:
    from pathlib import Path

bash = pytest.mark.skipif(bool(shells.missing()), reason=shells.missing() or "bash is there")


@pytest.mark.parametrize("file", rows.files(), ids=lambda file: str(file.name))
def test_no_labelled_command_is_taken_for_less(file: Path) -> None:
    """Every labelled command gets at least the class that it is in."""
    assert [text for text in rows.judged(rows.read(file)).wrong if text.startswith("UNDER")] == []


def test_an_escape_stands_for_one_character() -> None:
    """What a file of labelled commands holds is read as it was written down."""
    text = "a\\b\n\t\r\x00\x7f\u00a0\u200b\\n"
    assert rows.decoded(rows.encoded(text)) == text
    assert rows.encoded(text) == r"a\\b\n\t\r\x00\x7f\xa0\u200b\\n"


@bash
def test_bash_runs_what_the_classifier_says(seed: int) -> None:
    """Bash runs the words that are told and nothing else, whatever is quoted, split, continued or commented out."""
    tried, said, wrong = risk.with_bash(risk.written(60 * 32, seed, 1, 32))
    assert wrong == []
    assert said > tried // 4


def test_another_grammar_sees_the_same_commands(seed: int) -> None:
    """In every text that is accepted tree-sitter sees the commands that are told, and no error."""
    tried, said, wrong = risk.with_grammar(risk.written(600, seed))
    assert wrong == []
    assert said > tried // 8


@bash
def test_what_is_dangerous_stays_so_however_it_is_written(seed: int) -> None:
    """Quotes, blanks, variables, wrappers, and other words for options lower no command's class."""
    _, tried, wrong = risk.with_mutations(risk.dangerous_rows(5), 2000, seed)
    assert wrong == []
    assert tried == 2000


@bash
@pytest.mark.parametrize("fault", faults.CAUGHT_BY)
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault is found by what is made for it."""
    assert risk.is_caught(fault)
