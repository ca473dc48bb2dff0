"""The event loop of a run: start steps that fit, wait, handle ends, record events.

It also records the end of a run and of one whose records cannot be written: that code is loaded from the start, since
a disk that cannot be written may be one that cannot be read.
"""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
from _signal import SIGUSR1 as PAUSE

from planrun.engine.queue import Frontier, Queue, pop, push
from planrun.engine.termination import (
    cancel_pending,
    close_steps,
    enforce_deadline,
    interrupt,
    pause_run,
    request_pause,
    roll_back,
    skip_replaced,
    stop_all,
)
from planrun.errors import EXIT_RECORDS, EvaluationError, InternalError
from planrun.model import events as ev
from planrun.model.job import Outcome, as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.engine import Dependencies, Options
    from planrun.engine.services import Services
    from planrun.errors import RecordsLost
    from planrun.model.job import Job, Prepared
    from planrun.model.plan import Edge, Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

# A sync takes as long as a short step, so steps that end shortly after each other share one: the scheduler syncs when
# nothing has ended for SYNC_QUIET_PERIOD seconds, and at the latest SYNC_MAX_DELAY seconds after the last sync.
SYNC_QUIET_PERIOD = 0.005
SYNC_MAX_DELAY = 0.05


def due(timers: list[tuple[float, str]], now: float) -> list[str]:
    """Remove the steps that are due from the heap `timers` and return them in the order of their times."""
    names = []
    while timers and timers[0][0] <= now:
        names.append(pop(timers)[1])
    return names


def _has_failed(step_state: StepState) -> bool:
    """Whether an attempt in an earlier round of this run failed."""
    attempts = step_state.attempts[step_state.resumed :]
    return any([attempt.status == "failed" for attempt in attempts])  # noqa: C419 - as elsewhere


