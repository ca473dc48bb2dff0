"""The short form of the proof that a killed planrun loses and repeats nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import kills
from proofs.crashing import may_trace

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and strace"),
    pytest.mark.skipif(not may_trace(), reason="strace is missing, or may not trace here"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> kills.Bench:
    """Where trials are made."""
    folder: Path = tmp_path_factory.mktemp("kills")
    return kills.Bench(folder.resolve())


@pytest.mark.shows("R5")
def test_nothing_is_lost_or_repeated(bench: kills.Bench, seed: int) -> None:
    """Killed before some system calls of a run and a resume, and at some random moments, each run comes to its end."""
    planned = [*kills.points(bench, every=90), *kills.moments(bench, rounds=3, seed=seed)]
    findings = kills.prove(bench, planned)
    assert [finding.problems for finding in findings if finding.problems] == []
    assert sum(finding.hit for finding in findings) >= 5


def test_the_proof_can_fail(bench: kills.Bench) -> None:
    """Each planted fault is caught at the kill that is made for it."""
    assert kills.prove_faults(bench)
