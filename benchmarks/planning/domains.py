"""Seeded problems of three domains: Blocksworld, Logistics, and releases in CI with flaky steps and alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from planrun.search.space import Action, Problem


def _action(name: str, requires: str, provides: str, deletes: str, **more: float) -> Action:
    return Action(
        name,
        requires=frozenset(requires.split()),
        provides=frozenset(provides.split()),
        deletes=frozenset(deletes.split()),
        **more,  # type: ignore[arg-type]
    )


def blocksworld(seed: int, size: int) -> Problem:
    """Return a problem of stacking blocks with one hand, from random towers to other ones."""
    random = Random(f"blocksworld {size} {seed}")
    blocks = [f"b{number}" for number in range(size)]
    start, goal = _towers(random, blocks), _towers(random, blocks)
    facts = {"hand-empty"}
    for tower in start:
        facts |= {f"{tower[0]}-on-table", f"{tower[-1]}-clear"}
        facts |= {f"{upper}-on-{lower}" for lower, upper in pairwise(tower)}
    wanted = set()
    for tower in goal:
        wanted |= {f"{upper}-on-{lower}" for lower, upper in pairwise(tower)}
        wanted.add(f"{tower[0]}-on-table")
    return Problem(frozenset(facts), frozenset(wanted), tuple(_stacking(blocks)))


def _towers(random: Random, blocks: list[str]) -> list[list[str]]:
    mixed = random.sample(blocks, len(blocks))
    towers: list[list[str]] = [[mixed[0]]]
    for block in mixed[1:]:
        if random.random() < 0.4:
            towers.append([block])
        else:
            random.choice(towers).append(block)
    return towers


def _stacking(blocks: list[str]) -> Iterator[Action]:
    for x in blocks:
        table = f"{x}-on-table"
        yield _action(
            f"pick-up {x}", f"{x}-clear {table} hand-empty", f"holding-{x}", f"{x}-clear {table} hand-empty"
        )
        yield _action(f"put-down {x}", f"holding-{x}", f"{x}-clear {table} hand-empty", f"holding-{x}")
        for y in blocks:
            if x == y:
                continue
            on = f"{x}-on-{y}"
            yield _action(
                f"stack {x} {y}",
                f"holding-{x} {y}-clear",
                f"{on} {x}-clear hand-empty",
                f"holding-{x} {y}-clear",
            )
            yield _action(
                f"unstack {x} {y}",
                f"{on} {x}-clear hand-empty",
                f"holding-{x} {y}-clear",
                f"{on} {x}-clear hand-empty",
            )


def logistics(seed: int, packages: int) -> Problem:
    """Return a problem of delivering packages by a truck in each of two cities and one plane."""
    random = Random(f"logistics {packages} {seed}")
    cities = [[f"c{city}p{place}" for place in range(3)] for city in range(2)]
    places = [place for city in cities for place in city]
    things = [f"k{number}" for number in range(packages)]
    start = {f"truck{number}-at-{random.choice(city)}" for number, city in enumerate(cities)}
    start.add(f"plane-at-{random.choice(cities)[0]}")
    goal = set()
    for thing in things:
        where, to = random.sample(places, 2)
        start.add(f"{thing}-at-{where}")
        goal.add(f"{thing}-at-{to}")
    actions = list(_driving(cities))
    for thing in things:
        for number, city in enumerate(cities):
            actions += _loading(thing, f"truck{number}", city)
        actions += _loading(thing, "plane", [city[0] for city in cities])
    return Problem(frozenset(start), frozenset(goal), tuple(actions))


def _driving(cities: list[list[str]]) -> Iterator[Action]:
    routes = [(f"truck{number}", city) for number, city in enumerate(cities)]
    routes.append(("plane", [city[0] for city in cities]))
    for vehicle, places in routes:
        for x in places:
            for y in places:
                if x != y:
                    at = f"{vehicle}-at-{x}"
                    yield _action(f"move {vehicle} {x} {y}", at, f"{vehicle}-at-{y}", at)


def _loading(thing: str, vehicle: str, places: list[str]) -> Iterator[Action]:
    for place in places:
        yield _action(
            f"load {thing} {vehicle} {place}",
            f"{thing}-at-{place} {vehicle}-at-{place}",
            f"{thing}-in-{vehicle}",
            f"{thing}-at-{place}",
        )
        yield _action(
            f"unload {thing} {vehicle} {place}",
            f"{thing}-in-{vehicle} {vehicle}-at-{place}",
            f"{thing}-at-{place}",
            f"{thing}-in-{vehicle}",
        )


STAGES = ("checked", "built", "tested", "approved", "published")
ATTEMPTS = 3  # of a step, before it counts as failed
ESCALATE = "escalate"
"""A person does all that is left: dear, and it always succeeds."""


def release(seed: int, ways: int = 3) -> Problem:
    """Return a release: each stage has a way that comes first in the file, and others; some do or need more.

    Costs are seconds of one attempt, `success` is that of one attempt. An approval by a person always comes, and takes
    long; the alternative is a check by a machine, which may say no.
    """
    random = Random(f"release {ways} {seed}")
    actions: list[Action] = []
    before = ""
    for stage in STAGES:
        for way in range(2 if stage == "approved" else ways):
            actions += _way(random, (stage, way), before)
        before = stage
    everything = " ".join(STAGES)
    actions.append(_action(ESCALATE, "", everything, "", cost=3600.0))
    return Problem(frozenset(), frozenset({"published", "tested"}), tuple(actions))


def _way(random: Random, which: tuple[str, int], before: str) -> Iterator[Action]:
    """Yield one way to do a stage, and what only that way needs."""
    stage, way = which
    cost, success = float(random.randint(10, 300)), random.choice((0.3, 0.5, 0.7, 0.9, 0.98))
    if stage == "approved":
        cost, success = (float(random.randint(100, 900)), 1.0) if way == 0 else (300.0, 0.8)
    needs, gives = before, stage
    if way and random.random() < 0.4:
        needs = f"{before} cache-{stage}-{way}"
        warming = float(random.randint(5, 60))
        yield _action(f"warm {stage} {way}", "", f"cache-{stage}-{way}", "", cost=warming, success=0.95)
    if way and stage == "checked" and random.random() < 0.5:
        gives, cost = "checked built", cost * 1.3  # one job does both
    yield _action(f"{stage} {way}", needs, gives, "", cost=cost, success=success)


def chain(depth: int, branching: int, seed: int = 0) -> Problem:
    """Return a release of `depth` stages, each with `branching` ways: how the cost of a search grows."""
    random = Random(f"chain {depth} {branching} {seed}")
    actions = [
        _action(
            f"stage {stage} {way}",
            f"s{stage - 1}" if stage else "",
            f"s{stage}",
            "",
            cost=float(random.randint(10, 300)),
            success=random.choice((0.5, 0.7, 0.9)),
        )
        for stage in range(depth)
        for way in range(branching)
    ]
    return Problem(frozenset(), frozenset({f"s{depth - 1}"}), tuple(actions))
