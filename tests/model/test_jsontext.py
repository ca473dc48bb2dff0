"""JSON text is what `json` reads back, on one printable line."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.model.jsontext import dumps, quote, well_formed

TEXT = st.text(st.characters(codec=None))  # any code point, lone surrogates too
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


def paired(value: object) -> Any:
    """What Python's reader makes of it: a high and a low surrogate side by side become one character."""
    return json.loads(json.dumps(value))


@given(VALUES)
def test_what_is_written_reads_back_equal(value: object) -> None:
    """Any JSON value survives the round trip, and encodes as UTF-8 without a line end."""
    text = dumps(value)
    assert json.loads(text) == paired(value)
    assert text.encode("utf-8").count(b"\n") == 0


@given(TEXT)
def test_nothing_invisible_is_left(text: str) -> None:
    """Controls, direction marks and separators are escaped."""
    raw = quote(text)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in raw)
    assert not set(raw) & set("\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ufeff")


@given(st.text(st.sampled_from('#"\\a')))
def test_no_command_of_a_ci_agent(text: str) -> None:
    """Two number signs never stand side by side, and read back all the same."""
    raw = quote(text)
    assert "##" not in raw
    assert json.loads(raw) == text


def test_tuples_are_lists_and_order_stays() -> None:
    """Mappings keep their order, tuples read back as lists, text stays readable."""
    assert (
        dumps({"b": (1, 2.5), "a": [None, True, False, "é \u20ac"]})
        == '{"b":[1,2.5],"a":[null,true,false,"é €"]}'
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"a": [math.nan]}])
def test_numbers_that_json_does_not_know_are_refused(value: object) -> None:
    """NaN and infinities raise ValueError."""
    with pytest.raises(ValueError, match="is not a JSON number"):
        dumps(value)


@pytest.mark.parametrize("value", [b"x", {1: 2}, {None: 1}, object(), {1, 2}])
def test_other_types_are_refused(value: object) -> None:
    """Bytes, sets, objects and keys that are no text raise TypeError, never become text."""
    with pytest.raises(TypeError, match="no JSON"):
        dumps(value)


def test_what_is_no_text_is_spelled_out() -> None:
    """Bytes that are no UTF-8 and halves of characters are spelled out at any depth; everything else stays."""
    name = os.fsdecode(b"caf\xe9 \xe2\x98\x83")
    found = well_formed({name: [name, 1, None, ("a", 2.5)], "half": "\ud800", "snow": "\u2603"})
    spelled = "caf\\xe9 \u2603"
    assert found == {spelled: [spelled, 1, None, ["a", 2.5]], "half": "\\ud800", "snow": "\u2603"}
    assert json.loads(dumps(found).encode()) == found
