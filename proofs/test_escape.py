"""The short form of the proof that nothing survives a step: each shape with each end once."""

from __future__ import annotations

import sys

import pytest

from proofs import escape
from proofs.trials import MASKED, PATIENT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="macOS promises less: group and cookie")


@pytest.mark.shows("R1")
@pytest.mark.parametrize("secrets", ["", MASKED], ids=["log of its own", "through masks"])
def test_nobody_escapes(secrets: str, seed: int) -> None:
    """No shape leaves a process behind, for the next step or for long; the seconds are the long form's to judge."""
    findings = escape.carry_out(escape.trials(rounds=1, seed=seed, secrets=secrets), PATIENT)
    assert [finding for finding in findings if escape.escaped(finding) or finding.problem] == []
    assert escape.late(findings) == []


def test_the_proof_can_fail() -> None:
    """Each planted fault leaves somebody behind, and the trial made for it says so."""
    assert escape.prove_faults()
