"""The short form of the proof that plans run the steps that GitHub runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofs import workflows

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_drawn_workflows_run_the_steps_that_github_runs(tmp_path: Path, seed: int) -> None:
    """A few workflows; nothing of them is left to a person."""
    ends, wrong = workflows.tried(seed, 12, tmp_path)
    assert not wrong
    assert ends == {"alike": 12}


def test_a_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that look only at what they name are noticed."""
    monkeypatch.setattr(workflows, "PLANTED", True)
    assert workflows.tried(2, 15, tmp_path)[1]
