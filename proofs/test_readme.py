"""proofs/README.md has a row for each proof and each file of short forms."""

from __future__ import annotations

import re
from pathlib import Path

from proofs.__main__ import PROOFS

HERE = Path(__file__).parent


def test_every_proof_has_a_row() -> None:
    """A proof that is not described there, or is described and gone, is an error."""
    text = (HERE / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([a-z]+)` \|", text, re.MULTILINE)) == set(PROOFS)


def test_every_short_form_without_a_long_one_has_a_row() -> None:
    """So does a test file that belongs to no proof."""
    text = (HERE / "README.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `(test_\w+\.py)` \|", text, re.MULTILINE))
    alone = {
        path.name
        for path in HERE.glob("test_*.py")
        if not re.search(r'^"""The short form', path.read_text("utf-8"))
    } - {"test_readme.py"}
    assert rows == alone | {"test_hostile.py"}
