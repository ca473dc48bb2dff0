"""The critical path of a run: the steps that its end waited for, and how much time each could save.

The figures of all runs of one plan.
"""

from __future__ import annotations

from array import array

from planrun.app.copies import stored_plan
from planrun.clock import between
from planrun.errors import PlanrunError
from planrun.model import graph
from planrun.model.critical import critical_path
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.stats.gathering import Gathering, StepTrace, Trace, Wanted

    Waits = Mapping[str, Sequence[str]]


MOST_PLANS = 64  # whose edges are kept while runs are read


class Stretch(Record):
    """One step on a path; `waited`: seconds between the end of the step before and its own start.

    It waited for a free place, for an answer, or only for planrun.
    """

    step: str
    seconds: float
    waited: float


class Plans:
    """The dependencies of steps, by run: a plan is read once for all its runs."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Waits | None] = {}

    def waits(self, folder: str, trace: Trace) -> Waits | None:
        """Return the waiting relation of a run's steps, members of groups included; None where its plan is gone."""
        named = trace.plan
        key = (named.get("sha256"), named.get("version"), named.get("file"))
        if key not in self._known:
            if len(self._known) >= MOST_PLANS:
                self._known.clear()
            try:
                self._known[key] = graph.waits(stored_plan(folder, named).main())
            except (PlanrunError, KeyError, TypeError, ValueError):
                self._known[key] = None
        found = self._known[key]
        return None if found is None else _with_members(found, trace)


def _with_members(waits: Waits, trace: Trace) -> Waits:
    """Add the members that a group got during the run: they wait as it does, and it waits for them."""
    added = [name for name in trace.steps if name not in waits and name.rpartition("[")[0] in waits]
    if not added:
        return waits
    found = {name: tuple(needed) for name, needed in waits.items()}
    for name in added:
        group = name.rpartition("[")[0]
        found[name] = tuple(waits[group])
        found[group] = (*found[group], name)
    return found


def critical(trace: Trace, waits: Waits) -> list[Stretch]:
    """Return the path that ends with the step that ended last: before each, what it waited for that ended last."""
    ran = {name: step for name, step in trace.steps.items() if step.started and step.ended and name in waits}
    found: list[Stretch] = []
    since = trace.started
    for name in critical_path(waits, {each: (step.started, step.ended) for each, step in ran.items()}):
        waited = max(0.0, between(since, ran[name].started))
        found.append(Stretch(step=name, seconds=ran[name].seconds, waited=waited))
        since = ran[name].ended
    return found


def savings(trace: Trace, waits: Waits, path: Sequence[Stretch], most: int = 10) -> dict[str, float]:
    """Return by how many seconds the run would be shorter at most if a step of the path took no time, the best first.

    Another path is the longest then, and all the other work has to be done by as many steps at a time.
    """
    seconds = {name: step.seconds for name, step in trace.steps.items() if name in waits}
    whole, work = _longest(waits, seconds), sum(seconds.values())
    jobs = trace.options.get("jobs")
    places = jobs if isinstance(jobs, int) and jobs > 0 else 1
    found = {}
    for stretch in sorted(path, key=lambda each: -each.seconds)[:most]:
        left = _longest(waits, {**seconds, stretch.step: 0.0})
        least = max(left, (work - stretch.seconds) / places)
        saved = min(stretch.seconds, max(whole, work / places) - least)
        if saved > 0:
            found[stretch.step] = saved
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _longest(waits: Waits, seconds: Mapping[str, float]) -> float:
    return max(graph.weights(waits, seconds, 0.0).values(), default=0.0)


class Spread(Record):
    """Durations at a glance; seconds. The median of an even number is the mean of the two in the middle."""

    count: int
    median: float
    p95: float
    most: float


