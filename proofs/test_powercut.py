"""The short form of the proof that a power cut takes nothing that was synced."""

from __future__ import annotations

import sys

import pytest

from proofs import powercut
from proofs.crashing import may_trace

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs strace"),
    pytest.mark.skipif(not may_trace(), reason="strace is missing, or may not trace here"),
]


@pytest.mark.shows("R5")
@pytest.mark.parametrize("kind", [powercut.RUN, powercut.RESUME, powercut.SECOND])
def test_every_state_of_the_disk_is_handled(kind: str) -> None:
    """Some of the states in which the disk may be after a power cut: verified, resumed, nothing repeated."""
    report = powercut.prove(kind, every=90 if kind == powercut.SECOND else 15)
    assert report.problems == []
    assert {"unfinished", "torn", "intact"} <= set(report.conditions)


@pytest.mark.parametrize("fault", ["plan-not-synced", "torn-end-kept"])
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault is caught in a few states; the other faults take more of them."""
    assert powercut.is_caught(fault)
