"""The short form of the proof that a cache changes nothing about what a run comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs.cached import FAULTS, search, trial

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", range(3))
def test_no_harm_changes_what_a_run_comes_to(seed: int, number: int, tmp_path: Path) -> None:
    """After kills, poison, loss and runs at the same time, files and outputs are those of a run without a cache."""
    assert trial(tmp_path, 3 * seed + number)[0] == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str) -> None:
    """A cache that checks less is found out."""
    assert search(fault, 11) != ""
