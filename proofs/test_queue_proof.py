"""The short form of the proof that a killed runner of a queue loses no entry and runs none twice."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import queue

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.mark.shows("V-73")
def test_no_entry_is_lost_or_run_twice(tmp_path: Path, seed: int) -> None:
    """Runners are killed at random moments, some with the plans that run: each entry completes once, in its order."""
    findings = queue.prove(tmp_path, queue.draw(3, seed=seed))
    assert [finding.problems for finding in findings if finding.problems] == []
    assert sum(finding.struck for finding in findings) >= 3


def test_the_proof_can_fail(tmp_path: Path) -> None:
    """A runner that does not heed the order is caught."""
    (trial, *_) = queue.draw(3, seed=1, fault="no-order")
    assert any("began before" in problem for problem in queue.carry_out(trial, tmp_path / "scene").problems)
