"""The ETA of a run: a simulation of the remaining steps in their order, with the run's job slots."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from planrun.engine.queue import Queue
from planrun.model import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.model.plan import Schedule, Step
    from planrun.model.state import RunState


def remaining(
    state: RunState, jobs: int, schedule: Schedule, left: Mapping[str, float], usual: float
) -> float:
    """Return the seconds until a run ends if every remaining step runs once and no approval is awaited.

    `left`: the remaining seconds of steps; `usual`: the seconds of steps without an entry there.
    """
    now = 0.0
    for section in ("steps", "finally"):
        steps = [step for step in state.plan.steps if step.section == section]
        if any(not state.steps[step.id].ended for step in steps):
            now = _Simulation(
                state,
                steps,
                {
                    **left,
                    **{step.id: 0.0 for step in steps if step.kind == "group" or step.service is not None},
                },
                usual,
            ).end(now, jobs, schedule)
    return now


class _Simulation:
    """The remaining steps of one section."""

    def __init__(
        self, state: RunState, steps: Sequence[Step], left: Mapping[str, float], usual: float
    ) -> None:
        self._states = state.steps
        self._steps = steps
        self._left = left
        self._usual = usual
        self._waits = graph.waits(steps)
        self._after = graph.reverse(self._waits)
        self._open = {
            name: sum(not self._states[other].ended for other in needed)
            for name, needed in self._waits.items()
        }
        self._ends: list[tuple[float, str]] = []

    def end(self, now: float, jobs: int, schedule: Schedule) -> float:
        """Return when the last step ends; the section starts or continues at `now`."""
        seconds = {name: self._takes(name) for name in self._waits}
        queue = Queue(self._steps, schedule, jobs, seconds)
        for name in self._waits:
            step_state = self._states[name]
            if step_state.ended:
                queue.settle(name)
            elif step_state.status == "running" and step_state.step.kind != "group":
                self._ends.append((now + self._takes(name), name))
            elif not self._open[name]:
                self._ready(queue, name, now)
        heapify(self._ends)
        return self._run(queue, now)

    def _takes(self, name: str) -> float:
        return max(0.0, self._left.get(name, self._usual))

    def _ready(self, queue: Queue, name: str, now: float) -> None:
        if self._states[name].step.kind == "group":  # it takes no job slot
            self._ends.append((now, name))
        else:
            queue.add(name)

    def _run(self, queue: Queue, now: float) -> float:
        while True:
            while (name := queue.take(self._busy, 0)) is not None:
                heappush(self._ends, (now + self._takes(name), name))
            if not self._ends:
                return now
            now, name = heappop(self._ends)
            queue.release(name)
            queue.settle(name)
            for other in self._after[name]:
                self._open[other] -= 1
                if not self._open[other] and self._states[other].status in ("pending", "waiting", "paused"):
                    self._ready(queue, other, now)
                elif not self._open[other] and self._states[other].step.kind == "group":
                    heappush(self._ends, (now, other))
            heapify(self._ends)

    @property
    def _busy(self) -> int:
        return sum(self._states[name].step.kind != "group" for _, name in self._ends)
