"""How close a schedule is to the optimum: random graphs with known durations, on a virtual clock and in real time.

A makespan is compared with three numbers. The *bound*, max(longest path, sum / jobs), is what the goal names; it
may be out of reach. The *tight bound* also counts what must run before and after any set of steps, so it is larger.
The *best* is the shortest makespan of many orders that are drawn at random, and of the schedules themselves.
"""

from __future__ import annotations

import math
import random
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planrun.app.history import weights
from planrun.engine import Dependencies, Options
from planrun.engine.scheduler import Scheduler
from planrun.executors.virtual import VirtualClock, VirtualExecutor
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.job import Job, Outcome, Prepared
from planrun.model.plan import Edge, Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run

if TYPE_CHECKING:
    from planrun.model.plan import Schedule

SEED = 9
GRAPHS = 200
ORDERS = 200  # that are drawn for each graph
WRONG = 0.3  # how far recorded durations are off at most, as a share, where they are not exact


@dataclass(frozen=True)
class Work:
    """A graph with known durations: what each step waits for, seconds by step, and how many run at once."""

    shape: str
    needs: Mapping[str, tuple[str, ...]]
    seconds: Mapping[str, float]
    jobs: int

    def plan(self) -> Plan:
        """The graph as a plan."""
        steps = [
            Step(
                id=name,
                action=Run(script="true"),
                kind="run",
                edges=tuple(Edge(on=other, kind="ok") for other in needs),
                parallel=True,
            )
            for name, needs in self.needs.items()
        ]
        return Plan(name=self.shape, file="plan.yml", digest="0" * 64, steps=tuple(steps))

    def path(self) -> float:
        """Seconds of the longest path."""
        return max(graph.weights(self.needs, self.seconds).values())

    def bound(self) -> float:
        """The longest path, or all work evenly on all jobs: no schedule is shorter."""
        return max(self.path(), sum(self.seconds.values()) / self.jobs)

    def tight_bound(self) -> float:
        """The largest of: what precedes a set of steps, its work evenly on all jobs, what follows it."""
        tails = graph.weights(self.needs, self.seconds)
        before = graph.weights(graph.reverse(self.needs), self.seconds)
        rows = [(before[name] - took, tails[name] - took, took) for name, took in self.seconds.items()]
        best = self.bound()
        for head in {row[0] for row in rows}:
            work = 0.0
            for _, tail, took in sorted((row for row in rows if row[0] >= head), key=lambda row: -row[1]):
                work += took
                best = max(best, head + work / self.jobs + tail)
        return best


# The graphs.


def layered(draw: random.Random, count: int) -> dict[str, tuple[str, ...]]:
    """Layers of random width; a step waits for one to three of the layer before."""
    needs: dict[str, tuple[str, ...]] = {}
    above: list[str] = []
    while len(needs) < count:
        layer = [f"s{len(needs) + index}" for index in range(draw.randint(1, 12))][: count - len(needs)]
        for name in layer:
            needs[name] = tuple(draw.sample(above, min(len(above), draw.randint(1, 3))))
        above = layer
    return needs


def sparse(draw: random.Random, count: int) -> dict[str, tuple[str, ...]]:
    """A step waits for up to three of the twenty before it."""
    names = [f"s{index}" for index in range(count)]
    needs = {}
    for index, name in enumerate(names):
        near = names[max(0, index - 20) : index]
        needs[name] = tuple(draw.sample(near, min(len(near), draw.randint(0, 3))))
    return needs


def forks(draw: random.Random, count: int) -> dict[str, tuple[str, ...]]:
    """Stages one after the other, each a fork into chains and a join."""
    needs: dict[str, tuple[str, ...]] = {"s0": ()}
    last = "s0"
    while len(needs) < count:
        ends = []
        for _ in range(draw.randint(2, 6)):
            end = last
            for _ in range(draw.randint(1, 4)):
                name = f"s{len(needs)}"
                needs[name], end = (end,), name
            ends.append(end)
        last = f"s{len(needs)}"
        needs[last] = tuple(ends)
    return needs


def pipelines(draw: random.Random, count: int) -> dict[str, tuple[str, ...]]:
    """As in CI: parts that are set up, built, tested in many ways and packed, then one release of all of them."""
    needs: dict[str, tuple[str, ...]] = {}
    packed = []
    while len(needs) < count:
        number = len(needs)
        needs[f"s{number}"] = ()
        needs[f"s{number + 1}"] = (f"s{number}",)
        tests = [f"s{number + 2 + index}" for index in range(draw.randint(1, 8))]
        needs |= dict.fromkeys(tests, (f"s{number + 1}",))
        packed.append(f"s{len(needs)}")
        needs[packed[-1]] = tuple(tests)
    needs[f"s{len(needs)}"] = tuple(packed)
    return needs


SHAPES = (layered, sparse, forks, pipelines)


def _even(draw: random.Random) -> float:
    return draw.uniform(1, 100)


def _long_tailed(draw: random.Random) -> float:
    return min(600.0, max(1.0, draw.lognormvariate(2.5, 1.0)))


def _of_two_kinds(draw: random.Random) -> float:
    return draw.uniform(60, 180) if draw.random() < 0.15 else draw.uniform(1, 10)


LENGTHS = (_even, _long_tailed, _of_two_kinds)


