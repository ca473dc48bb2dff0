"""The short form of the proof that on a cluster whose processes are killed no step with effects runs twice."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from proofs import cluster
from tests.fakes.networks import missing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_no_step_with_effects_runs_twice(tmp_path: Path, seed: int) -> None:
    """A worker, the scheduler and planrun are killed, and a worker stalls: each run comes to its end, and verifies.

    In two of the trials the workers do not share the folder.
    """
    drawn = cluster.draw(4, seed=seed)
    trials = [replace(trial, sends=trial.number % 2 == 0) for trial in drawn]
    findings = cluster.prove(tmp_path, trials)
    assert [(finding.trial, finding.problems) for finding in findings if finding.problems] == []
    assert [finding.resumed for finding in findings if finding.trial.harm in ("scheduler", "planrun")] != [
        0,
        0,
    ]


@pytest.mark.skipif(bool(missing()), reason=missing() or "networks can be cut")
def test_a_cut_network_runs_nothing_twice(tmp_path: Path) -> None:
    """What ran on the worker behind the cut is lost when its lease has run out, and its files do not come late."""
    trial = cluster.Trial(number=0, harm="long cut", after=0.1, worker="", sends=True)
    (finding,) = cluster.prove(tmp_path, [trial])
    assert finding.problems == []
    assert finding.lost


def test_the_proof_can_fail(tmp_path: Path) -> None:
    """A planrun that repeats what was lost, idempotent or not, is caught."""
    trial = cluster.Trial(number=0, harm="worker", after=0.0, worker="", fault="repeats")
    (finding,) = cluster.prove(tmp_path, [trial])
    assert "charge is not idempotent and ran 2 times" in finding.problems
