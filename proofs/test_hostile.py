"""The short form of the proof that bombs, wrong encodings and binaries end in an error with a place, and cheaply."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from proofs.hostile import HEAVIEST, HOSTILE, MOST_MEMORY, little

if TYPE_CHECKING:
    from pathlib import Path


def test_hostile_files_end_in_a_finding_and_take_little_memory() -> None:
    """Each is answered by the finding that stops it, at its place; reader, checks and report hold at most 150 MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "proofs.measure_hostile"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == set(HOSTILE)
    assert [problem for _, problems in found.values() for problem in problems] == []
    assert {name: used for name, (used, _) in found.items() if used > MOST_MEMORY} == {}


@pytest.mark.parametrize("name", HEAVIEST)
def test_a_hostile_file_takes_little(tmp_path: Path, name: str) -> None:
    """It ends the whole command with exit 2, a place, a short text, and at most 150 MiB of memory."""
    assert little(tmp_path, name) == []
