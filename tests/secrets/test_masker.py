"""Masks over texts, streams and plain data, against a slow and obvious oracle."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planrun.secrets import masker
from planrun.secrets.encodings import Unbroken, variants
from planrun.secrets.masker import MaskedStream, Masker
from tests.secrets import oracle

if TYPE_CHECKING:
    from collections.abc import Callable

BOUNDED = settings(derandomize=True, database=None, deadline=None, max_examples=250)
FIND = settings(BOUNDED, phases=[Phase.generate])  # the first failure will do
LETTERS = st.sampled_from(["ab", "abc\n", "abcdefgh", 'abc \n"\\', "aé%'\r\n&", "ABCxyz0123456789+/="])
BREAKS = st.sampled_from([b"\n", b"\r\n", b"\r\n\r\n", b"\n\n\n\n\n", b" "])
TOKEN = "s3cr3t-T0ken-42"


@st.composite
def secrets_and_text(draw: st.DrawFn) -> tuple[list[str], list[bytes]]:
    """Draw secrets, some of which begin alike, and pieces of a text full of their forms, whole, cut and broken."""
    letters = draw(LETTERS)
    values: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.sampled_from(["", *values]))[: draw(st.integers(3, 9))]
        values.append(begin + draw(st.text(letters, min_size=6, max_size=30)))
    forms = sorted(form for value in values for form in variants(value)) or [b"none"]
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 6))):
        form = draw(st.sampled_from(forms))
        at = draw(st.integers(0, len(form)))
        pieces = st.sampled_from([form, form[:at], form[at:], form[:at] + draw(BREAKS) + form[at:]])
        parts += [draw(pieces), draw(st.one_of(BREAKS, st.text(letters, max_size=5).map(str.encode)))]
    text = b"".join(parts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return values, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def streamed(masks: Masker, pieces: list[bytes]) -> bytes:
    """Return what a stream makes of these pieces."""
    stream = masks.stream()
    return b"".join([*map(stream.feed, pieces), stream.finish()])


def check(given_: tuple[list[str], list[bytes]]) -> None:
    """Compare masks of the whole text and of its pieces with the oracle's."""
    values, pieces = given_
    text = b"".join(pieces)
    masks = Masker({str(number): value for number, value in enumerate(values)})
    expected = oracle.masked(text, oracle.expressions(values))
    assert masks.mask(text) == expected
    assert streamed(masks, pieces) == expected


@BOUNDED
@given(secrets_and_text())
def test_masks_are_those_of_the_oracle_whatever_the_pieces(given_: tuple[list[str], list[bytes]]) -> None:
    """Overlapping and nested forms, cut and broken ones; streams say what the whole text comes to."""
    check(given_)


class Hasty(MaskedStream):
    """Holds nothing back."""

    __slots__ = ()

    def feed(self, data: bytes) -> bytes:
        """Mask a piece as if it were all."""
        return super().feed(data) + super().finish()


def no_breaks(text: bytes) -> bytes:
    """Keep line breaks where they are."""
    return text


real_undecided = Masker.undecided


def restless(_self: Masker, text: Unbroken) -> int:
    """Hold back one byte fewer than is needed."""
    return min(len(text.flat), real_undecided(_self, text) + 1)


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [(masker, "MaskedStream", Hasty), (masker, "flatten", no_breaks), (Masker, "undecided", restless)],
)
def test_the_oracle_catches_faults(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, fault: Callable[..., object]
) -> None:
    """A masker that holds back nothing or too little, or that keeps line breaks, does not pass."""
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises((AssertionError, ExceptionGroup)):
        FIND(given(secrets_and_text())(check))()


def test_what_is_covered_is_one_mask_for_each_line() -> None:
    """Overlapping and touching secrets are one; line breaks stay."""
    masks = Masker({"A": "abcdefgh", "B": "fghijklm", "C": "first line\nsecond line"})
    assert masks.mask(b"<abcdefghijklm>") == b"<***>"
    assert masks.mask(b"abcdefghabcdefgh") == b"***"
    assert masks.mask(b"key: first line\r\nsecond line\n") == b"key: ***\r\n***\n"


