"""The short form of the proof that bombs, wrong encodings and binaries end in an error with a place, and cheaply."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from proofs.hostile import HEAVIEST, HOSTILE, MOST_MEMORY, little, wrong

if TYPE_CHECKING:
    from pathlib import Path


def test_hostile_files_end_in_a_finding() -> None:
    """Each hostile file is answered by the finding that stops it, at its line and column."""
    assert [problem for name in HOSTILE for problem in wrong(name)] == []


def test_hostile_files_take_little_memory() -> None:
    """No hostile file makes reader, checks and report together hold more than 150 MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "proofs.measure_hostile"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    most = json.loads(done.stdout)
    assert set(most) == set(HOSTILE)
    assert {name: used for name, used in most.items() if used is None or used > MOST_MEMORY} == {}


@pytest.mark.parametrize("name", HEAVIEST)
def test_a_hostile_file_takes_little(tmp_path: Path, name: str) -> None:
    """It ends the whole command with exit 2, a place, a short text, and at most 150 MiB of memory."""
    assert little(tmp_path, name) == []
