"""The short form of the proof that records of strangers crash, block and show nothing."""

from __future__ import annotations

from proofs import strangers


def test_changed_ledgers_and_replaced_files() -> None:
    """Twelve changed ledgers and every kind of file in place of each file of a run."""
    assert strangers.prove(12, 1, files=True) == []
