"""Every small graph ends as the rules say: the engine against an oracle that states them one by one."""

from __future__ import annotations

import itertools
import os
import random
from typing import TYPE_CHECKING

from tests.engine.world import FAIL, PASS, World, plan, step

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("", "ok", "completed", "failed", "done")
ENDS = ("pass", "block", "continue", "skip")  # of a step that runs: passes, or fails under that on_failure
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


def check(graph: Graph, schedule: str) -> None:
    """Run a graph and hold it against the oracle."""
    assert run(graph, schedule) == oracle(graph), (graph, schedule)


def test_every_graph_of_up_to_three_steps_ends_as_the_rules_say() -> None:
    """8,000 graphs of three steps, each kind of edge, each end and each way of tolerating it."""
    count = 0
    for size in (1, 2, 3):
        for graph in graphs(size):
            check(graph, ("dag", "levels", "batches", "sequential")[count % 4])
            count += 1
    assert count == 4 + 80 + 8000


def test_recovery_ends_as_the_rules_say() -> None:
    """A handler that recovers a failure, with dependents that look at the failure, the handler or both."""
    every = list(recoveries())
    chosen = every if os.environ.get("PLANRUN_PROOFS") == "full" else random.Random(7).sample(every, 6000)
    for number, graph in enumerate(chosen):
        check(graph, ("dag", "levels", "batches", "sequential")[number % 4])


def test_graphs_of_four_steps_end_as_the_rules_say() -> None:
    """A sample of the four million graphs of four steps; PLANRUN_PROOFS=full takes 300,000."""
    rng = random.Random(20260101)
    for number in range(300_000 if os.environ.get("PLANRUN_PROOFS") == "full" else 6000):
        graph: Graph = tuple(
            (
                rng.choice(ENDS),
                tuple((early, kind) for early in range(late) if (kind := rng.choice(KINDS))),
                (),
            )
            for late in range(4)
        )
        check(graph, ("dag", "levels", "batches", "sequential")[number % 4])
