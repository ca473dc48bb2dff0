"""Names of the copies of reviewed scripts, `.planrun-<16 hexadecimal digits>-x.sh`, and of their originals."""

from __future__ import annotations

PREFIX = ".planrun-"
DIGITS = 16
_HEX = frozenset("0123456789abcdef")


def original(text: str) -> str:
    """Return a text in which copies have the names of their originals, which users know."""
    if PREFIX not in text:
        return text
    first, *rest = text.split(PREFIX)
    parts = [first]
    for part in rest:
        is_copy = part[DIGITS : DIGITS + 1] == "-" and _HEX.issuperset(part[:DIGITS])
        parts.append(part[DIGITS + 1 :] if is_copy else PREFIX + part)
    return "".join(parts)
