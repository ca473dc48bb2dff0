"""The short form of the proof that a recorded run is replayed byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import tapes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", tapes.SHORT)
def test_a_run_is_replayed_byte_for_byte(name: str, tmp_path: Path) -> None:
    """Plans, reports, ledger and console are those of the recorded run, and nothing is asked or started for it."""
    assert tapes.tell(name, tmp_path.resolve()) == []


def test_times_and_folders_in_a_log_change_nothing(tmp_path: Path) -> None:
    """A failed step that prints other times, ids, ports and folders each time is planned anew from the recording."""
    assert tapes.noisy(tmp_path.resolve()) == []


@pytest.mark.parametrize(
    "fault", ["a byte of the prompt", "a byte of the recording", "a secret in an answer"]
)
def test_a_fault_is_noticed(fault: str, tmp_path: Path) -> None:
    """What was changed is told with its place, and no such run passes."""
    assert tapes.FAULTS[fault](tmp_path.resolve())
