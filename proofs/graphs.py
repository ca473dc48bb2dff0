"""Every small graph of steps ends as the rules say: the engine against an oracle that states them one by one."""

from __future__ import annotations

import argparse
import itertools
import random
import time
from typing import TYPE_CHECKING

from planrun.plan.load import load_bytes
from tests.engine.world import FAIL, PASS, World, plan, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from planrun.model.job import Outcome

KINDS = ("", "ok", "completed", "failed", "done")
ENDS = ("pass", "block", "continue", "skip")  # of a step that runs: passes, or fails under that on_failure
SCHEDULES = ("dag", "levels", "batches", "sequential")
FAULTS = ("nothing recovers", "nothing is tolerated")
# A graph: for each step what it does, its edges (on, kind), and the steps it recovers.
Graph = tuple[tuple[str, tuple[tuple[int, str], ...], tuple[int, ...]], ...]


def oracle(graph: Graph, schedule: str = "dag") -> tuple[list[tuple[str, str]], str]:
    """Say how every step and the run end, straight from the rules; steps only look at earlier ones."""
    ends: dict[int, tuple[str, str]] = {}
    levels = level_of_each(graph)

    def stops(x: int, level: int, edges: tuple[tuple[int, str], ...], recovers: tuple[int, ...]) -> bool:
        """Whether the failure of x keeps a step of a later level from starting, under `levels`."""
        handlers = [h for h, node in enumerate(graph) if x in node[2]]
        return (
            schedule == "levels"
            and levels[x] < level
            and ends[x][0] == "failed"
            and not tolerated(x)
            and x not in recovers
            and not any(on == x and kind in ("failed", "done") for on, kind in edges)
            and all(levels[h] < level for h in handlers)
        )

    def tolerated(x: int) -> str:
        if any(x in recovers and ends[h][0] == "completed" for h, (_, _, recovers) in recovering(x)):
            return "continue"
        return graph[x][0] if graph[x][0] in ("continue", "skip") else ""

    def recovering(x: int) -> Iterator[tuple[int, tuple[str, tuple[tuple[int, str], ...], tuple[int, ...]]]]:
        for h, node in enumerate(graph):
            if x in node[2] and h in ends:
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

    for number in sorted(range(len(graph)), key=lambda number: (levels[number], number)):
        does, edges, recovers = graph[number]
        reasons = {why_not(on, kind) for on, kind in edges} - {""}
        if "blocked" in reasons:
            ends[number] = ("blocked", "upstream")
        elif "tolerated" in reasons:
            ends[number] = ("skipped", "tolerated")
        elif reasons:
            ends[number] = ("skipped", "upstream")
        elif any(stops(x, levels[number], edges, recovers) for x in list(ends)):
            ends[number] = ("blocked", "upstream")
        else:
            ends[number] = ("completed", "ran") if does == "pass" else ("failed", "exit")
    listed = [ends[number] for number in range(len(graph))]
    failed = [x for x, (status, _) in enumerate(listed) if status == "failed"]
    if any(status == "blocked" for status, _ in listed) or any(not tolerated(x) for x in failed):
        return listed, "failed"
    return listed, "partial" if failed else "completed"


def level_of_each(graph: Graph) -> list[int]:
    """Return the level of each step: one more than that of the last one it waits for, handlers included."""
    found: list[int] = []
    for _, edges, _ in graph:
        waits = {on for on, _ in edges}
        for on, kind in edges:
            if kind in ("ok", "completed") and graph[on][0] != "continue":
                waits.update(h for h, node in enumerate(graph) if on in node[2])
        found.append(1 + max((found[x] for x in waits), default=-1))
    return found


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
        if run(with_fault(graph, fault), schedule) != oracle(graph, schedule):
            wrong.append(f"{schedule}: {graph}")
    return count, wrong


# A step with edges between instances: whether both instances of `t` pass and what a failure means; the kind of the
# edges from `u` to the instances of the same name; what becomes of `u` itself; how `x` ends, and the kind of the edge
# from `u` to it; the kind of the edge from `publish` to `u`.
Instances = tuple[tuple[bool, bool], str, str, str, tuple[str, str], str]
WORK = ("runs", "false", "left out")


