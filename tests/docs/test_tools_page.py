"""docs/tools.md is what the catalogue says."""

from __future__ import annotations

from tests.docs.toolpage import PAGE, page


def test_the_page_is_made_of_the_catalogue() -> None:
    """The page is what `python -m tests.docs.toolpage` writes."""
    assert PAGE.read_text(encoding="utf-8") == page()
