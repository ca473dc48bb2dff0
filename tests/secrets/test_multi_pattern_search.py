"""Multi-pattern search finds every occurrence of every string at every offset."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from planrun.secrets.masker import MultiPatternSearch

BOUNDED = settings(derandomize=True, database=None, deadline=None, max_examples=300)
FEW = st.text("ab", min_size=1, max_size=40).map(str.encode)
ANY = st.binary(min_size=1, max_size=60)


def occurrences(strings: list[bytes], text: bytes) -> list[tuple[int, int]]:
    """Return what a search at every place finds."""
    return sorted(
        (start, start + len(string))
        for string in set(strings)
        for start in range(len(text))
        if text.startswith(string, start)
    )


@BOUNDED
@given(st.lists(FEW, max_size=6), st.lists(FEW, max_size=12).map(b"".join))
def test_strings_of_few_letters_are_found_in_each_other(strings: list[bytes], text: bytes) -> None:
    """Overlapping, nested and repeated ones."""
    assert MultiPatternSearch(strings).spans(text) == occurrences(strings, text)


@BOUNDED
@given(st.lists(ANY, min_size=1, max_size=40), st.data())
def test_strings_of_any_bytes_are_found_at_any_place(strings: list[bytes], data: st.DataObject) -> None:
    """Short and long ones together, behind any number of other bytes."""
    parts = data.draw(st.lists(st.one_of(st.sampled_from(strings), st.binary(max_size=9)), max_size=30))
    text = b"".join(parts)
    assert MultiPatternSearch(strings).spans(text) == occurrences(strings, text)


@example(size=7)
@example(size=11)
@example(size=19)
@given(size=st.integers(1, 80))
@BOUNDED
def test_a_string_is_found_at_every_offset(size: int) -> None:
    """Also where it ends the text, and where the text is no multiple of a word."""
    string = bytes(range(1, size + 1))
    search = MultiPatternSearch([string])
    for before in range(70):
        for after in range(5):
            text = bytes(before) + string + bytes(after)
            assert search.spans(text) == [(before, before + size)]


def test_a_long_text_is_looked_through_to_its_end() -> None:
    """Occurrences that lie across the borders of what is looked up in one call are found, too."""
    strings = [b"abcdefgh" * 3, b"0123456789" * 2]
    text = b"".join(b"." * gap + strings[gap % 2] for gap in range(900, 1100))
    assert MultiPatternSearch(strings).spans(text) == occurrences(strings, text)


def test_nothing_to_look_for() -> None:
    """No strings, empty strings and empty texts are no special cases for who calls."""
    assert (
        MultiPatternSearch([]).spans(b"text")
        == MultiPatternSearch([b""]).spans(b"text")
        == MultiPatternSearch([b"long enough"]).spans(b"")
        == []
    )
