"""docs/tools.md is what the catalogue says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.docs.toolpage import PAGE, page

if TYPE_CHECKING:
    from tests.golden import Golden


def test_the_page_is_made_of_the_catalogue(golden: Golden) -> None:
    """The page is what the catalogue of tools gives."""
    golden(PAGE, page())
