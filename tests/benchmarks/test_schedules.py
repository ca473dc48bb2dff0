"""The graphs and bounds by which schedules are judged: random, the same each time, and bounds that are none to pass."""

from __future__ import annotations

import pytest

from benchmarks.schedules import (
    Work,
    best_order,
    by_order,
    makespan,
    planned,
    recorded,
    share,
    sleeping,
    works,
)
from planrun.model import graph

COUNT = 12


def test_no_schedule_is_shorter_than_the_bounds() -> None:
    """For every graph bound <= tight bound <= best order <= each schedule, as driven by the real loop."""
    for way, rows in planned(works(COUNT), draws=20).items():
        for bound, tight, best in rows:
            assert bound + 1e-9 >= tight >= best - 1e-9, way
            assert best >= 1 - 1e-9, way


def test_the_loop_keeps_to_the_longest_path_first() -> None:
    """The real loop and a plain list scheduler that shares no code with it come to the same makespan."""
    for work in works(COUNT):
        tails = graph.weights(work.needs, recorded(work))
        places = list(work.needs)
        order = sorted(places, key=lambda name: (-tails[name], places.index(name)))
        assert makespan(work, "dag", recorded(work)) == pytest.approx(by_order(work, order))


def test_recorded_durations_shorten_runs() -> None:
    """Over many graphs the order by recorded durations is shorter than that without, and barriers are longer."""
    found = works(COUNT)
    with_them = sum(makespan(work, "dag", recorded(work)) / work.bound() for work in found)
    without = sum(makespan(work, "dag", {}) / work.bound() for work in found)
    levels = sum(makespan(work, "levels", {}) / work.bound() for work in found)
    assert with_them < without < levels


def test_the_tight_bound_of_a_known_case() -> None:
    """One step before and one after three equal ones on two jobs: 1 + 1.5 + 1, where the plain bound says 3."""
    needs = {"first": (), "a": ("first",), "b": ("first",), "c": ("first",), "last": ("a", "b", "c")}
    work = Work("known", needs, dict.fromkeys(needs, 1.0), jobs=2)
    assert work.bound() == 3.0
    assert work.tight_bound() == 3.5
    assert best_order(work, draws=4) == 4.0


def test_graphs_are_drawn_alike_each_time() -> None:
    """The same seed gives the same graphs, and a sleeping one has the bound that was asked for."""
    assert works(4) == works(4)
    scaled, text = sleeping(works(1)[0], 2.0)
    assert scaled.bound() == pytest.approx(2.0, abs=0.01)
    assert text.count("exec: [sleep") == len(scaled.needs)


def test_a_share_of_values_is_one_of_them() -> None:
    """The median of an even number is the lower one, the whole is the largest."""
    assert [share([4.0, 1.0, 3.0, 2.0], part) for part in (0.5, 0.95, 1.0)] == [2.0, 4.0, 4.0]
