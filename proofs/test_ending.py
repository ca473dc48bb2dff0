"""The short form of the proof that steps and runs end in time; how long it took is judged by the long form alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import ending
from proofs.trials import MASKED

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.shows("R2", "R3", "R4")
@pytest.mark.parametrize("measure", ending.MEASURES, ids=lambda measure: measure.__name__)
def test_it_ends_as_it_should(tmp_path: Path, measure: ending.Measure) -> None:
    """A held log, a step that is deaf or answers too late, and a cancelled run end with the right reason."""
    assert measure(tmp_path, "").problem == ""


@pytest.mark.shows("R2", "R4")
@pytest.mark.parametrize("measure", [ending.held_log, ending.cancelled_twice], ids=lambda one: one.__name__)
def test_it_does_so_when_its_output_is_masked(tmp_path: Path, measure: ending.Measure) -> None:
    """A held pipe and a run that is cancelled twice end with the same reasons."""
    assert measure(tmp_path, MASKED).problem == ""
