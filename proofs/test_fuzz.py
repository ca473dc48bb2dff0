"""The short form of the proof that any file is a plan or gives problems with places."""

from __future__ import annotations

import pytest

from proofs import fuzz
from proofs.fuzzing.faults import FAULTS

QUICK = [fault for fault in FAULTS if fault not in ("", "endless")]
"""What is found at once; an endless loop takes eight seconds of processor time, and is planted in the long form."""


@pytest.mark.shows("R9")
def test_nothing_is_found(seed: int) -> None:
    """Every plan of the project as it is, and some hundred files and expressions made at random."""
    found = fuzz.fuzz(seed=seed, files=1000, agree=0.05)
    assert found.findings == {}
    assert found.total("done") == 1000


@pytest.mark.parametrize("fault", QUICK)
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault is found by one of the inputs that always come first."""
    assert fuzz.prove_fault(fault)