def instances() -> Iterator[Instances]:
    """Yield every plan of `t`, `x`, `u` with an edge between instances, and `publish`."""
    edges = ("ok", "completed", "failed", "done")
    on_x = [("", ""), *itertools.product(("pass", "block", "skip", "continue"), edges)]
    passing = tuple(itertools.product((True, False), repeat=2))
    yield from itertools.product(passing, ("block", "continue", "skip"), edges, WORK, on_x, edges)


def run_instances(one: Instances) -> tuple[str, str]:
    """Run such a plan through the engine; return how `u` and `publish` end."""
    (first, second), fails, kind, work, (x, on_x), last = one
    needs = [f"t: {{instance: {kind}}}", *([f"x: {on_x}"] if x else [])]
    text = (
        "version: 1\nparams: {up: {type: boolean, default: false}}\nsteps:\n"
        f"  - {{id: t, matrix: {{p: [a, b]}}, on_failure: {fails}, run: 'true'}}\n"
        f"  - {{id: x, on_failure: {x if x not in ('', 'pass') else 'block'}, run: 'true'}}\n"
        f"  - {{id: u, matrix: {{p: [a, b]}}, depends_on: {{{', '.join(needs)}}}, condition: params.up, run: 'true'}}\n"
        f"  - {{id: publish, depends_on: {{u: {last}}}, run: 'true'}}\n"
    )
    loaded = load_bytes(text.encode(), "plan.yml", cache=False)
    outcomes: dict[str, Sequence[Outcome | float]] = {
        "t[p=a]": [PASS if first else FAIL],
        "t[p=b]": [PASS if second else FAIL],
        "x": [PASS if x in ("", "pass") else FAIL],
    }
    world = World(outcomes)
    world.conditions["u"] = lambda _state: work != "false"
    world.openings["u"] = {}
    chosen = frozenset(name for name in (step.id for step in loaded.steps) if not name.startswith("u"))
    state, _ = world.run(loaded, **({"selected": chosen} if work == "left out" else {}))
    return state.steps["u"].status, state.steps["publish"].status


def expected_of_instances(one: Instances) -> tuple[str, str]:
    """Say how `u` and `publish` end, from the rules: an instance, then the step, then what depends on it."""
    ends, fails, kind, work, (x, on_x), last = one

    def edge(wanted: str, status: str, tolerance: str) -> str:
        if wanted == "done" or (wanted == "failed" and status == "failed"):
            return ""
        if status == "completed":
            return "upstream" if wanted == "failed" else ""
        if status == "skipped":
            return "" if wanted == "ok" else "upstream"
        if status == "tolerated":
            return "upstream" if wanted == "failed" else "tolerated"
        if status == "blocked" or tolerance == "block":
            return "blocked"
        return "" if wanted == "ok" and tolerance == "continue" else "tolerated"

    found = set()
    of_x = edge(on_x, "completed" if x == "pass" else "failed", x) if x else ""
    for passes in ends:
        reasons = {of_x, edge(kind, "completed" if passes else "failed", fails)}
        worst = next((reason for reason in ("blocked", "tolerated", "upstream") if reason in reasons), "")
        found.add(worst or ("completed" if work == "runs" else "skipped"))
    if "blocked" in found:
        status = "blocked"
    elif "tolerated" in found:
        status = "tolerated"
    else:
        status = "completed" if "completed" in found else "skipped"
    behind = edge(last, status, "")
    then = "completed" if not behind else "blocked" if behind == "blocked" else "skipped"
    return ("skipped" if status == "tolerated" else status), then


def prove_instances(some: Iterable[Instances]) -> tuple[int, list[str]]:
    """Run such plans; return how many, and those that end otherwise than the rules say."""
    listed, wrong = list(some), []
    for one in listed:
        got, want = run_instances(one), expected_of_instances(one)
        if got != want:
            wrong.append(f"{one}: {got}, not {want}")
    return len(listed), wrong


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
    count, wrong = prove_instances(instances())
    failed = failed or bool(wrong)
    print(f"edges between instances: {count} plans, {len(wrong)} wrong", *wrong[:20], sep="\n")
    for fault in FAULTS:
        found = prove(drawn_recoveries(1000, chosen.seed), fault)[1]
        failed = failed or not found
        print(f"{fault}: {'caught' if found else 'NOT CAUGHT'}")
    print(f"seed {chosen.seed}, {time.monotonic() - began:.0f} s")
    return int(failed)
