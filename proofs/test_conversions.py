"""The short form of the proof that plans do what the files do that they were converted from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import conversions
from tests.convert.alike import program

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 12


@pytest.mark.parametrize("tool", conversions.TOOLS)
def test_drawn_files_do_the_same_as_plans(tool: str, tmp_path: Path, seed: int) -> None:
    """A few of each tool; what is not certain is left to a person, and nothing else differs."""
    if program(tool) is None:
        pytest.skip(f"{tool} is not installed")
    ends, wrong = conversions.tried(tool, seed, ROUNDS, tmp_path)
    assert not wrong
    assert ends["alike"]


def test_a_planted_fault_is_found(tmp_path: Path) -> None:
    """Lines that share a shell are noticed."""
    with conversions.broken():
        _, wrong = conversions.tried("make", 1, 2 * ROUNDS, tmp_path)
    assert wrong
