"""The one loop: start what fits, wait, reap, record; everything a run does goes through here.

The end of an attempt, of a run, and of one that cannot be recorded any more.

Every run loads it, so that no disk is needed then.
"""

from __future__ import annotations

from _signal import SIGUSR1 as PAUSE

from planrun.engine.queue import Frontier, Options, Queue, pop, push
from planrun.errors import EXIT_RECORDS, EvaluationError, InternalError
from planrun.model import events as ev
from planrun.model.job import Outcome, as_fields
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from planrun.engine.services import Services
    from planrun.errors import RecordsLost
    from planrun.model.job import Job, Outcome, Prepared
    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Cache, Clock, Executor, Inbox, Journal, Locks, Masks, Sink, StepRunner

# `_signal` and not `signal`, whose enums take 4 ms to import.


__all__ = ["Dependencies", "Options", "Scheduler"]

# A sync takes as long as a short step. So steps that end one right after the other share one: it waits until nothing
# has ended for LULL seconds, while steps go on ending for at most UNSYNCED seconds since the last one.
SYNC_QUIET_PERIOD = 0.005
SYNC_MAX_DELAY = 0.05


class Dependencies(Record):
    """The implementations a scheduler works with."""

    executor: Executor
    steps: StepRunner
    journal: Journal
    sinks: Sequence[Sink]
    clock: Clock
    inbox: Inbox
    holds: Callable[[Step, RunState], bool]  # evaluates a condition; raises EvaluationError
    masks: Masks | None = None  # None: there is nothing to mask
    chance: Callable[[], float] | None = None  # places a delay in its jitter, 0…1; None: chance
    locks: Locks | None = None  # of this host; None: no step has any
    cache: Cache | None = None  # None: no step is cached
    due: Callable[[list[tuple[float, str]], float], list[str]] | None = (
        None  # as `due` below, which is used for None
    )


def due(waiting: list[tuple[float, str]], now: float) -> list[str]:
    """Take the steps whose next attempt is due out of the heap `waiting`, in the order of their moments."""
    names = []
    while waiting and waiting[0][0] <= now:
        names.append(pop(waiting)[1])
    return names


