"""How many columns of a terminal a text takes."""

from __future__ import annotations


def width_of(text: str) -> int:
    """Return the columns that a text takes: wide characters of East Asia take two, combining ones none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1
        for char in text
    )


def padded(text: str, columns: int) -> str:
    """Return a text that takes exactly so many columns: cut, and padded with blanks."""
    left, kept = columns, 0
    for char in text:
        left -= width_of(char)
        if left < 0:
            left += width_of(char)
            break
        kept += 1
    return text[:kept] + " " * left
