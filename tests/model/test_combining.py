"""Combinations of a matrix, held against GitHub's documented rules written down another way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.model.groups import combine, same, short, spelled_value, unnameable

Values = dict[str, Any]
SCALARS = st.sampled_from(["a", "b", "1", 1, 2, True, False])
AXES = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.lists(SCALARS, min_size=1, max_size=3, unique_by=repr), max_size=3
)
ENTRIES = st.lists(
    st.dictionaries(st.sampled_from(["x", "y", "z", "more", "other"]), SCALARS, min_size=1), max_size=4
)


def equal(one: Any, other: Any) -> bool:
    """Say whether two values are of one type and the same."""
    return (type(one), one) == (type(other), other)


def left_out(values: Values, exclude: list[Values]) -> bool:
    """Say whether an entry has nothing that a combination does not have."""
    return any(
        not [name for name in entry if name not in values or not equal(values[name], entry[name])]
        for entry in exclude
    )


def product(axes: dict[str, list[Any]]) -> list[Values]:
    """Return the combinations of all axes, the first one changing slowest."""
    if not axes:
        return [{}]
    (name, values), *others = axes.items()
    return [{name: value, **rest} for value in values for rest in product(dict(others))]


def oracle(axes: dict[str, list[Any]], include: list[Values], exclude: list[Values]) -> list[Values]:
    """Work the combinations out entry by entry, as the documentation describes it."""
    original = [values for values in (product(axes) if axes else []) if not left_out(values, exclude)]
    added: list[Values] = [{} for _ in original]
    alone: list[Values] = []
    for entry in include:
        found = False
        for values, more in zip(original, added, strict=True):
            overwritten = [name for name in entry if name in values and not equal(values[name], entry[name])]
            if not overwritten:
                found = True
                for name in entry:
                    more[name] = entry[name]
        if not found:
            alone.append(entry)
    return [{**values, **more} for values, more in zip(original, added, strict=True)] + alone


@settings(max_examples=400, deadline=None)
@given(AXES, ENTRIES, ENTRIES)
def test_combinations_are_those_of_the_documentation(
    axes: dict[str, list[Any]], include: list[Values], exclude: list[Values]
) -> None:
    """Whatever the axes and entries: the same combinations, in the same order."""
    exclude = [entry for entry in exclude if set(entry) <= set(axes)]
    found = [values for _, values in combine(axes, include, exclude)]
    wanted = oracle(axes, include, exclude)
    assert [sorted(map(repr, each.items())) for each in found] == [
        sorted(map(repr, each.items())) for each in wanted
    ]


def test_the_example_of_the_documentation() -> None:
    """Six entries of `include`, each with another effect."""
    found = combine(
        {"fruit": ["apple", "pear"], "animal": ["cat", "dog"]},
        [
            {"color": "green"},
            {"color": "pink", "animal": "cat"},
            {"fruit": "apple", "shape": "circle"},
            {"fruit": "banana"},
            {"fruit": "banana", "animal": "cat"},
        ],
    )
    assert found == [
        ("fruit=apple,animal=cat", {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"}),
        ("fruit=apple,animal=dog", {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"}),
        ("fruit=pear,animal=cat", {"fruit": "pear", "animal": "cat", "color": "pink"}),
        ("fruit=pear,animal=dog", {"fruit": "pear", "animal": "dog", "color": "green"}),
        ("fruit=banana", {"fruit": "banana"}),
        ("fruit=banana,animal=cat", {"fruit": "banana", "animal": "cat"}),
    ]


def test_names_and_values() -> None:
    """Scalars are spelled as in JSON; true is not 1; with one axis a value is enough."""
    assert [spelled_value(value) for value in ("a b", 1, 1.5, True)] == ["a b", "1", "1.5", "true"]
    assert not same(True, 1)
    assert same(1, 1.0)
    assert short("x=a=b", {"x": "a=b", "more": 1}) == "a=b"
    assert short("x=a,y=b", {"x": "a", "y": "b"}) == "x=a,y=b"


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31m", "x" * 201, "\u202e", "\ud800"])
def test_what_no_id_can_hold(name: str) -> None:
    """Line breaks, control characters, marks that turn the direction, halves of a character, and too much."""
    assert unnameable(name)
    assert not unnameable("ü ]/[,=%$")
