"""The short form of the proof that no secret reaches a surface: fewer secrets, the same runs."""

from __future__ import annotations

import pytest

from proofs import masks, surfaces

FEW = ("SECRET_0", "SECRET_8", "SECRET_9", "SECRET_11", "SECRET_17", "SECRET_18", "SECRET_23", "SECRET_34")
"""Short and long ones, with quotes and signs, of other letters, of several lines."""
QUICK = ("events as they are", "logs as they are")
"""What one run finds; the long form plants the others, too."""
FEWEST = ("SECRET_8", "SECRET_9", "SECRET_11")


@pytest.mark.shows("R12", "R16")
@pytest.mark.parametrize("trial", surfaces.TRIALS)
def test_nothing_leaks(trial: str) -> None:
    """What steps print, hand on and fail with stands nowhere, in no encoding."""
    assert surfaces.attempt(trial, FEW) == []


@pytest.mark.shows("R12")
def test_an_ordinary_log_stays_as_it_is() -> None:
    """A megabyte that holds no secret comes through the masks of a real run unchanged."""
    assert surfaces.false_masks(masks.ordinary_log()[-1_000_000:]) == 0


@pytest.mark.parametrize("fault", QUICK)
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault is caught by the run that is made for it."""
    assert surfaces.attempt(surfaces.CAUGHT_BY[fault], FEWEST, fault)
