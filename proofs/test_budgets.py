"""The short form of the proof that nobody spends more than was reserved, and that every level is told once."""

from __future__ import annotations

import pytest

from proofs import budgets


def test_nobody_spends_more_than_was_reserved(seed: int) -> None:
    """Random schedules side by side and one after the other, killed and resumed; the long form has a thousand."""
    seen = budgets.proof(120, seed)
    assert seen.wrong == []
    assert seen.kills > 50
    assert seen.nearest > 0.9  # some came close


@pytest.mark.parametrize("fault", sorted(budgets.FAULTS))
def test_the_proof_can_fail(fault: str, seed: int) -> None:
    """A planted fault is seen."""
    assert budgets.is_caught(fault, seed)
