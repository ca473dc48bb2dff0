"""Patterns of rules: `*` stands for any text, and nothing else is special."""

from __future__ import annotations

import random
import re

import pytest

from planrun.approval.rules import fits, has_words


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("a*", "a", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*ab*ab*", "xaby", False),
        ("*ab*ab*", "ab-ab", True),
        ("a?c[x]", "a?c[x]", True),
        ("a?c", "abc", False),
    ],
)
def test_a_star_is_any_text(pattern: str, text: str, *, expected: bool) -> None:
    """Parts between stars are found in order, without overlap."""
    assert fits(pattern, text) is expected


def test_patterns_agree_with_regular_expressions() -> None:
    """On 20,000 random pairs the answer is that of the regular expression that means the same."""
    chance = random.Random(4)
    for _ in range(20_000):
        pattern = "".join(chance.choice("ab*") for _ in range(chance.randint(0, 6)))
        text = "".join(chance.choice("ab") for _ in range(chance.randint(0, 8)))
        meant = re.fullmatch(pattern.replace("*", "[ab]*"), text) is not None
        assert fits(pattern, text) is meant, (pattern, text)


@pytest.mark.parametrize(
    ("wanted", "text", "expected"),
    [
        ("deploy", "Deploy-to-prod", True),
        ("deploy", "redeployment", False),
        ("drop table", "DROP\n  TABLE x", True),
        ("drop table", "table drop", False),
        ("-", "a-b", False),
        ("deploy", "kubectl de''ploy", True),
        ("deploy", 'de\\\nploy "now"', True),
    ],
)
def test_words_are_whole(wanted: str, text: str, *, expected: bool) -> None:
    """Case and what stands between words play no part."""
    assert has_words(wanted, text) is expected
