"""How far a run is, and when it will probably end."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.facts import duration, epoch, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from planrun.model.state import RunState

    # Seconds that are left by step, and what other steps take: seconds until the end.
    Forecast = Callable[[Mapping[str, float], float], float]
    ReadProgress = Callable[[Iterable[str]], Mapping[str, tuple[float, str]]]

AGE = 1.0  # seconds
RELIABLE_SHARE = 0.02  # a share from which the rest can be estimated


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
    eta_known: bool  # False: it is at least so long, since steps are left whose durations are not known
    average_step_duration: float | None  # over the steps that ran
    elapsed_time: float


class Estimates(Record):
    """What is known of a run's future: seconds of its steps from earlier runs, and two things that can be asked.

    `forecast`: how long the run takes of whose running steps so many seconds are left, and whose unknown ones take so
    many; None: all the work, shared out evenly. `reported`: the progress that some running steps report, from 0 to 1,
    and their message.
    """

    expected: Mapping[str, float] = {}
    forecast: Forecast | None = None
    reported: ReadProgress | None = None


def progress(state: RunState, now: float, estimates: Estimates | None = None) -> Progress:
    """Return the progress of a run at Unix time `now`."""
    tally = Tally([step.step.id for step in state.counted()], jobs_of(state), estimates)
    for step in state.counted():
        name = step.step.id
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
        eta_known=tally.eta_known,
        average_step_duration=tally.average(),
        elapsed_time=max(0.0, (epoch(state.ended.at) if state.ended else now) - start),
    )


def jobs_of(state: RunState) -> int:
    """How many steps run at once, as the run recorded it; 1 where it did not, and where they run one by one."""
    if state.started and state.started.options.get("schedule") == "sequential":
        return 1
    jobs = state.started.options.get("jobs") if state.started else None
    return jobs if isinstance(jobs, int) and jobs > 0 else 1


class Tally:
    """Counts that follow a run step by step; all moments on one clock, in seconds."""

    def __init__(self, steps: Iterable[str], jobs: int = 1, estimates: Estimates | None = None) -> None:
        self.running: dict[str, float] = {}  # step to the moment it started first
        self.total = self.done = 0
        self.reported: Mapping[str, tuple[float, str]] = {}
        self._estimates = estimates or Estimates()
        self._read_at: float | None = None
        self._last_forecast: tuple[tuple[int, int], float, float] | None = None
        self._jobs = jobs
        self._expected = self._estimates.expected
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
        """Estimated seconds until the end; None where no durations are known."""
        if self.done == self.total:
            return 0.0
        if self._estimates.reported is not None and (self._read_at is None or now - self._read_at >= AGE):
            self._read_at = now
            self.reported = self._estimates.reported(self.running)
        mean = self.average()
        if mean is None and (self._unknown or any(name not in self._expected for name in self.running)):
            if not self._expected:
                return None
            ordered = sorted(self._expected.values())
            mean = ordered[(len(ordered) - 1) // 2]
        mean = mean or 0.0
        active = {name: self._left(name, start, now, mean) for name, start in self.running.items()}
        if self._estimates.forecast is not None:
            return self._forecast(self._estimates.forecast, active, now, mean)
        rest = max(0.0, self._known) + self._unknown * mean + sum(active.values())
        return max(rest / min(self._jobs, self.total - self.done), max(active.values(), default=0.0))

    @property
    def eta_known(self) -> bool:
        """Whether there is an expectation for each step that is left, from earlier runs or from itself."""
        reported = {name for name, (share, _) in self.reported.items() if share >= RELIABLE_SHARE}
        return not self._unknown and all(name in self._expected or name in reported for name in self.running)

    def called(self, name: str) -> str:
        """A step with the progress that it reports: `build 42% linking`."""
        share, message = self.reported.get(name, (None, ""))
        return name if share is None else f"{name} {int(100 * share)}% {message}".rstrip()

    def _left(self, name: str, start: float, now: float, mean: float) -> float:
        """Seconds that a running step still takes; the more progress it reports, the more its report counts."""
        left = self._expected.get(name, mean) - (now - start)
        share = self.reported.get(name, (0.0, ""))[0]
        if share >= RELIABLE_SHARE and self._read_at is not None:
            by_itself = (self._read_at - start) * (1 - share) / share - (now - self._read_at)
            trust = share if name in self._expected else 1.0
            left = trust * by_itself + (1 - trust) * left
        return max(0.0, left)

    def _forecast(self, forecast: Forecast, active: Mapping[str, float], now: float, mean: float) -> float:
        """Ask for a forecast where something changed, and once in AGE seconds; in between time just passes."""
        place = (self.done, len(self.running))
        if (
            self._last_forecast is None
            or self._last_forecast[0] != place
            or now - self._last_forecast[1] >= AGE
        ):
            self._last_forecast = (place, now, forecast({**self._expected, **active}, mean))
        _, then, seconds = self._last_forecast
        return max(0.0, seconds - (now - then), max(active.values(), default=0.0))
