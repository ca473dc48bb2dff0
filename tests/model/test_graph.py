"""The graph of a section: order, levels, cycles, reach and longest remaining path."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from planrun.model import graph
from planrun.model.plan import Abstract, Edge, Step
from planrun.plan.edit.reorder import savings

if TYPE_CHECKING:
    from planrun.model.plan import EdgeKind

Waits = dict[str, list[str]]


@st.composite
def any_waits(draw: st.DrawFn) -> Waits:
    """Draw up to 8 steps that wait for any of each other, cycles and self references included."""
    names = [f"s{index}" for index in range(draw(st.integers(0, 8)))]
    some = st.lists(st.sampled_from(names), unique=True, max_size=4) if names else st.just([])
    return {name: draw(some) for name in names}


@st.composite
def sound_waits(draw: st.DrawFn) -> Waits:
    """Draw up to 8 steps without a cycle, in any file order."""
    names = [f"s{index}" for index in range(draw(st.integers(0, 8)))]
    found = {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        for at, name in enumerate(names)
    }
    return {name: found[name] for name in draw(st.permutations(names))}


def behind(before: Waits, name: str) -> set[str]:
    """Naive oracle: everything that `name` waits for."""
    found: set[str] = set()
    for _ in before:
        found |= {other for step in (found | {name}) for other in before[step]}
    return found


def step(name: str, *edges: tuple[str, EdgeKind], recovers: tuple[str, ...] = ()) -> Step:
    """Make a step with edges."""
    return Step(
        id=name,
        action=Abstract(),
        kind="abstract",
        edges=tuple(Edge(on=on, kind=kind) for on, kind in edges),
        recovers=recovers,
    )


def test_a_consumer_waits_for_the_handlers_of_what_it_needs() -> None:
    """`ok` and `completed` edges wait for handlers too; `failed` and `done` edges do not."""
    steps = [
        step("test"),
        step("fix", ("test", "failed"), recovers=("test",)),
        step("ship", ("test", "ok")),
        step("strict", ("test", "completed")),
        step("tell", ("test", "done")),
    ]
    assert graph.waits(steps) == {
        "test": (),
        "fix": ("test",),
        "ship": ("test", "fix"),
        "strict": ("test", "fix"),
        "tell": ("test",),
    }


def test_nobody_waits_for_a_handler_of_what_is_tolerated_anyway() -> None:
    """On a step with `on_failure: continue` recovers only adds the edge."""
    steps = [
        step("lint").but(on_failure="continue"),
        step("ship", ("lint", "ok")),
        step("fix", ("lint", "failed"), ("ship", "done"), recovers=("lint",)),
    ]
    assert graph.waits(steps) == {"lint": (), "ship": ("lint",), "fix": ("lint", "ship")}


def test_nobody_waits_for_a_handler_of_a_tolerated_failure() -> None:
    """`on_failure: continue` has decided already that the failure does not count."""
    steps = [
        step("test").but(on_failure="continue"),
        step("fix", ("test", "failed"), recovers=("test",)),
        step("ship", ("test", "ok")),
    ]
    assert graph.waits(steps)["ship"] == ("test",)


def test_edges_out_of_the_section_are_left_out() -> None:
    """A `finally` step that looks at a main step does not wait for it within its own section."""
    assert graph.waits([step("clean", ("test", "done"))]) == {"clean": ()}


def test_a_cycle_through_recovery_is_found() -> None:
    """A handler that waits for a consumer of what it recovers would never start."""
    steps = [
        step("test"),
        step("ship", ("test", "ok")),
        step("fix", ("test", "failed"), ("ship", "done"), recovers=("test",)),
    ]
    assert graph.find_cycles(graph.waits(steps)) == [["ship", "fix"]]


def test_order_takes_the_first_in_the_file_of_what_can_go_next() -> None:
    """Steps move back only behind what they wait for."""
    before = {"deploy": ["test"], "lint": [], "test": ["build"], "build": [], "docs": []}
    assert graph.order(before) == ["lint", "build", "test", "deploy", "docs"]


@given(sound_waits())
def test_order_is_the_smallest_topological_order(before: Waits) -> None:
    """It equals the first of all topological orders by file position."""
    names = list(before)
    at = {name: index for index, name in enumerate(names)}
    if len(names) > 6:
        names = graph.order(before)
        assert all(names.index(other) < names.index(name) for name in names for other in before[name])
        return
    fitting = (
        list(some)
        for some in permutations(names)
        if all(some.index(other) < some.index(name) for name in some for other in before[name])
    )
    assert graph.order(before) == min(fitting, key=lambda some: [at[name] for name in some])


@given(any_waits())
def test_order_leaves_out_exactly_what_waits_for_a_cycle(before: Waits) -> None:
    """A step is missing when it stands on a cycle or behind one."""
    looped = {name for name in before if name in behind(before, name)}
    assert set(graph.order(before)) == {
        name for name in before if name not in looped and not behind(before, name) & looped
    }


@given(any_waits())
def test_a_cycle_is_a_real_path_and_found_when_there_is_one(before: Waits) -> None:
    """Each step of the path waits for the next and the last for the first; no step twice."""
    paths = graph.find_cycles(before)
    looped = [name for name in before if name in behind(before, name)]
    assert (paths == []) == (not looped)
    for path in paths:
        assert len(set(path)) == len(path)
        assert all(other in before[name] for name, other in pairwise([*path, path[0]]))
    assert [path[0] for path in paths[:1]] == looped[:1]


@given(any_waits())
def test_every_knot_has_its_cycle(before: Waits) -> None:
    """Each set of steps that wait for each other is reported once."""
    knots = {
        frozenset({other for other in behind(before, name) if name in behind(before, other)})
        for name in before
        if name in behind(before, name)
    }
    paths = graph.find_cycles(before)
    assert len(paths) == len(knots)
    assert all(any(set(path) <= knot for path in paths) for knot in knots)


@given(sound_waits())
def test_levels_count_the_longest_way_down(before: Waits) -> None:
    """A step's level is one more than the deepest of what it waits for."""
    found = graph.levels(before)
    depth = {name: index for index, level in enumerate(found) for name in level}
    assert set(depth) == set(before)
    for name, needed in before.items():
        assert depth[name] == (1 + max(depth[other] for other in needed) if needed else 0)
    assert all(level for level in found)


