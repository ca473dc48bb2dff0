"""How far a run is, and when it will probably end."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.facts import duration, epoch, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planrun.model.state import RunState


class Progress(Record):
    """A run at one moment; times in seconds, None where nothing is known yet."""

    plan_id: str
    status: str
    total_steps: int
    completed_steps: int  # steps that ended, however they did; attempts do not count
    progress: float  # 0.0 … 1.0
    percentage: float  # 0 … 100
    current_step: str  # of the running steps the one that started first; empty: none runs
    current_title: str
    eta: float | None
    average_step_duration: float | None  # over the steps that ran
    elapsed_time: float


def progress(state: RunState, now: float, expected: Mapping[str, float] | None = None) -> Progress:
    """Return the progress of a run at Unix time `now`; `expected` are seconds of steps from earlier runs."""
    tally = Tally(state.steps, jobs_of(state), expected)
    for name, step in state.steps.items():
        if step.ended:
            tally.end(name, duration(step) if step.tries else None)
        elif step.tries:
            tally.start(name, epoch(step.tries[0].started.at))
    start = epoch(state.started.at) if state.started else now
    current = tally.current()
    return Progress(
        plan_id=state.plan.name,
        status=status_of(state),
        total_steps=tally.total,
        completed_steps=tally.done,
        progress=tally.share(),
        percentage=round(100 * tally.share(), 1),
        current_step=current,
        current_title=state.steps[current].step.label if current else "",
        eta=tally.eta(now),
        average_step_duration=tally.average(),
        elapsed_time=max(0.0, (epoch(state.ended.at) if state.ended else now) - start),
    )


def jobs_of(state: RunState) -> int:
    """How many steps run at once, as the run recorded it; 1 where it did not."""
    jobs = state.started.options.get("jobs") if state.started else None
    return jobs if isinstance(jobs, int) and jobs > 0 else 1


class Tally:
    """Counts that follow a run step by step; all moments on one clock, in seconds."""

    def __init__(
        self, steps: Iterable[str], jobs: int = 1, expected: Mapping[str, float] | None = None
    ) -> None:
        self.running: dict[str, float] = {}  # step to the moment it started first
        self.total = self.done = 0
        self._jobs = jobs
        self._expected = expected or {}
        self._spent = 0.0
        self._ran = 0
        # What is left of steps that have not started: the sum of the known durations, how many are unknown.
        self._known = 0.0
        self._unknown = 0
        for name in steps:
            self.add(name)

    def add(self, name: str) -> None:
        """Take note of one more step."""
        self.total += 1
        self._count(name, 1)

    def _count(self, name: str, sign: int) -> None:
        if name in self._expected:
            self._known += sign * self._expected[name]
        else:
            self._unknown += sign

    def start(self, name: str, now: float) -> None:
        """A step started; further attempts change nothing."""
        if name not in self.running:
            self.running[name] = now
            self._count(name, -1)

    def end(self, name: str, duration: float | None) -> None:
        """A step ended after `duration` seconds, or without having run."""
        if name in self.running:
            del self.running[name]
        else:
            self._count(name, -1)
        self.done += 1
        if duration is not None:
            self._ran += 1
            self._spent += duration

    def current(self) -> str:
        """The running step that started first, or ""."""
        return min(self.running, key=self.running.__getitem__, default="")

    def share(self) -> float:
        """How much is done, 0.0 … 1.0; a run without steps is done."""
        return self.done / self.total if self.total else 1.0

    def average(self) -> float | None:
        """Mean duration of the steps that ran."""
        return self._spent / self._ran if self._ran else None

    def eta(self, now: float) -> float | None:
        """Seconds until the end: what is left, over the steps at once, but never less than the longest."""
        if self.done == self.total:
            return 0.0
        mean = self.average()
        if mean is None and (self._unknown or any(name not in self._expected for name in self.running)):
            return None
        mean = mean or 0.0
        active = [
            max(0.0, self._expected.get(name, mean) - (now - start)) for name, start in self.running.items()
        ]
        rest = max(0.0, self._known) + self._unknown * mean + sum(active)
        return max(rest / min(self._jobs, self.total - self.done), max(active, default=0.0))
