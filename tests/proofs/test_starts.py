"""The short form of the proof that one run at a time works in a folder; times are judged by the long form alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.proofs import starts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the kernel does not say who has a lock"
)


@pytest.mark.shows("R7")
def test_one_of_many_runs_and_the_others_say_which(tmp_path: Path) -> None:
    """Of starts at once one runs, all others refuse and name it, and killing it frees the lock."""
    (tmp_path / "round").mkdir()
    assert starts.play(tmp_path / "round", 12).problems == ()


@pytest.mark.parametrize("fault", [fault for fault in starts.FAULTS if fault])
def test_a_planted_fault_of_the_lock_is_found(tmp_path: Path, fault: str) -> None:
    """Without a lock, with one that names nobody, and with one that outlives its holder the proof fails."""
    (tmp_path / "round").mkdir()
    assert starts.play(tmp_path / "round", 4, fault).problems != ()
