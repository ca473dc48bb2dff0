"""A world in which steps end as the test says, at once and without processes: ports of the engine, implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planrun.engine import Dependencies, Options
from planrun.engine.gated import GatedScheduler, ReplanningScheduler
from planrun.engine.scheduler import Scheduler
from planrun.model import events as ev
from planrun.model.job import Job, Outcome, Prepared
from planrun.model.plan import Edge, Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from planrun.errors import RecordsLost
    from planrun.ports import Gates, Replanner

PASS = Outcome(status="completed", reason="ran", exit_code=0)
FAIL = Outcome(status="failed", reason="exit", exit_code=1, message="exit code 1")


def step(name: str, *edges: tuple[str, str], **fields: Any) -> Step:
    """Make a step; `edges` are (on, kind) pairs."""
    links = tuple(Edge(on=on, kind=kind) for on, kind in edges)  # type: ignore[arg-type]
    return Step(id=name, action=Run(script="true"), kind="run", edges=links, **fields)


def plan(steps: Iterable[Step], **fields: Any) -> Plan:
    """Make a plan of steps."""
    return Plan(name="test", file="plan.yml", digest="0" * 64, steps=tuple(steps), **fields)


class FakeClock:
    """A clock that only `World.wait` moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def stamp(self) -> str:
        return f"2026-01-01T00:00:00.{int(self.now * 10) % 1000:03d}Z"

    def monotonic(self) -> float:
        return self.now


class World:
    """Executor, step runner, journal and inbox in one; `outcomes` gives each step its results in order.

    A number instead of an outcome: how many seconds the attempt takes before it passes. `db:before`: how the probe of
    the service `db` ends before its start; it fails where nothing is given.
    """

    def __init__(self, outcomes: dict[str, Sequence[Outcome | float]] | None = None) -> None:
        self.outcomes = {name: list(found) for name, found in (outcomes or {}).items()}
        self.clock = FakeClock()
        self.started: list[str] = []
        self.peak = 0
        self.together: list[tuple[str, ...]] = []
        self.events: list[ev.Event] = []
        self.held: list[ev.Event] = []
        self.signals: list[tuple[float, int]] = []
        self.conditions: dict[str, Callable[[RunState], bool]] = {}
        self.openings: dict[str, dict[str, Any]] = {}
        self.outputs_of: dict[str, dict[str, Any]] = {}
        self.stopped: dict[str, str] = {}
        self._live: dict[str, tuple[Job, float, Outcome]] = {}
        self.gates: Gates | None = None
        self.planner: Replanner | None = None
        self.closed = False
        self.lost: RecordsLost | None = None

    # Journal
    @property
    def records(self) -> int:
        return len(self.events) + len(self.held)

    def append(self, event: ev.Event) -> None:
        self.hold(event)
        self.flush()

    def hold(self, event: ev.Event) -> None:
        self.held.append(event)

    def flush(self) -> None:
        self.events += self.held
        self.held = []

    def sync(self) -> None:
        self.flush()

    # Inbox
    def take(self) -> list[int]:
        due = [number for at, number in self.signals if at <= self.clock.now]
        self.signals = [(at, number) for at, number in self.signals if at > self.clock.now]
        return due

    # Step runner
    def prepare(self, step: Step, attempt: int, _state: RunState) -> Prepared:
        job = Job(
            step=step.id, attempt=attempt, argv=("true",), env={}, cwd="/", log="", timeout=step.timeout
        )
        if step.service is not None and step.verify:
            job = job.but(following=(job.but(step=f"{step.id}:ready"),))
        return Prepared(fingerprint="f", job=job)

    def conclude(self, _step: Step, _job: Job, outcome: Outcome) -> Outcome:
        return outcome

    def opening(self, group: Step, _state: RunState) -> dict[str, Any]:
        return self.openings.get(group.id, {})

    def gathered(self, group: Step, _state: RunState) -> dict[str, Any]:
        return self.outputs_of.get(group.id, {})

    def plan_outputs(self, _state: RunState) -> tuple[dict[str, Any], str]:
        return {}, ""

    # Executor
    @property
    def running(self) -> tuple[str, ...]:
        return tuple(self._live)

    def start(self, job: Job) -> None:
        script = self.outcomes.get(job.step) or [FAIL if job.step.endswith(":before") else PASS]
        result = script.pop(0) if len(script) > 1 else script[0]
        takes, outcome = (result, PASS) if isinstance(result, float) else (0.0, result)
        self.started.append(job.step)
        self._live[job.step] = (job, self.clock.now + takes, outcome)
        self.peak = max(self.peak, len(self._live))
        self.together.append(tuple(sorted(self._live)))

    def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        moments = [end for _, end, _ in self._live.values()] + [at for at, _ in self.signals]
        if timeout is not None:
            moments.append(self.clock.now + timeout)
        self.clock.now = max(self.clock.now, min(moments))
        over = [name for name, (_, end, _) in self._live.items() if end <= self.clock.now][:1]
        ended = [(self._live[name][0], self._live.pop(name)[2]) for name in over]
        return [(job, self._ending(job, outcome)) for job, outcome in ended]

    def _ending(self, job: Job, outcome: Outcome) -> Outcome:
        reason = self.stopped.pop(job.step, "")
        if not reason:
            return outcome
        status = "failed" if reason == "timeout" else "cancelled"
        return Outcome(status=status, reason=reason, exit_code=143)  # type: ignore[arg-type]

    def attend(self) -> None:
        pass

    def output(self, _step: str, _start: int, _size: int) -> bytes | None:
        return None

    def stop(self, step: str, reason: str) -> None:
        self.stopped[step] = reason
        job, _, outcome = self._live[step]
        self._live[step] = (job, self.clock.now, outcome)

    def signal_all(self, _signum: int) -> None:
        for name in list(self._live):
            self.stop(name, "cancelled")

    def kill_all(self) -> None:
        self.signal_all(9)

    def close(self) -> None:
        self.closed = True

    # The run
    def run(self, of: Plan, **options: Any) -> tuple[RunState, int]:
        """Run a plan to its end and return its state and exit code."""
        state = RunState(of)
        self.replay_into(state)
        return state, self.go_on(state, **options)

    def go_on(self, state: RunState, **options: Any) -> int:
        """Run what is pending of a run and return the exit code."""
        locks = options.pop("locks", None)
        fields: dict[str, Any] = {"jobs": 4, "schedule": state.plan.schedule, **options}
        dependencies = Dependencies(
            executor=self,
            steps=self,
            journal=self,
            sinks=(),
            clock=self.clock,
            inbox=self,
            holds=lambda step, state: self.conditions[step.id](state),
            locks=locks,
        )
        if self.gates is None:
            return Scheduler(state, dependencies, Options(**fields)).run()
        if self.planner is None:
            return GatedScheduler(state, dependencies, Options(**fields), self.gates).run()
        return ReplanningScheduler(state, dependencies, Options(**fields), self.gates, self.planner).run()

    def replay_into(self, state: RunState) -> None:
        """Bring a new run to `approved`."""
        for status in ("awaiting_approval", "approved"):
            event = ev.PlanMoved(at=self.clock.stamp(), status=status)
            state.apply(event)
            self.append(event)
