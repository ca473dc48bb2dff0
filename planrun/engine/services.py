"""Services in the loop: probed until they are ready, kept while others need them, then stopped.

Loaded with the first step that is one.
"""

from __future__ import annotations

from planrun.engine.reuse import restored
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.job import as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from planrun.engine.scheduler import Scheduler
    from planrun.model.job import Job, Outcome
    from planrun.model.plan import Step
    from planrun.model.progress import StepState

    Why = Literal["", "stopped", "not_ready", "paused"]

_BY_ITSELF = "it ended by itself"


class RunningService:
    """A service whose process runs; times are monotonic seconds.

    `needed`: steps that keep it going, those that have ended are taken off. `probe`: what tells that it is ready.
    """

    __slots__ = ("due", "is_open", "job", "needed", "probe", "until", "why")

    def __init__(self, job: Job, now: float, timeout: float) -> None:
        self.job = job
        self.probe: Job | None = job.following[0] if job.following else None
        self.due = now
        self.until = now + timeout
        self.is_open = False
        self.why: Why = ""  # for which it was told to end; empty: nobody has told it
        self.needed: list[str] = []


class Services:
    """The services of a run."""

    def __init__(self, run: Scheduler) -> None:
        self._run = run
        self._live: dict[str, RunningService] = {}
        self._probed: dict[str, str] = {}  # the service of each probe that runs
        self._kept: dict[str, list[str]] = {}  # steps that wait for a service to come back
        self._spared: set[str] = (
            set()
        )  # services that were ready to start when nothing was known to need them
        self._later: list[str] = []  # those of them that are looked at again when a step has ended
        self._plan = run.state.plan
        self._queue = run._queue

    @property
    def resting(self) -> int:
        """How many processes run that take no place of the others: services that are ready, and probes."""
        return len(self._probed) + sum(each.is_open and not each.why for each in self._live.values())

    @property
    def moment(self) -> float | None:
        """When something is due; None: nothing ever is."""
        waiting = [each for name, each in self._live.items() if not (each.is_open or each.why)]
        probed = set(self._probed.values())
        moments = [each.until for each in waiting]
        moments += [each.due for each in waiting if each.job.step not in probed]
        return min(moments, default=None)

    # Before a step starts.

    def withholds(self, step: Step) -> bool:
        """Say whether a step that could start must not: what it needs has ended since, or nothing needs it any more."""
        run, found = self._run, self._run.state.steps[step.id]
        if step.service is not None:
            is_spared = found.status == "pending" and self._is_spared(step)
            if self._is_left_over(step):
                run._queue.release(step.id)
                run._move(step.id, "completed", "stopped", "nothing is left that needs it")
                return True
            if is_spared:
                run._queue.release(step.id)
                self._later.append(step.id)
                self._spared.add(step.id)
                return True
        if found.status == "pending" and (run.state.resumed or self._spared) and self._misses(step):
            run._queue.release(step.id)
            return True
        ended = any([edge.kind == "open" and run.state.steps[edge.on].ended for edge in step.edges])  # noqa: C419 - half the time
        if not ended or not (found.status == "pending" or found.at_gate):
            return False
        if run._frontier.judge(step) == "satisfied":
            return False
        run._queue.release(step.id)
        if found.at_gate:
            run._move(step.id, "cancelled", "upstream", run._frontier.culprits(step))
        else:
            run._is_due(step)
        return True

    def _misses(self, step: Step) -> bool:
        """Whether a step needs a service that others needed before it, in an earlier process of the run."""
        run = self._run
        for name, service in run.state.steps.items():
            if service.step.service is None or service.opened or step.id not in self._users(service.step):
                continue
            if not service.ended:
                self._kept.setdefault(name, []).append(step.id)
                return True
            if service.status == "failed" and run.state.tolerance(name) is None:
                run._move(step.id, "blocked", "upstream", f"{name} failed ({service.reason})")
                return True
        return False

    def recall(self, name: str) -> None:
        """Have what waited for a service to come back looked at again."""
        self._run._frontier.loose.extend(self._kept.pop(name, ()))
        if self._later:
            self._run._frontier.loose.extend(self._later)
            self._later.clear()

    def _is_left_over(self, step: Step) -> bool:
        """Whether all that needs a service ended: in an earlier process of the run, or by earlier results."""
        states = self._run.state.steps
        users = self._users(step)
        rest = [states[name] for name in users if not states[name].ended]
        if not users or any(
            each.step.service is None or each.opened or not self._users(each.step) for each in rest
        ):
            return False
        return step.id in self._spared or any(
            states[name].status in ("completed", "failed") for name in users
        )

    def _is_spared(self, step: Step) -> bool:
        """Whether no step that needs a service has to run so far: all of them are cached.

        Those that wait for nothing but services take their earlier results here, before it starts.
        """
        run, states = self._run, self._run.state.steps
        users = self._users(step)
        if run.rooms.cache is None or not all(self._is_no_reason(states[name]) for name in users):
            return False
        waiting = [name for name in users if not states[name].ended and states[name].step.service is None]
        for name in waiting:  # those that depend on another come after it
            user = states[name].step
            unready = [edge for edge in user.edges if edge.kind == "open" and not self._is_up(edge.on)]
            if not run._frontier.waits_for(name, len(unready)) or not run._is_due(user):
                continue
            if not restored(run, user):
                return False
        return bool(users)

    def _is_no_reason(self, found: StepState) -> bool:
        """Whether a step that needs a service need not have it started: it ended, or may take an earlier result.

        Of a service that needs another those count that need it.
        """
        step = found.step
        if found.ended or (step.service is not None and self._users(step)):
            return True
        return step.cache is not None and found.status == "pending" and not found.tries

    def _is_up(self, name: str) -> bool:
        found = self._run.state.steps[name]
        return found.ended or found.opened is not None

    # The life of one.

    def begin(self, step: Step, job: Job) -> None:
        """Take note that the process of a service was started."""
        if step.id not in self._run.rooms.executor.running:  # the next wait says why
            return
        assert step.service is not None
        living = self._live[step.id] = RunningService(job, self._run._clock.monotonic(), step.service.timeout)
        living.needed = self._needed(step)
        if living.probe is None:
            self._open(step.id)

    def look(self) -> None:
        """Probe, open and stop what it is time for."""
        if not self._live:
            return
        if self._plan is not self._run.state.plan or self._queue is not self._run._queue:
            self._renew()
        now = self._run._clock.monotonic()
        for name, living in self._live.items():
            if living.why:
                continue
            if self._run.state.pausing and self._is_alone:
                self._stop(name, "paused")
            elif not living.is_open:
                self._await(name, living, now)
            elif self._is_unneeded(living):
                self._stop(name, "stopped")

    def finish(self, job: Job, outcome: Outcome) -> bool:
        """Take the end of a process that belongs to a service, its own or a probe's; False for any other one."""
        service = self._probed.pop(job.step, "")
        if service:
            self._probe_ended(service, job, outcome)
            return True
        step = self._run.state.steps[job.step].step
        if step.service is None:
            return False
        living = self._live.pop(job.step, None)
        for name in [name for name, of in self._probed.items() if of == job.step]:
            self._kill(name)
        if living and living.is_open and not living.why and self._is_unneeded(living):
            living.why = "stopped"  # it ended together with the last that needed it
        self._conclude(step, job, outcome, living)
        return True

    def _await(self, name: str, living: RunningService, now: float) -> None:
        if now >= living.until:
            self._stop(name, "not_ready")
        elif now >= living.due and living.probe is not None and living.probe.step not in self._running:
            probe = living.probe.but(timeout=living.until - now)
            self._probed[probe.step] = name
            self._run.rooms.executor.start(probe)

    def _probe_ended(self, name: str, job: Job, outcome: Outcome) -> None:
        living = self._live.get(name)
        step = self._run.state.steps[name].step
        if living is None or living.job.attempt != job.attempt or living.why or step.service is None:
            return
        if outcome.status == "completed":
            self._open(name)
        else:
            living.due = self._run._clock.monotonic() + step.service.interval

    def _open(self, name: str) -> None:
        run = self._run
        self._live[name].is_open = True
        run._emit(ev.StepOpened(at=run._clock.stamp(), step=name))
        run._frontier.release(name)
        run._queue.settle(name)
        self.recall(name)

    def _stop(self, name: str, why: Why) -> None:
        self._live[name].why = why
        self._run.rooms.executor.stop(name, "cancelled")

    def _kill(self, probe: str) -> None:
        """End a probe at once: what it would say counts for nothing any more."""
        for _ in range(2):
            if probe in self._running:
                self._run.rooms.executor.stop(probe, "cancelled")

    def _conclude(self, step: Step, job: Job, outcome: Outcome, living: RunningService | None) -> None:
        run = self._run
        outcome = _meaning(step, outcome, living)
        concluded = run.rooms.steps.conclude(step, job, outcome)
        if concluded.reason == "paused":
            run._queue.release(step.id)
            fields = as_fields(concluded, None) | {"step_status": "paused"}
            run._emit(ev.AttemptEnded(at=run._clock.stamp(), step=step.id, n=job.attempt, **fields))
        else:
            run._conclude(step, job.attempt, concluded)

    # Who needs it.

    @property
    def _running(self) -> tuple[str, ...]:
        return self._run.rooms.executor.running

    @property
    def _is_alone(self) -> bool:
        """Whether nothing runs but services and their probes."""
        return len(self._running) <= len(self._live) + len(self._probed)

    def _is_unneeded(self, living: RunningService) -> bool:
        states = self._run.state.steps
        while living.needed and states[living.needed[-1]].ended:
            living.needed.pop()
        return not living.needed

    def _needed(self, step: Step) -> list[str]:
        """Return what keeps a service going: its users or, where it has none, all that does not wait for it."""
        users = self._users(step)
        if users:
            return list(users)
        section = [each for each in self._run.state.plan.steps if each.section == step.section]
        waits = graph.waits(section)
        behind = graph.descendants(waits, [step.id])
        return [each.id for each in section if each.id not in behind and not self._is_idle(each)]

    def _is_idle(self, step: Step) -> bool:
        """Whether it is a service without users, too, or a group of nothing else: none of them waits for another."""
        if step.kind == "group":
            members = [each for each in self._run.state.plan.steps if each.group == step.id]
            return bool(members) and all(map(self._is_idle, members))
        return step.service is not None and not self._users(step)

    def _users(self, step: Step) -> dict[str, None]:
        """Return the steps that wait for a service to be ready, and all that depend on these by any edge."""
        section = [each for each in self._run.state.plan.steps if each.section == step.section]
        return users(section, step.id)

    def _renew(self) -> None:
        """Find out again who needs them: there is another plan, or another queue after a planning."""
        self._plan = self._run.state.plan
        for name, living in self._live.items():
            living.needed = self._needed(self._run.state.steps[name].step)
            if self._queue is not self._run._queue and living.is_open:
                self._run._queue.settle(name)
        self._queue = self._run._queue


