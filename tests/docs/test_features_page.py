"""docs/features.md claims what tests show, and nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.docs.features import GROUPS, PAGE, page, proofs, rows

if TYPE_CHECKING:
    from tests.golden import Golden


def test_the_page_is_in_step(golden: Golden) -> None:
    """The committed page is what names and marks give."""
    golden(PAGE, page())


def test_every_id_is_there_once() -> None:
    """The table has its 382 rows: ids in order without gaps, each with a name of a few words."""
    known = rows()
    counts = {"GP": 77, "GM": 77, "N": 71, "D": 63, "V": 81, "X": 13}
    assert [row.id for row in known] == [
        f"{prefix}-{number:02d}" for prefix in GROUPS for number in range(1, counts[prefix] + 1)
    ]
    assert [row.id for row in known if not 2 <= len(row.name.split()) <= 8] == []
    assert sum(counts.values()) == 382


def test_every_mark_names_a_row() -> None:
    """No test shows a row that there is not."""
    assert set(proofs()) - {row.id for row in rows()} == set()


def test_what_is_shown_can_be_seen() -> None:
    """Exactly the rows that a test shows say how they are seen; only such a row can miss something."""
    shown = proofs()
    assert [row.id for row in rows() if bool(row.how) != (row.id in shown)] == []
    assert [row.id for row in rows() if row.missing and not row.how] == []


def test_names_are_plain_text() -> None:
    """No cell of the source breaks its table."""
    assert [row.id for row in rows() for cell in row if re.search(r"[|<>]", cell)] == []
