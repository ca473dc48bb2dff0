"""Masks look through what terminals and browsers do not show, wherever the output is cut."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest

from planrun.secrets.masker import Masker

VALUE = b"horsebattery-staple91"
MASKS = Masker({"S": VALUE.decode()})
HIDDEN = {
    "colours": b"\x1b[m\x1b[K",
    "8-bit CSI": b"\x9b31m",
    "CSI in UTF-8": "\x9b31m".encode(),
    "control in a CSI": b"\x1b[3\x001m",
    "cancelled CSI": b"\x1b[3\x18",
    "title, BEL": b"\x1b]0;title\x07",
    "title, ST": b"\x1b]0;title\x1b\\",
    "title, 8-bit ST": b"\x1b]0;title\x9c",
    "title with a byte of ST": "\x1b]0;t✜itle\x9c".encode(),
    "link": b"\x1b]8;;http://x.example\x1b\\",
    "DCS": b"\x1bPq#0\x1b\\",
    "8-bit DCS": b"\x90t\x9c",
    "APC": b"\x1b_a\x1b\\",
    "PM": b"\x1b^a\x1b\\",
    "SOS": b"\x1bXa\x1b\\",
    "charset": b"\x1b(B",
    "other escape": b"\x1b7",
    "NUL": b"\0",
    "DEL": b"\x7f",
    "BEL": b"\a",
    "erased": b"X\b",
    "zero width": "\u200b".encode(),
    "BOM": "\ufeff".encode(),
    "soft hyphen": "\u00ad".encode(),
    "variation": "\ufe0f".encode(),
    "further variation": "\U000e0101".encode(),
    "tag": "\U000e0041".encode(),
    "joiner": "\u034f".encode(),
    "direction": "\u202e\u2066\u061c".encode(),
    "fillers": "\u3164\uffa0\u115f\u2800\ufffc".encode(),
    "long title": b"\x1b]0;" + b"x" * 9000 + b"\x07",
    "many NULs": b"\0" * 20_000,
}


def fed(*pieces: bytes) -> bytes:
    """Return what a stream makes of pieces."""
    stream = MASKS.stream()
    return b"".join([*map(stream.feed, pieces), stream.finish()])


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_a_value_with_hidden_bytes_inside_is_masked_wherever_it_is_cut(hidden: bytes) -> None:
    """Whole, in two pieces cut at each byte, and byte by byte: no rest of the value stays."""
    text = b"= " + VALUE[:4] + hidden + VALUE[4:] + b"\n"
    assert fed(text) == b"= ***\n"
    places = range(len(text)) if len(text) < 100 else random.Random(1).sample(range(len(text)), 40)
    for at in places:
        left = fed(text[:at], text[at:])
        assert b"staple91" not in left, at
    assert b"staple91" not in fed(*[text[at : at + 1] for at in range(min(len(text), 300))], text[300:])


@pytest.mark.parametrize("opening", [b"\x1b[", b"\x1b]0;", b"\x1bP", b"\x9b", b"\x1b", b"\x1b_", b"\x1b[31"])
def test_a_value_inside_of_a_sequence_is_masked(opening: bytes) -> None:
    """A viewer that knows no sequences would show it."""
    for closing in (b"\x07", b"\x1b\\", b"\n", b""):
        text = opening + VALUE + closing
        assert VALUE not in fed(text)
        assert VALUE not in fed(*[text[at : at + 1] for at in range(len(text))])


def test_a_sequence_without_an_end_does_not_hold_output_forever() -> None:
    """What is held is bounded, and arrives."""
    stream = MASKS.stream()
    out = stream.feed(b"\x1b]0;") + b"".join(stream.feed(b"x" * 100) for _ in range(1000))
    assert len(out) > 90_000
    assert out + stream.finish() == b"\x1b]0;" + b"x" * 100_000


_SHOWN_BY_NONE = re.compile(
    "\x1b\\[[\x00-\x08\x0b\x0c\x0e-\x17\x19\x1c-\x3f]*[@-~]"
    "|\x1b[]PX^_][^\x07\x1b\n\r]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-Z\\\\^-~]"
)


def seen(text: bytes) -> str:
    """Return what an eye can see of a text: with tables of Python's Unicode, not of planrun."""
    shown = _SHOWN_BY_NONE.sub("", text.decode("utf-8", "replace"))
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Mn"))