def users(section: Iterable[Step], name: str) -> dict[str, None]:
    """Return the steps of a section that wait for a service to be ready, and all that depend on these by any edge."""
    after: dict[str, list[str]] = {}
    found: dict[str, None] = {}
    for step in section:
        for edge in step.edges:
            if edge.on == name and edge.kind == "open":
                found[step.id] = None
            after.setdefault(edge.on, []).append(step.id)
    waiting = list(found)
    for each in waiting:  # grows while it is walked
        fresh = [other for other in after.get(each, ()) if other not in found]
        found.update(dict.fromkeys(fresh))
        waiting += fresh
    return found


def _meaning(step: Step, outcome: Outcome, living: RunningService | None) -> Outcome:
    """Return what the end of a service's process means: it was told to end, or nobody wanted that."""
    why = living.why if living else ""
    if why == "stopped":
        return outcome.but(status="completed", reason="stopped", message="")
    if why == "paused":
        return outcome.but(status="cancelled", reason="paused", message="")
    if why == "not_ready":
        assert step.service is not None
        told = f"it was not ready after {step.service.timeout:g} s"
        return outcome.but(status="failed", reason="not_ready", message=told)
    if outcome.status == "completed" or (outcome.status == "failed" and outcome.reason == "exit"):
        when = "while others needed it" if living and living.is_open else "before it was ready"
        if outcome.message.startswith(_BY_ITSELF):  # of a record that is played again
            return outcome
        said = outcome.message or "exit code 0"
        return outcome.but(status="failed", reason="exit", message=f"{_BY_ITSELF} {when}: {said}")
    return outcome
