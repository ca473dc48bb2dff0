"""The short form of the proof that what nobody reviewed does not run, whatever is swapped meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import races

if TYPE_CHECKING:
    from pathlib import Path

FEW = (
    ("script", "plain", "rename"),
    ("script", "locked", "link"),
    ("plan", "approval", "write"),
    ("policy", "policy", "rename"),
)


@pytest.mark.shows("R15")
@pytest.mark.parametrize("shape", FEW, ids=" ".join)
def test_nothing_runs_that_was_not_reviewed(tmp_path: Path, shape: tuple[str, str, str], seed: int) -> None:
    """A few races of some shapes; the long form runs a hundred of each."""
    course = races.Course(shape, tmp_path)
    assert [mark for number in range(6) for mark in course.race(f"{seed}.{number}").marks] == []


@pytest.mark.parametrize("fault", ["does not look at its copies", "takes any approval"])
def test_the_proof_can_fail(fault: str, seed: int) -> None:
    """A planted fault is seen."""
    assert races.is_caught(fault, seed)
