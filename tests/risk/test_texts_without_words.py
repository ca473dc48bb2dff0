"""Scripts of no words, or of nothing but signs, are judged like any other."""

from __future__ import annotations

import pytest

from planrun.risk.scripts import runs_of


@pytest.mark.parametrize(
    "text", ["", " ", ":", "# nothing", ";", "() { :; }", "$(", "<", "|", "{ }", "function"]
)
def test_a_text_without_words_runs_no_script(text: str) -> None:
    """It names no file that would have to be covered."""
    assert runs_of(text).scripts == ()
