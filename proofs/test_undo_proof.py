"""The short form of the proof that runs are undone in order, once, whatever kills them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import undo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.mark.shows("D-57")
def test_runs_are_undone_in_order_and_once(tmp_path: Path, seed: int) -> None:
    """Plans drawn by chance, with failures, kills and signals anywhere: every rule holds in each."""
    findings = undo.prove(tmp_path, undo.draw(6, seed=seed))
    assert [finding.problems for finding in findings if finding.problems] == []
    assert sum(finding.undone for finding in findings) > 0


def test_the_proof_can_fail(tmp_path: Path) -> None:
    """Undoing in the order of doing is caught."""
    first = undo.Node("a", (), rollback=True)
    second = undo.Node("b", ("a",), rollback=True)
    trial = undo.Trial(0, (first, second, undo.Node("c", ("b",), fails=True)), 1, "", (), "forward")
    problems = undo.carry_out(trial, tmp_path / "scene").problems
    assert "a was being undone before b, which depends on it" in problems
