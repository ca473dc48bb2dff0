"""The short form of the proof that on a cluster whose processes are killed no step with effects runs twice."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import cluster

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_no_step_with_effects_runs_twice(tmp_path: Path, seed: int) -> None:
    """A worker, the scheduler and planrun are killed, and a worker stalls: each run comes to its end, and verifies."""
    findings = cluster.prove(tmp_path, cluster.draw(4, seed=seed))
    assert [(finding.trial, finding.problems) for finding in findings if finding.problems] == []
    assert [finding.resumed for finding in findings if finding.trial.harm in ("scheduler", "planrun")] != [
        0,
        0,
    ]


def test_the_proof_can_fail(tmp_path: Path) -> None:
    """A planrun that repeats what was lost, idempotent or not, is caught."""
    trial = cluster.Trial(number=0, harm="worker", after=0.0, worker="", fault="repeats")
    (finding,) = cluster.prove(tmp_path, [trial])
    assert "charge is not idempotent and ran 2 times" in finding.problems