@given(any_waits(), st.data())
def test_ancestors_and_descendants_mirror_each_other(before: Waits, data: st.DataObject) -> None:
    """Both hold the given steps and what lies behind or before them."""
    given_ids = data.draw(st.lists(st.sampled_from(list(before)))) if before else []
    wanted = set(given_ids).union(*(behind(before, name) for name in given_ids))
    assert graph.ancestors(before, given_ids) == wanted
    assert graph.descendants(before, given_ids) == {
        name for name in before if name in given_ids or behind(before, name) & set(given_ids)
    }


@given(sound_waits())
def test_weights_are_longest_remaining_paths(before: Waits) -> None:
    """A step weighs its own seconds and those of the heaviest step that waits for it."""
    seconds = {name: float(index) for index, name in enumerate(before) if index % 2}
    found = graph.weights(before, seconds)
    for name in before:
        rest = [found[other] for other in before if name in before[other]]
        assert found[name] == seconds.get(name, 1.0) + max(rest, default=0.0)


@given(sound_waits(), st.data())
def test_reach_answers_as_a_search_would(before: Waits, data: st.DataObject) -> None:
    """Links that do not count lead on, but do not reach their own step."""
    links = {name: [(other, data.draw(st.booleans())) for other in needed] for name, needed in before.items()}

    def naive(name: str) -> set[str]:
        found: set[str] = set()
        for other, counts in links[name]:
            found |= naive(other) | ({other} if counts else set())
        return found

    sequence = graph.order(before)
    found = graph.reach(sequence, links, {name: list(before) for name in before})
    assert found == {(name, other) for name in before for other in naive(name)}


@given(sound_waits())
def test_an_edge_is_implied_by_any_longer_path(before: Waits) -> None:
    """An edge is redundant exactly when another edge of the same step leads to the same step."""
    edges = [(name, other) for name, needed in before.items() for other in needed]
    expected = {
        (name, other)
        for name, other in edges
        if any(other in behind(before, between) for between in before[name] if between != other)
    }
    assert graph.implied(before, edges) == expected


@given(sound_waits(), st.data())
def test_savings_are_what_taking_an_edge_away_gains(before: Waits, data: st.DataObject) -> None:
    """Each edge is worth the difference of the longest paths with it and without it."""
    seconds = {name: float(data.draw(st.integers(0, 5))) for name in before}

    def longest(waits: Waits) -> float:
        return max(graph.weights(waits, seconds).values(), default=0.0)

    edges = [(name, other) for name, needed in before.items() for other in needed]
    without = {
        (name, other): {**before, name: [each for each in before[name] if each != other]}
        for name, other in edges
    }
    expected = {edge: longest(before) - longest(waits) for edge, waits in without.items()}
    assert savings(before, seconds, edges) == expected


def test_reach_works_in_blocks() -> None:
    """More targets than one block holds are answered all the same."""
    names = [f"s{index}" for index in range(graph.BLOCK + 10)]
    links = {name: [(other, True)] for other, name in pairwise(names)}
    last = names[-1]
    assert graph.reach(names, links, {last: names}) == {(last, name) for name in names[:-1]}


def test_long_chains_need_no_recursion() -> None:
    """20,000 steps in a row, then closed to a cycle, are ordered, weighed and searched."""
    names = [str(index) for index in range(20_000)]
    before = {name: [other] for other, name in pairwise(names)} | {"0": []}
    assert len(graph.levels(before)) == 20_000
    assert graph.weights(before, {})["0"] == 20_000.0
    before["0"] = [names[-1]]
    assert [len(path) for path in graph.find_cycles(before)] == [20_000]
