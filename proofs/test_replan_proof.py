"""The short form of the proof about runs that are planned anew."""

from __future__ import annotations

import pytest

from proofs import replans


def test_kills_and_failures_lose_and_repeat_nothing() -> None:
    """One kill while the model thinks, and one place; the long form takes all."""
    assert [found for found in replans.prove(["model_asked"], [2]) if found.problems] == []


@pytest.mark.parametrize("fault", ["runs-again"])
def test_a_planted_fault_is_found(fault: str) -> None:
    """What runs finished steps again does not pass; the long form plants the other faults."""
    assert any(found.problems for found in replans.prove(["planning_ended"], [], fault))
