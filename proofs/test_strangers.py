"""The short form of the proof that records of strangers crash, block and show nothing."""

from __future__ import annotations

import pytest

from proofs import strangers


# The verbs run in this process, and one that an alarm or an error ends leaves files open.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_changed_ledgers_and_replaced_files() -> None:
    """Six changed ledgers, and every 37th replacement of a file by another kind."""
    assert strangers.prove(6, 1, files=37) == []
