"""Services: probed until they are ready, kept running while other steps need them, then stopped.

Loaded with the first service of a run.
"""

from __future__ import annotations

from planrun.model import events as ev
from planrun.model import graph
from planrun.model.job import Outcome, as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from planrun.engine import RunContext
    from planrun.model.job import Job
    from planrun.model.plan import Step
    from planrun.model.progress import StepState

    Why = Literal["", "stopped", "not_ready", "paused"]

_UNEXPECTED_END = "it ended by itself"
_TOO_EARLY = (
    "`ready` passed before the service started: another server answers, or a file of an earlier run is left"
)
_ASK_LIMIT = 2.0  # seconds for `ready` to pass before the start; a command that waits by itself takes longer
_CONFIRM_AFTER = 0.2  # seconds between two probes that pass; a server without its port ends sooner


class RunningService:
    """A service whose process runs; times are monotonic seconds.

    `needed_by`: steps that keep it running; ended ones are removed from the end. `probe`: the job that checks
    readiness. `due`: when the next probe starts. `until`: when it must be ready. `passed`: the last probe passed.
    """

    __slots__ = ("due", "is_open", "job", "needed_by", "passed", "probe", "until", "why")

    def __init__(self, job: Job, now: float, timeout: float) -> None:
        self.job = job
        self.probe: Job | None = job.following[0] if job.following else None
        self.due = now
        self.until = now + timeout
        self.passed = self.is_open = False
        self.why: Why = ""  # the reason for which planrun stops it; empty: it does not
        self.needed_by: list[str] = []


