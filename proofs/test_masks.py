"""The short form of the proof that nothing of a secret gets through the masks."""

from __future__ import annotations

import pytest

from proofs import masks
from proofs.printing import PRINTERS

INSTALLED = [printer for printer in PRINTERS if not printer.missing]


@pytest.fixture(scope="module")
def log() -> bytes:
    """Ten megabytes that hold no secret."""
    return masks.ordinary_log()


@pytest.mark.shows("R12")
def test_nothing_leaks_and_nothing_else_is_masked(log: bytes) -> None:
    """Forty secrets in more than sixty forms, some of them cut at many places; an ordinary log stays as it is."""
    found = masks.prove(INSTALLED, most=50, every=14, log=log)
    assert found == masks.Findings([], [], 0)


def test_enough_tools_are_installed() -> None:
    """Without the real tools the proof would rest on Python's encoders alone."""
    assert len({printer.tool for printer in INSTALLED if printer.tool}) >= 5


@pytest.mark.parametrize("fault", masks.CAUGHT_BY)
def test_the_proof_can_fail(fault: str, log: bytes) -> None:
    """Each planted fault is caught by the check that is made for it."""
    assert masks.is_caught(fault, log)