def test_only_what_could_become_a_secret_is_held_back() -> None:
    """Line ends and prompts come at once, unless they begin a form of a secret."""
    stream = Masker({"A": TOKEN}).stream()
    assert stream.feed(b"waiting for s\n") == b"waiting for s\n"
    assert stream.feed(b"password: ") == b"password: "
    assert stream.feed(b"it is s3cr3t") == b"it is "
    assert stream.feed(b" after all\n") == b"s3cr3t after all\n"
    assert stream.feed(b"s3cr3t-T0ken") == b""
    assert stream.feed(b"-42") == b"***"
    assert stream.finish() == b""


def test_a_stream_can_be_used_again_after_its_end() -> None:
    """Two masks that do not touch are two, also at the beginning of the next text."""
    stream = Masker({"A": TOKEN}).stream()
    token = TOKEN.encode()
    assert stream.feed(token) + stream.finish() == stream.feed(token) + stream.finish() == b"***"


def test_held_back_bytes_have_a_limit() -> None:
    """A beginning of a secret that is followed by line breaks alone is given up."""
    stream = Masker({"A": TOKEN}).stream()
    assert stream.feed(TOKEN[:8].encode()) == b""
    assert stream.feed(b"\n" * 4) == b""
    assert stream.feed(b"\n") == TOKEN[:8].encode() + b"\n" * 5


def test_without_secrets_everything_passes() -> None:
    """A masker without secrets is false and changes nothing."""
    masks = Masker({})
    assert not masks
    assert masks.mask(b"anything") == masks.stream().feed(b"anything") == b"anything"
    assert masks.stream().finish() == b""


@pytest.mark.parametrize(
    "value", ["", "  ", "short", '"true"', "production", "PASSWORD", "======", "000000", "\n\n"]
)
def test_what_is_too_short_or_too_common_is_named_and_not_masked(value: str) -> None:
    """The log would be unreadable, and the masks would tell the value."""
    masks = Masker({"WEAK": value, "GOOD": TOKEN})
    assert masks.ignored == ("WEAK",)
    assert masks.mask(b"short true production PASSWORD ====== 000000") == (
        b"short true production PASSWORD ====== 000000"
    )
    assert masks.mask(TOKEN.encode()) == b"***"


def test_texts_of_any_kind_are_masked() -> None:
    """Also with bytes that are no UTF-8, with surrogates that mean nothing, and with secrets of such."""
    masks = Masker({"A": TOKEN, "B": b"caf\xe9-\xff-cr\xe8me".decode("utf-8", "surrogateescape")})
    assert masks.mask_text(f"é {TOKEN} 🔑") == "é *** 🔑"
    assert masks.mask_text(f"\udcff {TOKEN}") == "\udcff ***"
    assert masks.mask_text(f"\ud800 {TOKEN}") == "\ud800 ***"
    assert masks.mask(b"<caf\xe9-\xff-cr\xe8me>") == b"<***>"
    assert masks.mask_text("<caf\udce9-\udcff-cr\udce8me>") == "<***>"


def test_plain_data_is_masked_throughout() -> None:
    """Keys, nested values, bytes and numbers; keys stay different, and what is no text stays what it is."""
    masks = Masker({"A": TOKEN, "PIN": "12345677"})
    value = {
        "list": [TOKEN, 1, None, True, 1.5, ("x", f"<{TOKEN}>")],
        TOKEN: {f"a {TOKEN}": b"s3cr3t-T0ken-42"},
        TOKEN.encode().hex(): "second key",
        "number": 12345677,
    }
    assert masks.mask_value(value) == {
        "list": ["***", 1, None, True, 1.5, ("x", "<***>")],
        "***": {"a ***": b"***"},
        "****": "second key",
        "number": "***",
    }


@pytest.mark.parametrize("value", ["gt_Zx9+k=8q@Val/w", "correct horse battery staple"])
@pytest.mark.parametrize("width", range(1, 40))
def test_a_value_that_was_wrapped_into_lines_is_masked_from_its_fourth_byte_on(
    value: str, width: int
) -> None:
    """Wherever a line broke first, nothing of the value but fewer than four bytes before that break is to be seen."""
    masker = Masker({"A": value})
    begun = "x" * (40 - width)
    lines = textwrap.wrap(f"{begun}={value} and more", 40)
    cut = [f"{begun}={value}"[at : at + 40] for at in range(0, 80, 40)]
    for text in ("\n".join(lines), "\n".join(cut)):
        shown = masker.mask_text(text)
        seen = [value[at : at + 4] for at in range(len(value) - 3) if value[at : at + 4] in shown]
        assert not seen, shown