def spread(values: Iterable[float]) -> Spread | None:
    """Return how values are spread; None where there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    last = len(ordered) - 1
    return Spread(
        count=len(ordered),
        median=(ordered[last // 2] + ordered[(last + 1) // 2]) / 2,
        p95=ordered[min(last, -(-95 * len(ordered) // 100) - 1)],
        most=ordered[-1],
    )


class StepFigures:
    """One step over many runs; `path`: seconds on critical paths, `gates`: seconds at gates."""

    def __init__(self) -> None:
        self.seconds = array("d")  # of the runs in which it ran to an end
        self.failed = self.flaky = self.repaired = self.cached = self.retries = self.left_out = (
            self.on_path
        ) = 0
        self.path = self.gates = self.usd = 0.0
        self.tokens = 0

    def count(self, step: StepTrace) -> None:
        """Add one run."""
        if step.ran:
            self.seconds.append(step.seconds)
        elif step.status in ("skipped", "blocked", "cancelled"):
            self.left_out += 1
        self.failed += step.status == "failed" or step.failures > 0
        self.flaky += step.flaky
        self.repaired += step.failures > 0 and step.status == "completed"
        self.cached += step.reason == "cached"
        self.retries += step.retries
        self.gates += step.gate
        self.tokens += step.tokens
        self.usd += step.usd

    @property
    def ended(self) -> int:
        """In how many runs it completed or failed at least once."""
        return max(len(self.seconds) + self.cached, self.failed)


class RunFigures(Record):
    """One run, as a list of runs has it."""

    run: str
    folder: str
    started: str
    verdict: str  # "" where it has no end
    busy: float
    gate: float
    speedup: float | None


class PlanFigures:
    """All runs of one plan, newest first."""

    def __init__(self, name: str, file: str) -> None:
        self.name = name
        self.file = file
        self.runs: list[RunFigures] = []
        self.steps: dict[str, StepFigures] = {}
        self.path = 0.0  # seconds of all critical paths
        self.paths = 0  # how many of them there are

    def count(self, folder: str, trace: Trace, path: Sequence[Stretch]) -> None:
        """Add one run and its critical path."""
        self.runs.append(
            RunFigures(
                run=trace.run,
                folder=folder,
                started=trace.started,
                verdict=trace.verdict,
                busy=trace.busy,
                gate=trace.gate,
                speedup=trace.speedup,
            )
        )
        for name, step in trace.steps.items():
            self.steps.setdefault(name, StepFigures()).count(step)
        for stretch in path:
            self.steps[stretch.step].path += stretch.seconds
            self.steps[stretch.step].on_path += 1
            self.path += stretch.seconds
        self.paths += bool(path)

    @property
    def typical(self) -> RunFigures | None:
        """The run of median length among those that completed, else among all."""
        done = [run for run in self.runs if run.verdict in ("completed", "partial")] or self.runs
        ordered = sorted(done, key=lambda run: run.busy)
        return ordered[(len(ordered) - 1) // 2] if ordered else None

    @property
    def ended(self) -> list[RunFigures]:
        """The runs that ended by themselves: the duration of a cancelled run says nothing about its steps."""
        return [run for run in self.runs if run.verdict in ("completed", "partial", "failed")]

    def verdicts(self) -> dict[str, int]:
        """How many runs ended how; `unfinished` have no end."""
        found: dict[str, int] = {}
        for run in self.runs:
            verdict = run.verdict or "unfinished"
            found[verdict] = found.get(verdict, 0) + 1
        return found


class Example(Record):
    """The critical path of one run; `saved`: seconds by step, by which the run would be shorter without it, at most."""

    run: str
    path: tuple[Stretch, ...]
    saved: dict[str, float]


def count(gathering: Gathering, wanted: Wanted, plans: Plans) -> list[PlanFigures]:
    """Read the runs that are wanted and return their figures, the plan with the newest run first."""
    found: dict[tuple[str, str], PlanFigures] = {}
    for folder, trace in gathering.traces(wanted):
        key = (str(trace.plan.get("name", "")), str(trace.plan.get("file", "")))
        waits = plans.waits(folder, trace)
        path = critical(trace, waits) if waits else []
        found.setdefault(key, PlanFigures(*key)).count(folder, trace, path)
    return list(found.values())


def example(figures: PlanFigures, gathering: Gathering, plans: Plans) -> Example | None:
    """Return the critical path of the typical run of a plan; None where there is none."""
    typical = figures.typical
    trace = gathering.trace(typical.folder) if typical else None
    waits = plans.waits(typical.folder, trace) if typical and trace else None
    if typical is None or trace is None or not waits:
        return None
    path = tuple(critical(trace, waits))
    return Example(run=typical.run, path=path, saved=savings(trace, waits, path)) if path else None


def as_data(figures: PlanFigures, found: Example | None) -> dict[str, Any]:
    """Return the figures of a plan as JSON data; durations in seconds, rates as shares of 1."""
    return {
        "plan": {"name": figures.name, "file": figures.file},
        "runs": {
            "count": len(figures.runs),
            "verdicts": figures.verdicts(),
            "first": figures.runs[-1].started,
            "last": figures.runs[0].started,
            "duration_s": _spread(run.busy for run in figures.ended),
            "speedup": _spread(run.speedup for run in figures.ended if run.speedup),
            "gates_s": round(sum(run.gate for run in figures.runs), 3),
        },
        "steps": [_step(name, step, figures) for name, step in figures.steps.items()],
        "critical_path": found and {
            "run": found.run,
            "steps": [
                {
                    "id": stretch.step,
                    "duration_s": round(stretch.seconds, 4),
                    "waited_s": round(stretch.waited, 4),
                    "could_save_s": round(found.saved.get(stretch.step, 0.0), 4),
                }
                for stretch in found.path
            ],
        },
    }  # fmt: skip


def _step(name: str, step: StepFigures, figures: PlanFigures) -> dict[str, Any]:
    ended = step.ended
    return {
        "id": name,
        "ran": len(step.seconds),
        "duration_s": _spread(step.seconds),
        "failed": step.failed,
        "failure_rate": round(step.failed / ended, 4) if ended else None,
        "flaky": step.flaky,
        "flaky_rate": round(step.flaky / ended, 4) if ended else None,
        "repaired": step.repaired,
        "retries": step.retries,
        "cached": step.cached,
        "left_out": step.left_out,
        "critical": {
            "runs": step.on_path,
            "share": round(step.path / figures.path, 4) if figures.path else None,
        },
        "gates_s": round(step.gates, 3),
        "tokens": step.tokens,
        "usd": round(step.usd, 6),
    }


def _spread(values: Iterable[float]) -> dict[str, float] | None:
    found = spread(values)
    if found is None:
        return None
    parts = {"median": found.median, "p95": found.p95, "max": found.most}
    return {name: round(value, 4) for name, value in parts.items()}


def ranked(figures: PlanFigures, most: int) -> Iterator[tuple[str, StepFigures]]:
    """Yield the steps of a plan that took longest, in the median, first."""

    def median(pair: tuple[str, StepFigures]) -> float:
        found = spread(pair[1].seconds)
        return -found.median if found else 0.0

    yield from sorted(figures.steps.items(), key=median)[: most or None]
