"""The short form of the proof that one run at a time works in a folder; times are judged by the long form alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import starts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the kernel does not say who has a lock"
)


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with compiled code, so that not each of many starts compiles it."""
    top = tmp_path_factory.mktemp("starts")
    (top / "alone").mkdir()
    starts.play(top / "alone", 1)
    return top


@pytest.mark.shows("R7")
def test_one_of_many_runs_and_the_others_say_which(top: Path) -> None:
    """Of starts at once one runs, all others refuse and name it, and killing it frees the lock."""
    (top / "round").mkdir()
    assert starts.play(top / "round", 12).problems == ()


@pytest.mark.parametrize("fault", [fault for fault in starts.FAULTS if fault])
def test_a_planted_fault_of_the_lock_is_found(top: Path, fault: str) -> None:
    """Without a lock, with one that names nobody, and with one that outlives its holder the proof fails."""
    assert starts.is_caught(top, fault)