class Scheduler:
    """One run of a plan from `approved` to its verdict."""

    def __init__(self, state: RunState, rooms: Dependencies, options: Options) -> None:
        self.state = state
        self.rooms = rooms
        self.options = options
        self._clock = rooms.clock
        self._began = self._clock.monotonic()
        self._entered: float | None = self._began  # the section; None: its time is over
        self._waiting: list[tuple[float, str]] = []  # (when the next attempt is due, step)
        self._cleanup_until: float | None = None
        self._given_up = False  # because of what is lost
        self._section = "steps"
        self.services: Services | None = None  # None: none has come up yet
        self._synced = -1  # how many records survive a power cut
        self._synced_at = self._began
        self._frontier = Frontier((), state)
        self._queue = Queue((), "dag", 1, {})

    def run(self) -> int:
        """Run every step and return the exit code; on return nothing runs and everything is recorded."""
        try:
            self._emit(ev.PlanMoved(at=self._clock.stamp(), status="executing"))
            for section in ("steps", "rollback", "finally"):
                self._pass(section)
                if self.state.pausing and self._is_unfinished:
                    from planrun.engine.termination import rest

                    return rest(self)
            return end(self)
        finally:
            self.rooms.executor.close()

    def _pass(self, section: str) -> None:
        """Drive a section; the first one of a run that only catches up is left, and few runs undo anything."""
        if section == "rollback" and any([step.rollback for step in self.state.plan.steps]):  # noqa: C419 - half the time
            from planrun.engine.termination import roll_back

            roll_back(self)
        elif section == "steps" and self.options.catches_up:
            from planrun.engine.termination import close_steps

            close_steps(self)
        else:
            self._drive(section)

    @property
    def _is_unfinished(self) -> bool:
        """Whether something is left for whoever goes on with the run when it is paused."""
        return not all(step.ended for step in self.state.steps.values())

    @property
    def lost(self) -> RecordsLost | None:
        """What could not be written; from then on nothing starts."""
        return self.rooms.journal.lost or self.rooms.executor.lost

    def _emit(self, event: ev.Event) -> None:
        if self.rooms.masks is not None:
            event = self.rooms.masks.mask_event(event)
        self.state.apply(event)
        self.rooms.journal.append(event)
        for sink in self.rooms.sinks:
            sink.on_event(event, self.state)

    def _drive(self, section: str) -> None:
        steps = self.state.of_section(section)
        if not steps or self.lost is not None:
            return
        self._section, self._entered = section, self._clock.monotonic()
        self._enter(steps)
        while True:
            self._heed()
            self._look()
            self._start()
            if self.services:
                self.services.look()
            if self._over():
                return  # what comes next in any case, cleanup or the end, is synced together with this
            idle = self._is_idle
            ended = self._await()
            if idle and not ended:  # what could not be started ends without ever having run
                raise InternalError(f"{self._frontier.open} steps can neither start nor end")
            for job, outcome in ended:
                self._finish(job, outcome)

    def _enter(self, steps: Sequence[Step]) -> None:
        """Make frontier and queue of a section from the state, whatever has happened in it before."""
        self._frontier = Frontier(steps, self.state, self._unjudged)
        self._queue = Queue(steps, self.options.schedule, self.options.jobs, self.options.seconds)
        self._queue.bind(steps, self.state.plan.limits.locks, self.rooms.locks)
        for step in steps:
            found = self.state.steps[step.id]
            if found.ended:
                self._queue.settle(step.id)
            elif self._goes_on(found) and step.id not in self.state.replaced:
                self._queue.put_back(step.id)
        if self.state.resumed and any([step.service for step in steps]):  # noqa: C419 - half the time
            self._serving()  # what is left of a run may need one that has to come back first
        if self.state.replaced or self.options.selected is not None:
            from planrun.engine.termination import leave_out  # few runs are about a part of their plan

            leave_out(self, steps)

    @property
    def _unjudged(self) -> Sequence[str]:
        """Steps that have ended and whose dependents nobody looks at yet."""
        return ()

    def _goes_on(self, found: StepState) -> bool:
        """Whether a step is between two attempts, or after the last one."""
        return found.status in ("paused", "waiting")

    @property
    def _is_idle(self) -> bool:
        """Whether nothing goes on that could have a step start or end."""
        return not self._working and not self._waiting and not self._queue.held

    @property
    def _working(self) -> int:
        """How many processes run that take a place; a service takes none once it is ready."""
        running = len(self.rooms.executor.running)
        return running - self.services.resting if self.services else running

    def _serving(self) -> Services:
        if self.services is None:
            from planrun.engine.services import Services  # few plans have any

            self.services = Services(self)
        return self.services

    def _over(self) -> bool:
        """Whether this section has come to its end or, when the run is to pause, to rest."""
        if self.lost is not None:
            self._give_up(self.lost)
        elif not self.state.pausing:
            return not self._frontier.open
        if self.rooms.executor.running:
            return False
        for job, outcome in self.rooms.executor.wait(0):  # what could not be started
            self._finish(job, outcome)
        return self.lost is not None or self.state.pausing  # unless that aborted the run

    def _await(self) -> list[tuple[Job, Outcome]]:
        """Return what ended; empty when something else is due, or was just synced."""
        patience = self._patience()
        if self.rooms.journal.records == self._synced:
            return self.rooms.executor.wait(patience)
        ended = self.rooms.executor.wait(
            SYNC_QUIET_PERIOD if patience is None else min(SYNC_QUIET_PERIOD, patience)
        )
        if not ended or self._clock.monotonic() - self._synced_at > SYNC_MAX_DELAY:
            self._sync()
        return ended

    def _sync(self) -> None:
        self.rooms.journal.sync()
        self._synced = self.rooms.journal.records
        self._synced_at = self._clock.monotonic()

    def _patience(self) -> float | None:
        """How many seconds the loop may sleep."""
        now = self._clock.monotonic()
        moments = [self._waiting[0][0]] if self._waiting else []
        if self._queue.held:
            moments.append(now + self._queue.patience)
        if self.services and (moment := self.services.moment) is not None:
            moments.append(moment)
        if self._deadline is not None:
            moments.append(self._deadline)
        if self._cleanup_until is not None and self._cleanup_until > now:
            moments.append(self._cleanup_until)
        for sink in self.rooms.sinks:
            seconds = sink.tick()
            if seconds is not None:
                moments.append(now + seconds)
        return max(0.0, min(moments) - now) if moments else None

    @property
    def _deadline(self) -> float | None:
        """When the section is to be over; what comes after the steps has a time of its own."""
        limits = self.state.plan.limits
        limit = limits.deadline if self._section == "steps" else limits.cleanup
        if limit is None or self._entered is None or (self.state.ending and self._section == "steps"):
            return None
        return self._entered + limit

    def _heed(self) -> None:
        """React to signals, to a passed deadline and to the end of the time for cleanup."""
        for signum in self.rooms.inbox.take():
            from planrun.engine.termination import interrupt, pause

            (pause if signum == PAUSE else interrupt)(self, signum)
        if self._given_up:
            return
        now = self._clock.monotonic()
        if self._deadline is not None and now >= self._deadline:
            from planrun.engine.termination import overdue

            overdue(self)
        if self._cleanup_until is not None and now >= self._cleanup_until:
            # From now on nothing starts, in this section and the next, and what runs is killed.
            self._cleanup_until = now
            self.rooms.executor.kill_all()
            from planrun.engine.termination import cancel_pending

            cancel_pending(self, "cancelled")
        if self._waiting:
            for name in (self.rooms.due or due)(self._waiting, now):
                self._queue.put_back(name)

    def _look(self) -> None:
        """Decide about every step whose edges are settled."""
        loose = self._frontier.loose
        loose += self._queue.postponed()
        while loose and self.lost is None:
            names, loose[:] = list(loose), []
            for name in names:
                found = self.state.steps[name]
                if found.status == "pending" or (found.status == "running" and found.step.kind == "group"):
                    self._decide(name)

    def _decide(self, name: str) -> None:
        step = self.state.steps[name].step
        if step.kind == "group":
            from planrun.engine.groups import decide  # few plans have any

            decide(self, step)
        elif self._is_due(step):
            self._queue.add(name)

    def _is_due(self, step: Step) -> bool:
        """Whether edges and condition let a step go on; it ends when they do not."""
        found = self._frontier.judge(step) if step.edges else ""
        if found == "blocked":
            self._move(step.id, "blocked", "upstream", self._frontier.culprits(step))
        elif found in ("approval", "tolerated", "upstream"):
            self._move(step.id, "skipped", found, self._frontier.culprits(step))
        else:
            return step.condition is None or self._holds(step)
        return False

    def _holds(self, step: Step) -> bool:
        try:
            holds = self.rooms.holds(step, self.state)
        except EvaluationError as error:
            self._move(step.id, "failed", "refused", f"its condition: {error}")
            return False
        if not holds:
            self._move(step.id, "skipped", "condition", step.condition_text)
        return holds

    def _start(self) -> None:
        while self.lost is None and not self.state.pausing:
            name = self._queue.take(self._working, len(self._waiting))
            for held, locks, told in self._queue.notices():
                self._emit(ev.StepHeld(at=self._clock.stamp(), step=held, lock=locks, message=told))
            if name is None:
                return
            step = self.state.steps[name].step
            if (self.services or step.service) and self._serving().withholds(step):
                pass
            elif step.cache is None or self.rooms.cache is None or not self._is_restored(step):
                self._launch(step)
            self._look()

    def _is_restored(self, step: Step) -> bool:
        from planrun.engine.reuse import restored  # few steps are cached

        return restored(self, step)

    def _launch(self, step: Step) -> None:
        attempt = len(self.state.steps[step.id].attempts) + 1
        self._begin(step, attempt, self.rooms.steps.prepare(step, attempt, self.state))

    def _begin(self, step: Step, attempt: int, prepared: Prepared, **recorded: str) -> None:
        """Start an attempt; `recorded` are more fields of the event that says so."""
        job = prepared.job
        self._emit(
            ev.AttemptStarted(
                at=self._clock.stamp(),
                step=step.id,
                n=attempt,
                fingerprint=prepared.fingerprint,
                log=f"logs/{step.folder or step.id}/{attempt}.log" if job else "",
                **recorded,
            )
        )
        if job is not None and not step.idempotent:
            self._sync()  # after a power cut nobody may believe it never started
        if self.lost is not None:  # nothing runs whose start is not on record
            self._conclude(step, attempt, Outcome(status="cancelled", reason="records"))
        elif job is not None:
            self.rooms.executor.start(job)
            if step.service:
                self._serving().begin(step, job)
        elif prepared.outcome is not None:
            self._conclude(step, attempt, prepared.outcome)

    def _finish(self, job: Job, outcome: Outcome) -> None:
        if self.services and self.services.finish(job, outcome):
            return
        step = self.state.steps[job.step].step
        concluded = self.rooms.steps.conclude(step, job, outcome)
        if job.following and concluded.status == "completed" and self._is_open:
            first, *others = job.following
            self.rooms.executor.start(first.but(following=tuple(others)))
        else:
            self._conclude(step, job.attempt, concluded)

    @property
    def _is_open(self) -> bool:
        """Whether what an attempt began may still go on."""
        return self.lost is None and (self.state.ending is None or self._section != "steps")

    def _conclude(self, step: Step, attempt: int, outcome: Outcome) -> None:
        """Record the end of an attempt and what it makes of its step."""
        conclude(self, step, attempt, outcome)

    def _abort(self, step: Step) -> None:
        """End the run, or the other members of its group, when that is what the failure of a step means."""
        if step.group:
            from planrun.engine.groups import fail_fast  # few plans have any

            fail_fast(self, step)
        aborts = self.state.steps[step.id].on_failure == "abort" and step.section == "steps"
        if aborts and self.state.ending is None:
            from planrun.engine.termination import stop_all

            stop_all(self, "abort", "cancelled", step=step.id)

    def _move(self, name: str, status: str, reason: str, message: str = "") -> None:
        self._emit(
            ev.StepMoved(at=self._clock.stamp(), step=name, status=status, reason=reason, message=message)
        )
        self._settle(name)

    def _settle(self, name: str) -> None:
        self._queue.settle(name)
        self._frontier.settle(name)
        if self.services:
            self.services.recall(name)

    def _give_up(self, lost: RecordsLost) -> None:
        give_up(self, lost)


