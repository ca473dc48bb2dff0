"""The layout of graphs: every edge goes to the right, no two boxes touch, and lines cross where they must only."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.reports.html.layout import MAX_NODES, Layout, layout


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Draw graphs of up to 25 steps, each of which waits for some of those before it."""
    count = draw(st.integers(1, 25))
    waits: dict[str, list[str]] = {}
    for number in range(count):
        before = draw(st.sets(st.integers(0, number - 1), max_size=4)) if number else set()
        waits[f"s{number}"] = [f"s{other}" for other in sorted(before)]
    return waits


def laid_out(waits: dict[str, list[str]]) -> Layout:
    """Return the layout of a graph that is small enough."""
    found = layout(waits)
    assert found is not None
    return found


def crossings(found: Layout) -> int:
    """Return how many pairs of lines between two layers change sides."""
    lines = {pair for points in found.edges.values() for pair in pairwise(points)}
    between = [((a.layer, a.row), (b.layer, b.row)) for a, b in lines]
    return sum(
        first[0][0] == other[0][0] and (first[0][1] - other[0][1]) * (first[1][1] - other[1][1]) < 0
        for number, first in enumerate(between)
        for other in between[:number]
    )


@given(graphs())
def test_edges_go_to_the_right_and_boxes_stand_apart(waits: dict[str, list[str]]) -> None:
    """Each step stands right of all it waits for, and a row or more from the next one in its layer."""
    found = laid_out(waits)
    assert set(found.places) == set(waits)
    for name, needed in waits.items():
        for on in needed:
            points = found.edges[on, name]
            assert (points[0], points[-1]) == (found.places[on], found.places[name])
            assert [point.layer for point in points] == [*range(points[0].layer, points[-1].layer + 1)]
            assert points[0].layer < points[-1].layer
    for layer in range(found.layers):
        rows = sorted(point.row for point in found.places.values() if point.layer == layer)
        assert all(b - a >= 1 - 1e-6 for a, b in pairwise(rows))
    assert min(point.row for point in found.places.values()) >= 0
    assert max(point.row for point in found.places.values()) <= found.rows - 1 + 1e-6


def test_lines_do_not_cross_without_need() -> None:
    """Steps that wait for one each stand beside it, whatever their order in the file."""
    waits: dict[str, list[str]] = {name: [] for name in "abcdef"}
    waits |= {f"{name}2": [name] for name in "fcaebd"}
    found = laid_out(waits)
    assert crossings(found) == 0
    assert all(found.places[name].row == pytest.approx(found.places[f"{name}2"].row) for name in "abcdef")


def test_a_chain_is_a_straight_line() -> None:
    """A chain beside a long edge stays in its row."""
    waits = {"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]}
    found = laid_out(waits)
    assert crossings(found) == 0
    assert len(found.edges["a", "d"]) == 4
    assert found.places["b"].row == pytest.approx(found.places["c"].row, abs=0.01)


def test_what_is_too_large_has_no_layout() -> None:
    """More steps than people can follow, or lines over too many layers, have none."""
    assert layout({f"s{number}": [] for number in range(MAX_NODES + 1)}) is None
    assert layout({f"s{number}": [] for number in range(MAX_NODES)}) is not None
    deep = {f"s{number}": [f"s{number - 1}"] if number else [] for number in range(MAX_NODES - 40)}
    deep |= {f"t{number}": [f"s{number}"] for number in range(20)}
    assert layout({**deep, "end": list(deep)}) is None
