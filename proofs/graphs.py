"""Every small graph of steps ends as the rules say: the engine against an oracle that states them one by one."""

from __future__ import annotations

import argparse
import itertools
import random
import time
from typing import TYPE_CHECKING

from tests.engine.world import FAIL, PASS, World, plan, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

KINDS = ("", "ok", "completed", "failed", "done")
ENDS = ("pass", "block", "continue", "skip")  # of a step that runs: passes, or fails under that on_failure
SCHEDULES = ("dag", "levels", "batches", "sequential")
FAULTS = ("nothing recovers", "nothing is tolerated")
# A graph: for each step what it does, its edges (on, kind), and the steps it recovers.
Graph = tuple[tuple[str, tuple[tuple[int, str], ...], tuple[int, ...]], ...]


def oracle(graph: Graph) -> tuple[list[tuple[str, str]], str]:  # noqa: C901 - the rules, one after the other
    """Say how every step and the run end, straight from the rules; steps only look at earlier ones."""
    ends: list[tuple[str, str]] = []

    def tolerated(x: int) -> str:
        if any(x in recovers and ends[h][0] == "completed" for h, (_, _, recovers) in recovering(x)):
            return "continue"
        return graph[x][0] if graph[x][0] in ("continue", "skip") else ""

    def recovering(x: int) -> Iterator[tuple[int, tuple[str, tuple[tuple[int, str], ...], tuple[int, ...]]]]:
        for h, node in enumerate(graph):
            if x in node[2] and h < len(ends):
                yield h, node

    def why_not(x: int, kind: str) -> str:
        """What one edge on x says: nothing, or the reason not to run."""
        status, reason = ends[x]
        fault = status == "blocked" or (status == "failed" and not tolerated(x))
        if kind == "done" or (kind == "failed" and status == "failed"):
            return ""
        if kind == "ok" and (
            status == "completed"
            or (status == "skipped" and reason != "tolerated")
            or (status == "failed" and tolerated(x) == "continue")
        ):
            return ""
        if kind == "completed" and status == "completed":
            return ""
        if fault:
            return "blocked"
        passed_on = status == "failed" or (status == "skipped" and reason == "tolerated" and kind != "failed")
        return "tolerated" if passed_on else "upstream"

    for does, edges, _ in graph:
        reasons = {why_not(on, kind) for on, kind in edges} - {""}
        if "blocked" in reasons:
            ends.append(("blocked", "upstream"))
        elif "tolerated" in reasons:
            ends.append(("skipped", "tolerated"))
        elif reasons:
            ends.append(("skipped", "upstream"))
        else:
            ends.append(("completed", "ran") if does == "pass" else ("failed", "exit"))
    failed = [x for x, (status, _) in enumerate(ends) if status == "failed"]
    if any(status == "blocked" for status, _ in ends) or any(not tolerated(x) for x in failed):
        return ends, "failed"
    return ends, "partial" if failed else "completed"


def run(graph: Graph, schedule: str) -> tuple[list[tuple[str, str]], str]:
    """Run a graph through the engine."""
    steps = [
        step(
            str(number),
            *((str(on), kind) for on, kind in edges),
            on_failure=does if does != "pass" else "block",
            recovers=tuple(str(x) for x in recovers),
        )
        for number, (does, edges, recovers) in enumerate(graph)
    ]
    world = World({str(n): [PASS if node[0] == "pass" else FAIL] for n, node in enumerate(graph)})
    state, code = world.run(plan(steps, schedule=schedule))
    verdict = state.verdict()
    assert code == (1 if verdict == "failed" else 0)
    assert world.closed
    return [(found.status, found.reason) for found in state.steps.values()], verdict


def graphs(size: int) -> Iterator[Graph]:
    """Yield every graph of `size` steps with every kind of edge and every end, without recovery."""
    pairs = [(late, early) for late in range(size) for early in range(late)]
    for kinds in itertools.product(KINDS, repeat=len(pairs)):
        edges = [
            tuple(
                (early, kind) for (late, early), kind in zip(pairs, kinds, strict=True) if kind and late == n
            )
            for n in range(size)
        ]
        for ends in itertools.product(ENDS, repeat=size):
            yield tuple((ends[n], edges[n], ()) for n in range(size))


def recoveries() -> Iterator[Graph]:
    """Yield every graph x, h, c (and d) in which h recovers x and c looks at x, at h, or at both."""
    for ends in itertools.product(ENDS, repeat=4):
        for on_x, on_h, d_on_c, d_on_x in itertools.product(KINDS, repeat=4):
            c = tuple((n, kind) for n, kind in ((0, on_x), (1, on_h)) if kind)
            d = tuple((n, kind) for n, kind in ((0, d_on_x), (2, d_on_c)) if kind)
            yield (
                (ends[0], (), ()),
                (ends[1], ((0, "failed"),), (0,)),
                (ends[2], c, ()),
                (ends[3], d, ()),
            )


def drawn(count: int, seed: int) -> Iterator[Graph]:
    """Yield some of the four million graphs of four steps."""
    chance = random.Random(seed)
    for _ in range(count):
        yield tuple(
            (
                chance.choice(ENDS),
                tuple((early, kind) for early in range(late) if (kind := chance.choice(KINDS))),
                (),
            )
            for late in range(4)
        )


def drawn_recoveries(count: int, seed: int) -> list[Graph]:
    """Return some of the graphs with a recovery."""
    return random.Random(seed).sample(list(recoveries()), count)


def with_fault(graph: Graph, fault: str) -> Graph:
    """Return the graph as a wrong engine would understand it."""
    if fault == "nothing recovers":
        return tuple((does, edges, ()) for does, edges, _ in graph)
    if fault == "nothing is tolerated":
        return tuple(("block" if does != "pass" else does, edges, helps) for does, edges, helps in graph)
    return graph


def prove(some: Iterable[Graph], fault: str = "") -> tuple[int, list[str]]:
    """Run graphs under one schedule after the other; return how many, and those that end otherwise."""
    count, wrong = 0, []
    for count, graph in enumerate(some, 1):
        schedule = SCHEDULES[count % len(SCHEDULES)]
        if run(with_fault(graph, fault), schedule) != oracle(graph):
            wrong.append(f"{schedule}: {graph}")
    return count, wrong


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a graph ends otherwise than the rules say, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=300_000, help="graphs of four steps")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began, failed = time.monotonic(), False
    small = itertools.chain.from_iterable(map(graphs, (1, 2, 3)))
    for what, some in (
        ("small", small),
        ("recovery", recoveries()),
        ("drawn", drawn(chosen.count, chosen.seed)),
    ):
        count, wrong = prove(some)
        failed = failed or bool(wrong)
        print(f"{what}: {count} graphs, {len(wrong)} wrong", *wrong[:20], sep="\n")
    for fault in FAULTS:
        found = prove(drawn_recoveries(1000, chosen.seed), fault)[1]
        failed = failed or not found
        print(f"{fault}: {'caught' if found else 'NOT CAUGHT'}")
    print(f"seed {chosen.seed}, {time.monotonic() - began:.0f} s")
    return int(failed)
