"""Masking done the slow and obvious way: every variant as a regular expression over the whole text at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planrun.secrets.encodings import variants

if TYPE_CHECKING:
    from collections.abc import Iterable

BREAKS = rb"[\r\n]{0,4}"
SHORTEST = 6
GRACE = 4
"""Bytes of a variant among which no line may break."""


def expressions(values: Iterable[str]) -> list[re.Pattern[bytes]]:
    """Return what finds the variants of all values."""
    found = {unbroken(variant) for value in values for variant in variants(value)}
    return [expression(variant) for variant in sorted(found) if len(variant) >= SHORTEST]


def unbroken(variant: bytes) -> bytes:
    """Return a variant without line breaks, and without lines before it that are too short to begin with."""
    lines = re.split(rb"[\r\n]", variant.strip(b"\r\n"))
    while len(lines) > 1 and len(lines[0]) < GRACE:
        del lines[0]
    return b"".join(lines)


def expression(variant: bytes) -> re.Pattern[bytes]:
    """Return what finds `variant` wherever it begins, broken or not."""
    parts = [re.escape(bytes([byte])) for byte in variant]
    head, tail = b"".join(parts[:GRACE]), b"".join(BREAKS + part for part in parts[GRACE:])
    return re.compile(b"(?=(" + head + tail + b"))", re.DOTALL)


def masked(text: bytes, wanted: Iterable[re.Pattern[bytes]]) -> bytes:
    """Return `text` with stars for whatever one of the expressions finds."""
    marks = bytearray(len(text))
    for one in wanted:
        for match in one.finditer(text):
            marks[match.start(1) : match.end(1)] = b"\1" * (match.end(1) - match.start(1))
    # A line of what is covered is one mask, however many secrets it is made of.
    out = bytearray()
    starred = False
    for byte, mark in zip(text, marks, strict=True):
        if mark and byte not in b"\r\n":
            out += b"" if starred else b"***"
            starred = True
            continue
        out.append(byte)
        starred = False
    return bytes(out)