def conclude(run: Scheduler, step: Step, attempt: int, outcome: Outcome) -> None:
    """Record the end of an attempt and what it makes of its step."""
    ending = run.state.ending
    why = ending.why if ending and run._section == "steps" else ""
    if outcome.status == "cancelled" and why in ("abort", "records"):
        outcome = outcome.but(reason=why)  # as for the steps that had not started
    run._queue.release(step.id)
    found = run.state.steps[step.id]
    tries, fresh = len(found.tries), ending is None and found.opened is None
    failure, seconds = None, None
    if outcome.status == "failed":
        from planrun.engine.failures import react

        failure, seconds = react(step, tries, outcome, repeat=fresh, draw=run.rooms.chance)
    fields = as_fields(outcome, failure)
    if seconds is not None:
        fields |= {"step_status": "waiting", "delay": round(seconds, 3)}
    else:
        fields["step_status"] = outcome.status
        if outcome.status == "completed":
            fields["step_reason"] = "flaky" if tries > 1 and outcome.reason == "ran" else outcome.reason
    run._emit(ev.AttemptEnded(at=run._clock.stamp(), step=step.id, n=attempt, **fields))
    if seconds is not None:
        push(run._waiting, (run._clock.monotonic() + seconds, step.id))
        return
    run._settle(step.id)
    if outcome.status == "failed":
        run._abort(step)


