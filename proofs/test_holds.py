"""The short form of the proof that the class of a command holds, whatever stands around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import holds
from proofs.planting import ATTACKS, Attack

if TYPE_CHECKING:
    from pathlib import Path

SLOW = ("pytest", "mypy")
"""Programs that the long form is enough for."""
TRIED = [attack for attack in ATTACKS if not set(attack.needs).intersection(SLOW)]


@pytest.mark.parametrize("attack", TRIED, ids=[attack.name for attack in TRIED])
def test_planted_code_does_not_run(attack: Attack, tmp_path: Path) -> None:
    """It runs with nothing in its way; as a step it is switched off, or its class is told higher."""
    if attack.missing:
        pytest.skip(f"there is no {attack.missing} here")
    assert holds.trial(attack, tmp_path.resolve()).problem == ""


@pytest.mark.parametrize("fault", [fault for fault in holds.CAUGHT_BY if fault != "every program known"])
def test_the_proof_can_fail(fault: str, tmp_path: Path) -> None:
    """With each fault planted one of the attacks gets through."""
    assert holds.faulty(fault, tmp_path.resolve())
