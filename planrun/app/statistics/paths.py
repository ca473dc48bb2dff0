"""The critical path of a run: what its end really waited for, step by step, and what could be saved there."""

from __future__ import annotations

from planrun.app.copies import stored_plan
from planrun.clock import between
from planrun.errors import PlanrunError
from planrun.model import graph
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.app.statistics.traces import StepTrace, Trace

    Waits = Mapping[str, Sequence[str]]

MOST_PLANS = 64  # whose edges are kept while runs are read


class Stretch(Record):
    """One step on a path; `waited`: seconds between the end of the step before and its own start.

    It waited for a free place, for somebody's answer, or for nothing but planrun.
    """

    step: str
    seconds: float
    waited: float


class Plans:
    """Who waits for whom, by run: runs of the same plan are told from one reading of it."""

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
    """Add the members that a group got while the run went on: they wait as it does, and it waits for them."""
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
    if not ran:
        return []
    name = max(ran, key=lambda each: (ran[each].ended, ran[each].started))
    found: list[Stretch] = []
    while True:
        before = _last_before(name, waits, ran)
        since = ran[before].ended if before else trace.started
        waited = max(0.0, between(since, ran[name].started))
        found.append(Stretch(step=name, seconds=ran[name].seconds, waited=waited))
        if not before or len(found) > len(ran):
            return found[::-1]
        name = before


def _last_before(name: str, waits: Waits, ran: Mapping[str, StepTrace]) -> str:
    """Of the steps that one waits for, directly or through such as never ran, the one that ran and ended last."""
    best, seen, stack = "", {name}, list(waits[name])
    while stack:
        other = stack.pop()
        if other in seen:
            continue
        seen.add(other)
        if other not in ran:
            stack += waits.get(other, ())
        elif ran[other].ended <= ran[name].started and (not best or ran[other].ended > ran[best].ended):
            best = other
    return best


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