def give_up(run: Scheduler, lost: RecordsLost) -> None:
    """Have the run end because it cannot be recorded.

    What has not started stays as it is, for a resume: to say so of each step takes room that is not there. It is
    here because a disk that cannot be written may be one that cannot be read.
    """
    if run._given_up:
        return
    run._given_up = True
    run._emit(ev.RunEnding(at=run._clock.stamp(), why="records", message=str(lost)))
    run._queue.clear()
    run._waiting.clear()
    for name in run.rooms.executor.running:
        run.rooms.executor.stop(name, "cancelled")


def end(run: Scheduler) -> int:
    """Record the end of a run: verdict, exit code and what became of its steps; returns the exit code."""
    if run.lost is not None:
        give_up(run, run.lost)
    state = run.state
    verdict = state.verdict()
    more: dict[str, Any] = {}
    if state.plan.outputs and run.lost is None and verdict in ("completed", "partial"):
        outputs, message = run.rooms.steps.plan_outputs(state)
        if outputs:
            more["outputs"] = outputs
        # Outputs of steps that the caller left out are absent on purpose.
        if message and run.options.selected is None:
            more["message"], verdict = message, "failed"
    code = EXIT_RECORDS
    if run.lost is None:
        wishes = run.options
        code = state.exit_code(verdict, strict=wishes.strict, fail_on_flaky=wishes.fail_on_flaky)
    run._emit(
        ev.RunEnded(
            at=run._clock.stamp(),
            status="completed" if verdict == "partial" else verdict,
            verdict=verdict,
            exit_code=code,
            duration=round(run._clock.monotonic() - run._began, 3),
            summary=state.summary(),
            events=run.rooms.journal.records + 1,
            **more,
        )
    )
    run._sync()
    return code if run.lost is None else EXIT_RECORDS