class Services:
    """The services of a run."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._running_services: dict[str, RunningService] = {}
        self._probed: dict[str, str] = {}  # the service of each probe that runs
        self._asked: dict[str, tuple[Step, Job]] = {}  # what starts unless the probe of this name passes
        self._waiting_for: dict[str, list[str]] = {}  # steps that wait for a service to start again
        self._deferred: set[str] = (
            set()
        )  # services that could start while all steps that need them may be cached
        self._to_reevaluate: list[str] = []  # those of them to be evaluated again when a step ends
        self._plan = run.state.plan
        self._queue = run.queue

    @property
    def uncounted(self) -> int:
        """How many processes do not count for `jobs`: services that are ready, and probes."""
        return len(self._probed) + sum(
            each.is_open and not each.why for each in self._running_services.values()
        )

    @property
    def next_time(self) -> float | None:
        """When a probe or the end of a wait is due; None: nothing is."""
        waiting = [each for each in self._running_services.values() if not (each.is_open or each.why)]
        probed = set(self._probed.values())
        times = [each.until for each in waiting]
        times += [each.due for each in waiting if each.job.step not in probed]
        return min(times, default=None)

    # Before a step starts.

    def withholds(self, step: Step) -> bool:
        """Return True when a ready step must not start: a service it needs ended, or no step needs it (a service)."""
        run, step_state = self._run, self._run.state.steps[step.id]
        if step.service is not None:
            is_deferred = step_state.status == "pending" and self._is_deferred(step)
            if self._is_obsolete(step):
                run.queue.release(step.id)
                run.move(step.id, "completed", "stopped", "nothing is left that needs it")
                return True
            if is_deferred:
                run.queue.release(step.id)
                self._to_reevaluate.append(step.id)
                self._deferred.add(step.id)
                return True
        if (
            step_state.status == "pending"
            and (run.state.resumed or self._deferred)
            and self._lacks_service(step)
        ):
            run.queue.release(step.id)
            return True
        ended = any([edge.kind == "open" and run.state.steps[edge.on].ended for edge in step.edges])  # noqa: C419 - half the time
        if not ended or not (step_state.status == "pending" or step_state.at_gate):
            return False
        if run.frontier.judge(step.edges) == "satisfied":
            return False
        run.queue.release(step.id)
        if step_state.at_gate:
            run.move(step.id, "cancelled", "upstream", run.frontier.unsatisfied(step.edges))
        else:
            run.evaluate(step)
        return True

    def _lacks_service(self, step: Step) -> bool:
        """Whether a step needs a service that ran in an earlier process of the run and has to start again."""
        run = self._run
        for name, service in run.state.steps.items():
            if service.step.service is None or service.opened or step.id not in self._users(service.step):
                continue
            if not service.ended:
                self._waiting_for.setdefault(name, []).append(step.id)
                return True
            if service.status == "failed" and run.state.tolerance(name) is None:
                run.move(step.id, "blocked", "upstream", f"{name} failed ({service.reason})")
                return True
        return False

    def recall(self, name: str) -> None:
        """Evaluate again what waited for this step."""
        self._run.frontier.ready.extend(self._waiting_for.pop(name, ()))
        if self._to_reevaluate:
            self._run.frontier.ready.extend(self._to_reevaluate)
            self._to_reevaluate.clear()

    def _is_obsolete(self, step: Step) -> bool:
        """Whether every step that needs a service has ended: in an earlier process of the run, or from the cache."""
        states = self._run.state.steps
        users = self._users(step)
        rest = [states[name] for name in users if not states[name].ended]
        if not users or any(
            each.step.service is None or each.opened or not self._users(each.step) for each in rest
        ):
            return False
        return step.id in self._deferred or any(
            states[name].status in ("completed", "failed") for name in users
        )

    def _is_deferred(self, step: Step) -> bool:
        """Whether no step that needs a service has to run so far: all of them are cached.

        Steps that wait for services only are restored from the cache here, before the service starts.
        """
        run, states = self._run, self._run.state.steps
        users = self._users(step)
        if run.dependencies.cache is None or not all(self._may_be_restored(states[name]) for name in users):
            return False
        waiting = [name for name in users if not states[name].ended and states[name].step.service is None]
        for name in waiting:  # a step that depends on another one comes after it
            user = states[name].step
            unready = [edge for edge in user.edges if edge.kind == "open" and not self._is_up(edge.on)]
            if not run.frontier.waits_for(name, len(unready)) or not run.evaluate(user):
                continue
            if not run.restore(user):
                return False
        return bool(users)

    def _may_be_restored(self, user: StepState) -> bool:
        """Whether a step that needs a service has ended, or may complete from the cache.

        A service that needs this one does not count: the steps that need it do.
        """
        step = user.step
        if user.ended or (step.service is not None and self._users(step)):
            return True
        return step.cache is not None and user.status == "pending" and not user.tries

    def _is_up(self, name: str) -> bool:
        service = self._run.state.steps[name]
        return service.ended or service.opened is not None

    # From start to end.

    def start(self, step: Step, job: Job) -> None:
        """Start a service, unless `ready` passes before.

        In a container that does not exist yet nothing can be asked.
        """
        probe = job.following[0] if job.following else None
        if probe is None or not _is_run(probe) or job.container:
            self._begin(step, job)
            return
        assert step.service is not None
        # Under a name of its own: the probe of an attempt before may not have ended yet.
        name = f"{step.id}:before"
        self._asked[name] = step, job
        env, limit = {**probe.env, "PLANRUN_STEP": name}, min(_ASK_LIMIT, step.service.timeout)
        self._run.dependencies.executor.start(probe.but(step=name, env=env, timeout=limit))

    def _answered(self, step: Step, job: Job, outcome: Outcome) -> None:
        """Start a service that was not ready before its start."""
        if outcome.status == "completed":
            early = Outcome(status="failed", reason="not_ready", message=_TOO_EARLY)
            self._conclude(step, job, early, None)
        elif outcome.status == "cancelled" or not self._run.may_continue:
            self._conclude(step, job, Outcome(status="cancelled", reason="cancelled"), None)
        else:
            self._begin(step, job)

    def _begin(self, step: Step, job: Job) -> None:
        self._run.dependencies.executor.start(job)
        if step.id not in self._run.dependencies.executor.running:  # the next wait says why
            return
        assert step.service is not None
        running = self._running_services[step.id] = RunningService(
            job, self._run.clock.monotonic(), step.service.timeout
        )
        running.needed_by = self._needed_by(step)
        if running.probe is None:
            self._mark_open(step.id)

    def update(self) -> None:
        """Probe, open and stop the services for which it is time."""
        if not self._running_services:
            return
        if self._plan is not self._run.state.plan or self._queue is not self._run.queue:
            self._plan = self._run.state.plan
            for name, running in self._running_services.items():
                running.needed_by = self._needed_by(self._run.state.steps[name].step)
                if self._queue is not self._run.queue and running.is_open:
                    self._run.queue.settle(name)
            self._queue = self._run.queue
        now = self._run.clock.monotonic()
        for name, running in self._running_services.items():
            if running.why:
                continue
            if self._run.state.pausing and self._is_alone:
                self._stop(name, "paused")
            elif not running.is_open:
                if now >= running.until:
                    self._stop(name, "not_ready")
                elif (
                    now >= running.due
                    and running.probe is not None
                    and running.probe.step not in self._running
                ):
                    probe = running.probe.but(timeout=running.until - now)
                    self._probed[probe.step] = name
                    self._run.dependencies.executor.start(probe)
            elif self._is_unneeded(running):
                self._stop(name, "stopped")

    def finish(self, job: Job, outcome: Outcome) -> bool:
        """Handle the end of a service or a probe; False for any other process."""
        if job.step in self._asked:
            self._answered(*self._asked.pop(job.step), outcome)
            return True
        service = self._probed.pop(job.step, "")
        if service:
            self._probe_ended(service, job, outcome)
            return True
        step = self._run.state.steps[job.step].step
        if step.service is None:
            return False
        running = self._running_services.pop(job.step, None)
        for name in [name for name, of in self._probed.items() if of == job.step]:
            for _ in range(2):
                if name in self._running:
                    self._run.dependencies.executor.stop(name, "cancelled")
        if running and running.is_open and not running.why and self._is_unneeded(running):
            running.why = "stopped"  # it ended together with the last step that needed it
        self._conclude(step, job, outcome, running)
        return True

    def _probe_ended(self, name: str, job: Job, outcome: Outcome) -> None:
        running = self._running_services.get(name)
        step = self._run.state.steps[name].step
        if running is None or running.job.attempt != job.attempt or running.why or step.service is None:
            return
        pause, passed = step.service.interval, outcome.status == "completed"
        if passed and (running.passed or not _is_run(job)):
            self._mark_open(name)
            return
        if passed:  # another server may have answered while this one failed to start
            pause = min(_CONFIRM_AFTER, pause)
        running.passed = passed
        running.due = self._run.clock.monotonic() + pause

    def _mark_open(self, name: str) -> None:
        run = self._run
        self._running_services[name].is_open = True
        run.emit(ev.StepOpened(at=run.clock.stamp(), step=name))
        run.frontier.mark_open(name)
        run.queue.settle(name)
        self.recall(name)

    def _stop(self, name: str, why: Why) -> None:
        self._running_services[name].why = why
        self._run.dependencies.executor.stop(name, "cancelled")

    def _conclude(self, step: Step, job: Job, outcome: Outcome, running: RunningService | None) -> None:
        run = self._run
        outcome = _interpret(step, outcome, running)
        concluded = run.dependencies.steps.conclude(step, job, outcome)
        if concluded.reason == "paused":
            run.queue.release(step.id)
            fields = as_fields(concluded, None) | {"step_status": "paused"}
            run.emit(ev.AttemptEnded(at=run.clock.stamp(), step=step.id, n=job.attempt, **fields))
        else:
            run.conclude(step, job.attempt, concluded)

    # Which steps need it.

    @property
    def _running(self) -> tuple[str, ...]:
        return self._run.dependencies.executor.running

    @property
    def _is_alone(self) -> bool:
        """Whether nothing runs but services and their probes."""
        return len(self._running) <= len(self._running_services) + len(self._probed)

    def _is_unneeded(self, running: RunningService) -> bool:
        states = self._run.state.steps
        while running.needed_by and states[running.needed_by[-1]].ended:
            running.needed_by.pop()
        return not running.needed_by

    def _needed_by(self, step: Step) -> list[str]:
        """Return the steps that keep a service running: its users or, if it has none, all that do not wait for it."""
        users = self._users(step)
        if users:
            return list(users)
        section = [each for each in self._run.state.plan.steps if each.section == step.section]
        waits = graph.waits(section)
        behind = graph.descendants(waits, [step.id])
        return [each.id for each in section if each.id not in behind and not self._is_unused_service(each)]

    def _is_unused_service(self, step: Step) -> bool:
        """Whether a step is a service without users, or a group of such: none of these waits for another."""
        if step.kind == "group":
            members = [each for each in self._run.state.plan.steps if each.group == step.id]
            return bool(members) and all(map(self._is_unused_service, members))
        return step.service is not None and not self._users(step)

    def _users(self, step: Step) -> dict[str, None]:
        """Return the steps that wait for a service to be ready, and all their dependents."""
        section = [each for each in self._run.state.plan.steps if each.section == step.section]
        return users(section, step.id)


def users(section: Iterable[Step], name: str) -> dict[str, None]:
    """Return the steps of a section that wait for a service to be ready, and all their dependents."""
    after: dict[str, list[str]] = {}
    result: dict[str, None] = {}
    for step in section:
        for edge in step.edges:
            if edge.on == name and edge.kind == "open":
                result[step.id] = None
            after.setdefault(edge.on, []).append(step.id)
    waiting = list(result)
    for each in waiting:  # grows during the loop
        fresh = [other for other in after.get(each, ()) if other not in result]
        result.update(dict.fromkeys(fresh))
        waiting += fresh
    return result


def _is_run(probe: Job) -> bool:
    """Whether a probe is a command: in a replay it passes when the record says so."""
    return bool(probe.argv)


def _interpret(step: Step, outcome: Outcome, running: RunningService | None) -> Outcome:
    """Return the outcome of a service: planrun stopped its process, or it ended unexpectedly."""
    why = running.why if running else ""
    if why == "stopped":
        return outcome.but(status="completed", reason="stopped", message="")
    if why == "paused":
        return outcome.but(status="cancelled", reason="paused", message="")
    if why == "not_ready":
        assert step.service is not None
        message = f"it was not ready after {step.service.timeout:g} s"
        return outcome.but(status="failed", reason="not_ready", message=message)
    if outcome.status == "completed" or (outcome.status == "failed" and outcome.reason == "exit"):
        when = "while others needed it" if running and running.is_open else "before it was ready"
        if outcome.message.startswith(_UNEXPECTED_END):  # a replayed record
            return outcome
        detail = outcome.message or "exit code 0"
        return outcome.but(status="failed", reason="exit", message=f"{_UNEXPECTED_END} {when}: {detail}")
    return outcome