class Scheduler:
    """One run of a plan from `approved` to its verdict; `planrun.engine.RunContext` lists what helpers use."""

    def __init__(self, state: RunState, dependencies: Dependencies, options: Options) -> None:
        self.state = state
        self.dependencies = dependencies
        self.options = options
        self.clock = dependencies.clock
        self.section = "steps"
        self._started_at = self.clock.monotonic()
        self.section_start: float | None = self._started_at
        self.cleanup_until: float | None = None
        self.timers: list[tuple[float, str]] = []
        self.given_up = False
        self.frontier = Frontier((), state)
        self.queue = Queue((), "dag", 1, {})
        self._failures: list[str] = []  # of steps, under `levels`
        self.services: Services | None = None  # None: no service has started yet
        self._synced_records = -1  # how many records survive a power cut
        self._synced_at = self._started_at

    def run(self) -> int:
        """Run every step and return the exit code; on return nothing runs and everything is recorded."""
        try:
            self.emit(ev.PlanMoved(at=self.clock.stamp(), status="executing"))
            for section in ("steps", "rollback", "finally"):
                self._run_section(section)
                if section == "steps" and self.dependencies.again is not None:
                    from planrun.engine.rounds import run_rounds  # few runs go on by themselves

                    run_rounds(self)
                if self.state.pausing and self._is_unfinished:
                    return pause_run(self)
            return self._end()
        finally:
            self.dependencies.executor.close()

    # Sections.

    def _run_section(self, section: str) -> None:
        """Run a section; rollback and pending cleanup have conditions of their own."""
        if section == "rollback" and any([step.rollback for step in self.state.plan.steps]):  # noqa: C419 - half the time
            roll_back(self)
        elif section == "steps" and self.options.cleanup_only:
            close_steps(self)
        else:
            self.drive(section)

    @property
    def _is_unfinished(self) -> bool:
        """Whether a resumed run would have something to do."""
        return not all(step.ended for step in self.state.steps.values())

    def drive(self, section: str) -> None:
        """Run a section to its end, or until the run pauses or cannot be recorded."""
        steps = self.state.of_section(section)
        if not steps or self.lost is not None:
            return
        self.section, self.section_start = section, self.clock.monotonic()
        self.enter(steps)
        self.go_on()

    def go_on(self) -> None:
        """Run the section that was entered to its end, or until the run pauses or cannot be recorded."""
        while True:
            self._handle_signals()
            self.evaluate_ready()
            self._start_ready()
            if self.services:
                self.services.update()
            self.dependencies.journal.flush()
            if self._is_section_done():
                return  # the events of the next section, or of the end of the run, are synced together with these
            idle = self._is_idle
            ended = self._wait()
            if idle and not ended:  # an attempt that could not be started ends without having run
                raise InternalError(f"{self.frontier.open} steps can neither start nor end")
            for job, outcome in ended:
                self._handle_end(job, outcome)

    def rest(self, seconds: float) -> None:
        """Start nothing for a while, or until the run is ended or paused."""
        until = self.clock.monotonic() + seconds
        while self.state.ending is None and not self.state.pausing and self.lost is None:
            left = until - self.clock.monotonic()
            if left <= 0:
                return
            limit = self._wait_limit()
            self.dependencies.executor.wait(left if limit is None else min(left, limit))
            self._handle_signals()

    def enter(self, steps: Sequence[Step]) -> None:
        """Make frontier and queue of a section from the state, which may hold results of an earlier process."""
        self.frontier = Frontier(steps, self.state, self._unevaluated)
        self.queue = Queue(steps, self.options.schedule, self.options.jobs, self.options.seconds)
        self.queue.bind(steps, self.state.plan.limits.locks, self.dependencies.locks)
        for step in steps:
            step_state = self.state.steps[step.id]
            if step_state.ended:
                self.queue.settle(step.id)
            elif self._is_in_progress(step_state) and step.id not in self.state.replaced:
                self.queue.put_back(step.id)
        if self.state.resumed and any([step.service for step in steps]):  # noqa: C419 - half the time
            self._load_services()  # pending steps may need a service that has to start again first
        if self.state.replaced:
            skip_replaced(self, steps)

    @property
    def _unevaluated(self) -> Sequence[str]:
        """Steps that have ended and whose dependents are not evaluated yet."""
        return ()

    def _is_in_progress(self, step_state: StepState) -> bool:
        """Whether a step is between two attempts, or after the last one."""
        return step_state.status in ("paused", "waiting")

    def _is_section_done(self) -> bool:
        """Whether the section has ended or, when the run pauses, nothing runs any more."""
        if self.lost is not None:
            self.give_up(self.lost)
        elif not self.state.pausing:
            return not self.frontier.open
        if self.dependencies.executor.running:
            return False
        for job, outcome in self.dependencies.executor.wait(0):  # attempts that could not be started
            self._handle_end(job, outcome)
        self.dependencies.journal.flush()
        return self.lost is not None or self.state.pausing  # unless one of them aborted the run

    # Waiting.

    @property
    def _is_idle(self) -> bool:
        """Whether no process, timer or lock can make a step start or end."""
        return not self._occupied_jobs and not self.timers and not self.queue.held

    @property
    def _occupied_jobs(self) -> int:
        """How many running processes count for `jobs`; a service that is ready does not."""
        running = len(self.dependencies.executor.running)
        return running - self.services.uncounted if self.services else running

    def _wait(self) -> list[tuple[Job, Outcome]]:
        """Return the attempts that ended; empty when something else is due or was just synced."""
        limit = self._wait_limit()
        if self.dependencies.journal.records == self._synced_records:
            return self.dependencies.executor.wait(limit)
        if self.clock.monotonic() - self._synced_at > SYNC_MAX_DELAY:
            self.sync()  # now, while what was just started runs
        ended = self.dependencies.executor.wait(
            SYNC_QUIET_PERIOD if limit is None else min(SYNC_QUIET_PERIOD, limit)
        )
        if not ended:
            self.sync()
        return ended

    def _wait_limit(self) -> float | None:
        """How many seconds the loop may wait; None: without limit."""
        now = self.clock.monotonic()
        times = [self.timers[0][0]] if self.timers else []
        if self.queue.held:
            times.append(now + self.queue.retry_after)
        if self.services and (time := self.services.next_time) is not None:
            times.append(time)
        if self._section_deadline is not None:
            times.append(self._section_deadline)
        if self.cleanup_until is not None and self.cleanup_until > now:
            times.append(self.cleanup_until)
        for sink in self.dependencies.sinks:
            seconds = sink.tick()
            if seconds is not None:
                times.append(now + seconds)
        return max(0.0, min(times) - now) if times else None

    @property
    def _section_deadline(self) -> float | None:
        """When the section must end: `limits.deadline` for the steps, `limits.cleanup` for what follows them."""
        limits = self.state.plan.limits
        limit = limits.deadline if self.section == "steps" else limits.cleanup
        if limit is None or self.section_start is None or (self.state.ending and self.section == "steps"):
            return None
        return self.section_start + limit

    def _handle_signals(self) -> None:
        """Handle signals, the section's deadline, the end of the cleanup time and timers."""
        for signum in self.dependencies.inbox.take():
            (request_pause if signum == PAUSE else interrupt)(self, signum)
        if self.given_up:
            return
        now = self.clock.monotonic()
        if self._section_deadline is not None and now >= self._section_deadline:
            enforce_deadline(self)
        if self.cleanup_until is not None and now >= self.cleanup_until:
            # From now on nothing starts, in this section and the next, and what runs is killed.
            self.cleanup_until = now
            self.dependencies.executor.kill_all()
            cancel_pending(self, "cancelled")
        if self.timers:
            for name in (self.dependencies.due or due)(self.timers, now):
                self.queue.put_back(name)

    # From a ready step to an attempt.

    def evaluate_ready(self) -> None:
        """Evaluate every step whose edges are settled."""
        ready = self.frontier.ready
        ready += self.queue.postponed()
        while ready and self.lost is None:
            names, ready[:] = list(ready), []
            for name in names:
                step_state = self.state.steps[name]
                status = step_state.status
                if status == "pending" or (status == "running" and step_state.step.kind == "group"):
                    step = step_state.step
                    if step.kind == "group":
                        from planrun.engine.groups import evaluate_group  # few plans have any

                        evaluate_group(self, step)
                    elif self.evaluate(step):
                        self.queue.add(step.id)

    def evaluate(self, step: Step, edges: Sequence[Edge] | None = None) -> bool:
        """Evaluate edges, selection and condition of a step: True when it may start, else the step ends.

        This is the only place that ends a step without running it, short of the end of its run or group: what an
        edge says comes first, since a step that is left out or whose condition is false satisfies `ok`.
        """
        edges = step.edges if edges is None else edges
        judgement = self.frontier.judge(edges) if edges else ""
        if judgement == "blocked":
            self.move(step.id, "blocked", "upstream", self.frontier.unsatisfied(edges))
        elif judgement in ("approval", "tolerated"):
            self.move(step.id, "skipped", judgement, self.frontier.unsatisfied(edges))
        elif self.is_excluded(step):
            self.move(step.id, "skipped", step.left_out)
        elif judgement == "upstream":
            self.move(step.id, "skipped", judgement, self.frontier.unsatisfied(edges))
        else:
            return step.condition is None or self._is_condition_true(step)
        return False

    def is_excluded(self, step: Step) -> bool:
        """Whether a step is not among those that were selected."""
        selected = self.options.selected
        return selected is not None and step.id not in selected and not step.undoes

    def _is_condition_true(self, step: Step) -> bool:
        try:
            holds = self.dependencies.holds(step, self.state)
        except EvaluationError as error:
            self.move(step.id, "failed", "refused", f"its condition: {error}")
            return False
        if not holds:
            self.move(step.id, "skipped", "condition", step.condition_text)
        return holds

    def _start_ready(self) -> None:
        while self.lost is None and not self.state.pausing:
            name = self.queue.take(self._occupied_jobs, len(self.timers))
            for held, locks, message in self.queue.notices():
                self.emit(ev.StepHeld(at=self.clock.stamp(), step=held, lock=locks, message=message))
            if name is None:
                return
            step = self.state.steps[name].step
            if self._failures and (above := self._failed_above(step)):
                self.queue.release(name)
                self.move(name, "blocked", "upstream", f"an earlier level failed: {above}")
            elif (self.services or step.service) and self._load_services().withholds(step):
                pass
            elif step.cache is None or self.dependencies.cache is None or not self.restore(step):
                self._launch(step)
            self.evaluate_ready()

    def _failed_above(self, step: Step) -> str:
        """Return a failure in an earlier level after which no level starts; "" where a step may start.

        A step with an edge that accepts the failure, or that recovers it, is there to run after it; and a failure
        counts once its handlers had their levels.
        """
        above = self.queue.is_above
        for name in self._failures:
            accepts = any(edge.on == name and edge.kind in ("failed", "done") for edge in step.edges)
            if not above(name, step.id) or accepts or name in step.recovers or self.state.tolerance(name):
                continue
            handlers = [other.id for other in self.state.plan.steps if name in other.recovers]
            if all(above(handler, step.id) for handler in handlers):
                return name
        return ""

    def _load_services(self) -> Services:
        if self.services is None:
            from planrun.engine.services import Services  # few plans have any

            self.services = Services(self)
        return self.services

    def restore(self, step: Step) -> bool:
        """Complete a step with an earlier result of the cache; False when there is none."""
        cache = self.dependencies.cache
        if cache is None or self.state.steps[step.id].tries:
            return False
        fields = cache.find(step, self.state)
        if fields is None:
            return False
        self.queue.release(step.id)
        self.emit(ev.StepRestored(at=self.clock.stamp(), step=step.id, **fields))
        self.settle(step.id)
        return True

    def _launch(self, step: Step) -> None:
        attempt = len(self.state.steps[step.id].attempts) + 1
        self._start_attempt(step, attempt, self.dependencies.steps.prepare(step, attempt, self.state))

    def _start_attempt(self, step: Step, attempt: int, prepared: Prepared, **recorded: str) -> None:
        """Start an attempt; `recorded` are further fields of its AttemptStarted event."""
        job = prepared.job
        more: dict[str, Any] = (
            {**recorded, "sandbox": job.sandbox.recorded()} if job and job.sandbox else {**recorded}
        )
        self.emit(
            ev.AttemptStarted(
                at=self.clock.stamp(),
                step=step.id,
                n=attempt,
                fingerprint=prepared.fingerprint,
                log=f"logs/{step.folder or step.id}/{attempt}.log" if job else "",
                **more,
            )
        )
        if job is not None and not step.idempotent:
            self.sync()  # a resume after a power cut must know that it started
        if self.lost is not None:  # nothing runs whose start is not recorded
            self.conclude(step, attempt, Outcome(status="cancelled", reason="records"))
        elif job is not None:
            if step.hooks:
                from planrun.engine.hooked import in_order  # few plans have any

                job = in_order(job)
            if step.service:
                self._load_services().start(step, job)
            else:
                self.dependencies.executor.start(job)
        elif prepared.outcome is not None:
            self.conclude(step, attempt, prepared.outcome)

    # From the end of an attempt to the end of its step.

    def _handle_end(self, job: Job, outcome: Outcome) -> None:
        if self.services and self.services.finish(job, outcome):
            return
        step = self.state.steps[job.step].step
        concluded = self.dependencies.steps.conclude(step, job, outcome)
        following = job.following if self.may_continue else ()
        if following and step.hooks:
            from planrun.engine.hooked import next_jobs  # as above

            following = next_jobs(following, concluded)
        elif concluded.status != "completed":
            following = ()
        if following:
            first, *others = following
            self.dependencies.executor.start(first.but(following=tuple(others)))
        else:
            self.conclude(step, job.attempt, concluded)

    @property
    def may_continue(self) -> bool:
        """Whether an attempt may start its next process."""
        return self.lost is None and (self.state.ending is None or self.section != "steps")

    def conclude(self, step: Step, attempt: int, outcome: Outcome) -> None:
        """Record the end of an attempt; retry or end its step."""
        ending = self.state.ending
        why = ending.why if ending and self.section == "steps" else ""
        if outcome.status == "cancelled" and why in ("abort", "records"):
            outcome = outcome.but(reason=why)  # as for the steps that had not started
        self.queue.release(step.id)
        step_state = self.state.steps[step.id]
        tries, repeat = len(step_state.tries), ending is None and step_state.opened is None
        failure, seconds = None, None
        if outcome.status == "failed":
            from planrun.engine.failures import react

            failure, seconds = react(step, tries, outcome, repeat=repeat, draw=self.dependencies.chance)
        fields = as_fields(outcome, failure)
        if seconds is not None:
            fields |= {"step_status": "waiting", "delay": round(seconds, 3)}
        else:
            fields["step_status"] = outcome.status
            if outcome.status == "completed":
                repeated = tries > 1 or (self.state.rounds and _has_failed(step_state))
                fields["step_reason"] = "flaky" if repeated and outcome.reason == "ran" else outcome.reason
        # The start of what depends on it is written together with it.
        self.emit(ev.AttemptEnded(at=self.clock.stamp(), step=step.id, n=attempt, **fields), held=True)
        if seconds is not None:
            push(self.timers, (self.clock.monotonic() + seconds, step.id))
            return
        self.settle(step.id)
        if outcome.status == "failed":
            self.abort(step)

    def move(self, name: str, status: str, reason: str, message: str = "") -> None:
        """Record a status in which a step ends, and settle the step."""
        self.emit(
            ev.StepMoved(at=self.clock.stamp(), step=name, status=status, reason=reason, message=message)
        )
        self.settle(name)

    def settle(self, name: str) -> None:
        """Release what waits for the end of a step."""
        self.queue.settle(name)
        if (
            self.queue.schedule == "levels"
            and self.section == "steps"
            and self.state.steps[name].status == "failed"
        ):
            self._failures.append(name)
        self.frontier.settle(name)
        if self.services:
            self.services.recall(name)

    def abort(self, step: Step) -> None:
        """Stop the run or the group of a failed step if its settings require that."""
        if step.group:
            from planrun.engine.groups import fail_fast  # few plans have any

            fail_fast(self, step)
        aborts = self.state.steps[step.id].on_failure == "abort" and step.section == "steps"
        if aborts and self.state.ending is None:
            stop_all(self, "abort", "cancelled", step=step.id)

    # Records.

    @property
    def lost(self) -> RecordsLost | None:
        """The first record that could not be written; from then on nothing starts."""
        return self.dependencies.journal.lost or self.dependencies.executor.lost

    def emit(self, event: ev.Event, *, held: bool = False) -> None:
        """Apply an event to the state, append it to the ledger and pass it to the sinks.

        `held`: it is written with the next event, at the latest before the loop waits or the section ends.
        """
        dependencies = self.dependencies
        if dependencies.masks is not None:
            event = dependencies.masks.mask_event(event)
        self.state.apply(event)
        if held:
            dependencies.journal.hold(event)
        else:
            dependencies.journal.append(event)
        for sink in dependencies.sinks:
            sink.on_event(event, self.state)

    def sync(self) -> None:
        """Make every recorded event survive a power cut."""
        self.dependencies.journal.sync()
        self._synced_records = self.dependencies.journal.records
        self._synced_at = self.clock.monotonic()

    def give_up(self, lost: RecordsLost) -> None:
        """End the run because it cannot be recorded.

        Steps that have not started stay pending, for a resume: a record for each of them takes space that is missing.
        """
        if self.given_up:
            return
        self.given_up = True
        self.emit(ev.RunEnding(at=self.clock.stamp(), why="records", message=str(lost)))
        self.queue.clear()
        self.timers.clear()
        for name in self.dependencies.executor.running:
            self.dependencies.executor.stop(name, "cancelled")

    def _end(self) -> int:
        """Record the end of the run: verdict, exit code, outputs and step counts; return the exit code."""
        if self.lost is not None:
            self.give_up(self.lost)
        state, options = self.state, self.options
        verdict = state.verdict()
        more: dict[str, Any] = {}
        if state.plan.outputs and self.lost is None and verdict in ("completed", "partial"):
            outputs, message = self.dependencies.steps.plan_outputs(state)
            if outputs:
                more["outputs"] = outputs
            # Outputs of steps that were not selected are absent on purpose.
            if message and options.selected is None:
                more["message"], verdict = message, "failed"
        code = EXIT_RECORDS
        if self.lost is None:
            code = state.exit_code(verdict, strict=options.strict, fail_on_flaky=options.fail_on_flaky)
        self.emit(
            ev.RunEnded(
                at=self.clock.stamp(),
                status="completed" if verdict == "partial" else verdict,
                verdict=verdict,
                exit_code=code,
                duration=round(self.clock.monotonic() - self._started_at, 3),
                summary=state.summary(),
                events=self.dependencies.journal.records + 1,
                **more,
            )
        )
        self.sync()
        return code if self.lost is None else EXIT_RECORDS
