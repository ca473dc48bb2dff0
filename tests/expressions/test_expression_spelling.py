"""A tree can be written as text again: what is parsed from it means the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from planrun.expressions.parse import parse
from planrun.expressions.tree import ExpressionError, spell
from proofs.fuzzing.formulas import expression


def meaning(tree: Any) -> Any:
    """Return a tree without places."""
    if isinstance(tree, tuple) and len(tree) > 3 and isinstance(tree[0], str) and type(tree[1]) is int:
        return (tree[0], *[meaning(part) for part in tree[3:]])
    return tuple(meaning(part) for part in tree) if isinstance(tree, tuple) else tree


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("params.a=='x'", "params.a == 'x'"),
        ("not (run.ci and step_3_failed)", "not (run.ci and (steps['3'].status == 'failed'))"),
        ("params.a|default(-1)", "default(params.a, -1)"),
        ("(-3)[0]", "(-3)[0]"),
        ("1 - (2 - 3) * -params.n", "1 - ((2 - 3) * (-params.n))"),
        ("[1, 2.5, true, none][params.n]", "[1, 2.5, true, none][params.n]"),
        ("'a' if run.ci else 'b'", "'a' if run.ci else 'b'"),
        ("params.list['my key'].x[0]", "params.list['my key'].x[0]"),
    ],
)
def test_spellings(text: str, spelling: str) -> None:
    """One spelling of each meaning, with brackets around every part that has operators."""
    tree = parse(text)
    assert spell(tree) == spelling
    assert meaning(parse(spell(tree))) == meaning(tree)


def test_texts_keep_every_character() -> None:
    """Quotes, backslashes, line ends and characters that cannot be seen come back."""
    value = 'it\'s "a" \\ b\n\t\r\x07\u200b\U0001f642\u202e'
    tree = ("const", 0, 1, value)
    assert parse(spell(tree))[3] == value
    assert spell(tree).isprintable()


def test_random_expressions_mean_the_same_when_written_again() -> None:
    """Of 3,000 random texts, seed 4, those that are expressions: spelled and parsed again they mean the same."""
    chance = Random(4)
    looked_at = 0
    for _ in range(3000):
        try:
            tree = parse(expression(chance))
        except ExpressionError:
            continue
        again = spell(tree)
        assert meaning(parse(again)) == meaning(tree), again
        assert spell(parse(again)) == again
        looked_at += 1
    assert looked_at > 1000