def works(count: int = GRAPHS, seed: int = SEED) -> list[Work]:
    """Return random graphs of 20 to 120 steps, whole tenths of a second each, for 2 to 8 jobs."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        shape, length = SHAPES[number % len(SHAPES)], LENGTHS[number % len(LENGTHS)]
        needs = shape(draw, draw.randint(20, 120))
        seconds = {name: round(length(draw), 1) for name in needs}
        names = list(needs)
        if number % 2:  # files are rarely written in the order of the graph
            draw.shuffle(names)
        needs = {name: needs[name] for name in names}
        found.append(Work(f"{shape.__name__} {number}", needs, seconds, draw.choice((2, 3, 4, 8))))
    return found


# The schedules, driven by the real loop.


class _Player:
    """Step runner, journal and inbox of a run in which every step takes the duration that its graph gives."""

    def __init__(self) -> None:
        self.records = 0
        self.lost = None

    def append(self, _event: ev.Event) -> None:
        self.records += 1

    hold = append

    def flush(self) -> None:
        """Nothing can be lost."""

    sync = flush

    def take(self) -> list[int]:
        return []

    def prepare(self, step: Step, attempt: int, _state: RunState) -> Prepared:
        job = Job(step=step.id, attempt=attempt, argv=(), env={}, cwd="", log="", timeout=0.0)
        return Prepared(fingerprint="", job=job)

    def conclude(self, _step: Step, _job: Job, outcome: Outcome) -> Outcome:
        return outcome

    def opening(self, _group: Step, _state: RunState) -> dict[str, Any]:
        return {}

    def gathered(self, _group: Step, _state: RunState) -> dict[str, Any]:
        return {}

    def plan_outputs(self, _state: RunState) -> tuple[dict[str, Any], str]:
        return {}, ""


def makespan(work: Work, schedule: Schedule, recorded: Mapping[str, float]) -> float:
    """Return the seconds that a run takes; `recorded`: the durations of earlier ones."""
    clock, player = VirtualClock(), _Player()
    ended = Outcome(status="completed", reason="ran", exit_code=0)
    executor = VirtualExecutor(clock, lambda job: ended.but(duration=work.seconds[job.step]))
    state = RunState(work.plan())
    for status in ("awaiting_approval", "approved"):
        state.apply(ev.PlanMoved(at=clock.stamp(), status=status))
    dependencies = Dependencies(
        executor=executor, steps=player, journal=player, sinks=(), clock=clock, inbox=player,
        holds=lambda _step, _state: True,
    )  # fmt: skip
    options = Options(jobs=work.jobs, schedule=schedule, seconds=recorded)
    if Scheduler(state, dependencies, options).run() != 0:
        raise RuntimeError(f"{work.shape} did not end well")
    return clock.now


def by_order(work: Work, order: Sequence[str]) -> float:
    """Return the makespan when of all steps that can start the first in `order` does; not by the real loop."""
    place = {name: index for index, name in enumerate(order)}
    open_needs = {name: len(needs) for name, needs in work.needs.items()}
    after = graph.reverse(work.needs)
    ready = sorted((place[name], name) for name, count in open_needs.items() if not count)
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < work.jobs:
            name = ready.pop(0)[1]
            insort(running, (now + work.seconds[name], name))
        now, done = running.pop(0)
        for name in after[done]:
            open_needs[name] -= 1
            if not open_needs[name]:
                insort(ready, (place[name], name))
    return now


def best_order(work: Work, draws: int = ORDERS) -> float:
    """Return the shortest makespan of many orders: half of them anything, half near the longest path first."""
    draw = random.Random(SEED)
    tails = graph.weights(work.needs, work.seconds)
    names, found = list(work.needs), []
    for number in range(draws):
        near = number % 2
        key = {name: -tails[name] * draw.uniform(0.8, 1.2) if near else draw.random() for name in names}
        found.append(by_order(work, sorted(names, key=key.__getitem__)))
    return min(found)


def recorded(work: Work, wrong: float = 0.0) -> dict[str, float]:
    """Return durations as earlier runs would have left them, each off by a share of up to `wrong`."""
    draw = random.Random(SEED)
    return weights({name: took * draw.uniform(1 - wrong, 1 + wrong) for name, took in work.seconds.items()})


def planned(found: Sequence[Work], draws: int = ORDERS) -> dict[str, list[tuple[float, float, float]]]:
    """Return for each way to order steps its makespans, as multiples of bound, tight bound and best order."""
    ways: dict[str, list[tuple[float, float, float]]] = {}
    for work in found:
        spans = {
            "dag, durations recorded": makespan(work, "dag", recorded(work)),
            f"dag, records off by up to {WRONG:.0%}": makespan(work, "dag", recorded(work, WRONG)),
            "dag, nothing recorded": makespan(work, "dag", {}),
            "levels": makespan(work, "levels", {}),
            "batches": makespan(work, "batches", {}),
        }
        best = min(best_order(work, draws), *spans.values())
        for way, span in spans.items():
            row = (span / work.bound(), span / work.tight_bound(), span / best)
            ways.setdefault(way, []).append(row)
    return ways


def share(values: Sequence[float], part: float) -> float:
    """Return the value that such a part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


# The same for real: steps that sleep.


def sleeping(work: Work, longest: float) -> tuple[Work, str]:
    """Return a graph scaled so that its bound is `longest` seconds, and a plan of it in which steps sleep."""
    factor = longest / work.bound()
    scaled = {name: round(took * factor, 3) for name, took in work.seconds.items()}
    rows = [
        f"  - {{id: {name}, exec: [sleep, '{scaled[name]:.3f}'], depends_on: [{', '.join(needs)}]}}\n"
        for name, needs in work.needs.items()
    ]
    return Work(work.shape, work.needs, scaled, work.jobs), "version: 1\nsteps:\n" + "".join(rows)