def test_no_drawn_text_shows_a_value() -> None:
    """Hidden bytes at several drawn places of the value, which is cut at drawn places."""
    chance = random.Random(26)
    kinds = [value for name, value in HIDDEN.items() if len(value) < 100 and name != "erased"]
    for _ in range(400):
        text = b"log line: "
        for byte in VALUE:
            text += bytes([byte]) + b"".join(chance.choices(kinds, k=chance.choice((0, 0, 0, 1, 2))))
        text += b" end\n"
        cuts = sorted(chance.sample(range(len(text)), 3))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert VALUE.decode() not in seen(fed(*pieces)), pieces


@pytest.mark.parametrize(
    "value",
    [
        "\x1b[32mok\x1b[0m in 3 ms ✓ ████ “quoted” done",
        "\r 10 %\r 20 %\b\b30",
        "latin \xe9 text".encode("latin-1").decode("latin-1"),
    ],
)
def test_what_is_no_secret_stays_as_it_is(value: str) -> None:
    """Byte for byte, however it is cut."""
    text = value.encode() * 30 + b"\n"
    for at in range(len(text)):
        assert fed(text[:at], text[at:]) == text


def test_far_heads() -> None:
    """A long secret whose beginning lies far before the cut is held back."""
    key = "".join(random.Random(3).choices("abcdefghijkmnpqrstuvwxyz23456789", k=900))
    masks = Masker({"KEY": key})
    stream = masks.stream()
    out = stream.feed(b"x" * 50 + key[:700].encode()) + stream.feed(key[700:].encode()) + stream.finish()
    assert out == b"x" * 50 + b"***"


@pytest.mark.parametrize("value", [8271.66391, [8271.66391], {"a": [{"b": 8271.66391}]}, {8271.66391: "a"}])
def test_numbers_are_masked_wherever_they_stand(value: object) -> None:
    """A float that is a secret becomes a text, in nested data and as a key."""
    assert "8271.66391" not in repr(Masker({"N": "8271.66391"}).mask_value(value))
    assert "82716639" not in repr(Masker({"N": "82716639"}).mask_value([82716639, {82716639: True}]))


INSIDE = (
    *(
        "mysecretvalue7",
        "Kilohorse-91x",
        "[32mhorsebattery",
        "32mhorsebattery",
        "mm;12mhorse",
        "1;31;44horse",
    ),
    *("horse\x1b[31mbattery", "82716639m"),
)


@pytest.mark.parametrize("value", INSIDE)
@pytest.mark.parametrize("begin", [b"", b"3", b"1;32", b"["])
def test_a_value_that_begins_or_lies_inside_of_a_colour_is_masked(value: str, begin: bytes) -> None:
    """A viewer that shows colours as bytes shows it; whole, cut at each byte, byte by byte."""
    masks = Masker({"S": value})
    secret = value.encode()
    for before in (b"\x1b[" + begin, b"\x1b[0m\x1b[K\x1b[" + begin.replace(b"[", b"")):
        text = before + secret + b"\x1b[m\n"
        for pieces in (
            *((text[:at], text[at:]) for at in range(len(text))),
            [text[at : at + 1] for at in range(len(text))],
        ):
            stream = masks.stream()
            out = b"".join([*map(stream.feed, pieces), stream.finish()])
            assert secret not in out, pieces
            assert b"***" in out


def test_the_rest_of_a_value_alone_is_no_secret() -> None:
    """Only behind the colour in which the value begins is what follows masked."""
    masks = Masker({"S": "mysecretvalu7"})
    for text in (
        b"ysecretvalu7\n",
        b"\x1b[31K ysecretvalu7\n",
        b"\x1b[31Kysecretvalu7\n",
        b"m\x1b[0Kysecretvalu7",
    ):
        assert masks.mask(text) == (text if b"m\x1b" not in text else b"***"), text
