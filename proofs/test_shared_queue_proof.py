"""The short form of the proof that machines which share a queue never run an entry twice at once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from proofs import sharedqueue
from proofs.sharedqueue import Trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_no_entry_runs_twice_at_once(tmp_path: Path) -> None:
    """A runner is killed, one is stopped for longer than its lease, and a machine dies: each entry comes to its end."""
    hits = ((0.5, "a", "kill-runner"), (0.3, "b", "stop-runner"), (0.3, "c", "kill-all"))
    (finding,) = sharedqueue.prove(tmp_path, [Trial(0, (True, False, True, False), hits)])
    assert finding.problems == []
