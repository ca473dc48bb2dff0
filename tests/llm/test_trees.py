"""Data written as YAML is read as the same data, whatever characters it has."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.llm.yamltext import DEEPEST, NotPlainError, data_of, yaml_text
from planrun.plan.yaml.document import read_tree

HARD = tuple("\n \t\r\"\\':#-\u2028\x85\x7f\u200b\ufeff\uffff\U000e0041")
LETTERS = st.one_of(st.sampled_from(HARD), st.characters(exclude_categories=["Cs"], min_codepoint=1))
TEXTS = st.text(LETTERS, max_size=20)
LEAVES = st.one_of(
    TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4))
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_read_again(data: dict[str, Any]) -> None:
    """To the last character, the order of keys and the kind of number; another reader of YAML agrees."""
    text = yaml_text({**data, "last": ""})
    root, problems, complete = read_tree(text.encode(), "x", "recording")
    assert root is not None
    assert complete
    assert problems == []
    assert json.dumps(data_of(root)) == json.dumps({**data, "last": ""})
    assert list(yaml.safe_load(text)) == [*data, *([] if "last" in data else ["last"])]


@pytest.mark.parametrize("text", ["a: b c", "a: 0x10", "a: ~", "a: yes", "a: 1e", "a: 2026-01-31"])
def test_a_text_without_quotes_is_refused(text: str) -> None:
    """Where nobody knows whether a text or something else is meant, the place is told."""
    root, _, _ = read_tree(f"x: 1\n{text}\n".encode(), "x", "recording")
    assert root is not None
    with pytest.raises(NotPlainError) as caught:
        data_of(root)
    assert (caught.value.node.line, caught.value.node.col) == (2, 4)


def test_what_nests_too_deeply_is_refused() -> None:
    """The writer refuses what the reader would."""
    data: Any = 1
    for _ in range(DEEPEST + 5):
        data = [data]
    with pytest.raises(ValueError, match="deeply"):
        yaml_text({"a": data})
