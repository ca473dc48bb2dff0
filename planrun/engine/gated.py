"""Runs in which a step may wait for an approval, an answer or a decision, and runs that a model may replan."""

from __future__ import annotations

from planrun.engine.failures import classify, react
from planrun.engine.queue import push
from planrun.engine.scheduler import Scheduler
from planrun.engine.termination import cancel_pending
from planrun.model import events as ev
from planrun.model.job import Outcome, as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.engine import Dependencies, Options
    from planrun.model.job import Passage, Prepared
    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Gates, Replanner

POLL_INTERVAL = 0.25
"""Seconds between two polls for replies while the run continues."""


class GatedScheduler(Scheduler):
    """A run in which `gates` decide whether a step may start.

    A step that waits at its gate releases its job slot. When only such steps are left, the run pauses with exit code
    5; before that it waits for gates that have a timeout, and as long as it asks a person at its terminal.
    """

    def __init__(self, state: RunState, dependencies: Dependencies, options: Options, gates: Gates) -> None:
        super().__init__(state, dependencies, options)
        self._gates = gates
        self._held: dict[str, Passage] = {}  # steps that wait at their gates

    def _launch(self, step: Step) -> None:
        """Judge and start a step; its process is prepared first, so that the gate judges exactly what will run."""
        if self._has_failed(step):
            self._resolve(step)
            return
        attempt = len(self.state.steps[step.id].attempts) + 1
        prepared = None
        if step.action.starts_process:
            prepared = self._only_kept(step, self.dependencies.steps.prepare(step, attempt, self.state))
            if prepared.job is None:  # it cannot run, with or without approval
                self._start_attempt(step, attempt, prepared)
                return
        passage = self._gates.judge(step, self.state, prepared.job if prepared else None)
        if passage.answer == "ask" and (step.undoes or not self.options.asks):  # no one can answer
            why = f"no approval was given beforehand: {passage.reason}"
            passage = passage.but(answer="deny", opened=None, reason=why)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self.emit(event)
        if passage.answer == "ask":
            self._hold(step, passage)
        elif passage.answer == "deny":
            self._refuse(step, passage)
        elif passage.answer == "skip":
            self.queue.release(step.id)
            self.move(step.id, "skipped", "approval", passage.reason)
        else:
            self._admit(step, attempt, prepared, passage)

    def _admit(self, step: Step, attempt: int, prepared: Prepared | None, passage: Passage) -> None:
        prepared = prepared or self.dependencies.steps.prepare(step, attempt, self.state)
        if passage.job is not None:
            prepared = prepared.but(job=passage.job)
        self._start_attempt(step, attempt, prepared, risk=passage.risk, rule=passage.rule)

    def _hold(self, step: Step, passage: Passage) -> None:
        self.queue.release(step.id)
        self._held[step.id] = passage
        if passage.seconds is not None:  # then it is judged again
            push(self.timers, (self.clock.monotonic() + max(0.0, passage.seconds), step.id))

    def _refuse(self, step: Step, passage: Passage) -> None:
        self.queue.release(step.id)
        self.emit(
            ev.StepMoved(
                at=self.clock.stamp(),
                step=step.id,
                status="failed",
                reason="timeout" if passage.is_late else "denied",
                message=passage.reason,
                rule=passage.rule,
            )
        )
        self.settle(step.id)
        self.abort(step)

    # Failures with `on_failure: ask`.

    def conclude(self, step: Step, attempt: int, outcome: Outcome) -> None:
        """Record the end of an attempt; if the last one failed, `on_failure: ask` requests a decision."""
        failed = outcome.status == "failed" and outcome.reason != "denied"
        # A service that was ready is not asked about: its users have been affected already.
        asks = step.on_failure == "ask" and self.state.steps[step.id].opened is None
        if failed and asks and self.state.ending is None:
            tries = len(self.state.steps[step.id].tries)
            if react(step, tries, outcome, repeat=True)[1] is None:
                self.queue.release(step.id)
                fields = as_fields(outcome, classify(outcome)) | {"step_status": "waiting"}
                self.emit(ev.AttemptEnded(at=self.clock.stamp(), step=step.id, n=attempt, **fields))
                self._resolve(step)
                return
        if outcome.proposed and self._takes_plan(step, attempt, outcome):
            return
        if outcome.patch and outcome.status == "completed" and self._takes_patch(step, attempt, outcome):
            return
        super().conclude(step, attempt, outcome)

    def _only_keeps(self, step: Step) -> bool:
        """Whether the patch of an agent is not applied, as the plan and the options say now."""
        return step.action.apply == "never" or self.options.proposes

    def _only_kept(self, step: Step, prepared: Prepared) -> Prepared:
        """Return the end of an agent whose patch waited to be applied, where it is now only kept."""
        job = prepared.job
        if job is None or "patch" not in job.agent or not self._only_keeps(step):
            return prepared
        outcome = Outcome(
            status="completed", reason="ran", patch=job.agent["patch"], outputs=job.agent["outputs"]
        )
        if self.state.steps[step.id].is_applying:
            why = "its patch was being applied when planrun ended, and must not be applied any more"
            outcome = Outcome(status="failed", reason="patch", message=f"{why}; files may have been changed")
        return prepared.but(job=None, outcome=outcome)

    def _takes_patch(self, step: Step, attempt: int, outcome: Outcome) -> bool:
        """Let the patch of an agent wait for its gate; False when it is only kept."""
        if self._only_keeps(step):
            return False
        if not self.may_continue:  # a resumed run goes on from here
            super().conclude(step, attempt, Outcome(status="cancelled", reason="cancelled"))
            return True
        self.queue.release(step.id)
        fields = as_fields(outcome, None) | {"step_status": "waiting", "step_reason": "patch"}
        self.emit(ev.AttemptEnded(at=self.clock.stamp(), step=step.id, n=attempt, **fields))
        self.queue.put_back(step.id)
        return True

    def _takes_plan(self, step: Step, attempt: int, outcome: Outcome) -> bool:
        """Let the plan of an agent wait for its gate; False when the run is ending: a resumed run goes on from here."""
        if not self.may_continue:
            return False
        self.queue.release(step.id)
        fields = as_fields(outcome, None) | {"step_status": "waiting", "step_reason": "plan"}
        self.emit(ev.AttemptEnded(at=self.clock.stamp(), step=step.id, n=attempt, **fields))
        self.queue.put_back(step.id)
        return True

    def _has_failed(self, step: Step) -> bool:
        """Whether a step waits for a decision about its failure."""
        step_state = self.state.steps[step.id]
        return (
            step_state.status == "waiting"
            and step_state.after is not None
            and step_state.on_failure != "retry"
        )

    def _resolve(self, step: Step) -> None:
        """Apply the decision about a failed step, or let the step wait for one."""
        passage = self._gates.failed(step, self.state)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self.emit(event)
        step_state = self.state.steps[step.id]
        if passage.answer == "ask":
            self._hold(step, passage)
        elif step_state.on_failure == "retry":
            self.queue.put_back(step.id)
        else:
            ended = step_state.attempts[-1].ended
            reason = ended.reason if ended else "lost"
            self.move(step.id, "failed", reason)
            self.abort(step)

    # Steps that wait at their gates.

    def _is_in_progress(self, step_state: StepState) -> bool:
        return super()._is_in_progress(step_state) and step_state.step.id not in self._held

    def _handle_signals(self) -> None:
        if self._at_gates():  # before timeouts: a reply at the deadline counts
            for event in self._gates.poll_replies(self.state):
                self.emit(event)
                self._judge_again([event.step] if event.step else self._at_gates("approval"))
        super()._handle_signals()
        timed = {name for _, name in self.timers}
        for name, passage in list(self._held.items()):
            if passage.seconds is not None and name not in timed:  # it is about to be judged
                del self._held[name]

    def _at_gates(self, reason: str = "") -> list[str]:
        """The steps that wait at their gates, or those that wait for one kind of reply."""
        states = self.state.steps
        waiting = [name for name in self._held if states[name].at_gate]
        return [name for name in waiting if states[name].reason == reason] if reason else waiting

    def _judge_again(self, names: list[str]) -> None:
        """Judge steps again that wait at their gates."""
        for name in names:
            if name in self._held and self.state.steps[name].at_gate:  # once, however many replies it got
                del self._held[name]
                self.timers[:] = sorted(entry for entry in self.timers if entry[1] != name)
                self.queue.put_back(name)

    def _wait_limit(self) -> float | None:
        patience = super()._wait_limit()
        if not self._at_gates():
            return patience
        return POLL_INTERVAL if patience is None else min(POLL_INTERVAL, patience)

    def _is_section_done(self) -> bool:
        while self._needs_reply:
            ended = self.dependencies.executor.wait(0)  # attempts that could not be started
            if not ended:
                self.emit(ev.RunEnding(at=self.clock.stamp(), why="gates"))
                if self.services:
                    self.services.update()  # it stops those that are ready: they do not run while the run is paused
                break
            for job, outcome in ended:
                self._handle_end(job, outcome)
            self.evaluate_ready()
            self._start_ready()
            self.dependencies.journal.flush()
        return super()._is_section_done()

    @property
    def _is_idle(self) -> bool:
        return super()._is_idle and not (self._at_gates() and self._gates.is_asking(self.state))

    @property
    def _needs_reply(self) -> bool:
        """Whether the run cannot continue without a reply."""
        if self.state.pausing or self.lost is not None or not self._is_idle:
            return False
        return bool(self._at_gates())


STOP_TIMEOUT = 3.0
"""Seconds that a stopped model call has to end; then its result is not awaited any more."""


class ReplanningScheduler(GatedScheduler):
    """A run whose failures `planner` may replan.

    Such a failure ends its step; its dependents are not evaluated. Running attempts and steps between two attempts
    continue to their end; nothing else starts. Then one replan handles all such failures, and after it frontier and
    queue are made again from the state, under the plan that is then in force.
    """

    def __init__(
        self, state: RunState, dependencies: Dependencies, options: Options, gates: Gates, planner: Replanner
    ) -> None:
        super().__init__(state, dependencies, options, gates)
        self._planner = planner
        self._wanted = list(options.replan)  # failed steps to replan
        self._is_planning = False
        self._poll_after = POLL_INTERVAL  # seconds until the next poll of the planner
        self._stop_by: float | None = None  # when a stopped replan must have ended

    # Failures to replan.

    @property
    def _unevaluated(self) -> Sequence[str]:
        return self._wanted

    def settle(self, name: str) -> None:
        """Release what waits for the end of a step, unless the planner replans its failure."""
        if self._wants_replan(name):
            self.queue.settle(name)
            self._wanted.append(name)
        else:
            super().settle(name)

    def _wants_replan(self, name: str) -> bool:
        step_state = self.state.steps[name]
        if step_state.status != "failed" or self.section != "steps" or self._is_planning:
            return False
        return (
            self.state.ending is None
            and self.lost is None
            and self._planner.wants(step_state.step, self.state)
        )

    @property
    def _is_unfinished(self) -> bool:
        return bool(self._wanted) or super()._is_unfinished

    def _start_ready(self) -> None:
        if not self._wanted:
            super()._start_ready()
            return
        while self.lost is None and not self.state.pausing:
            name = self.queue.take(self._occupied_jobs, len(self.timers))
            if name is None:
                return
            if self._is_between_attempts(name):
                self._launch(self.state.steps[name].step)
            else:  # the queue is made again after the replan
                self.queue.release(name)

    def _is_between_attempts(self, name: str) -> bool:
        step_state = self.state.steps[name]
        return step_state.status == "waiting" and not step_state.at_gate

    @property
    def _is_draining(self) -> bool:
        """Whether an attempt must end before the replan starts."""
        while not self._occupied_jobs and not any(map(self._is_between_attempts, self.state.steps)):
            ended = self.dependencies.executor.wait(0)  # attempts that could not be started
            if not ended:
                return False
            for job, outcome in ended:
                self._handle_end(job, outcome)
        return True

    # The replan.

    def _is_section_done(self) -> bool:
        if self._is_planning:
            if self.lost is not None:
                self.give_up(self.lost)
            return False
        if not self._wanted or self.lost is not None or self.state.pausing:
            return super()._is_section_done()
        if self.state.ending is not None:  # a run that is ending is not replanned
            wanted, self._wanted = self._wanted, []
            for name in wanted:
                self.frontier.settle(name)
            return super()._is_section_done()
        if not self._is_draining:
            self._is_planning, self._poll_after = True, 0.0
            # In file order: the order of ends varies, and a recording must match the same request.
            self._wanted = [name for name in self.state.steps if name in self._wanted]
            self._planner.begin(tuple(self._wanted), self.state)
        return False

    def _handle_signals(self) -> None:
        super()._handle_signals()
        if self._is_planning:
            self._poll_planner()

    def _poll_planner(self) -> None:
        """Record the planner's new events; stop it when the run is ending."""
        self._poll_after = POLL_INTERVAL
        if self._stop_by is None and (self.state.ending is not None or self.lost is not None):
            self._stop_by = self.clock.monotonic() + STOP_TIMEOUT
            self._planner.stop()
        while self._is_planning and (events := self._planner.events(self.state)):
            for event in events:
                known = frozenset(self.state.steps)
                self.emit(event)
                if isinstance(event, ev.PlanningEnded):
                    self._continue_after(event, known)
        if self._is_planning and self._is_too_late:
            left = tuple(self._wanted)
            event = ev.PlanningEnded(
                at=self.clock.stamp(),
                purpose="replan",
                steps=left,
                outcome="stopped",
                message="no end in time",
            )
            self.emit(event)
            self._continue_after(event, frozenset(self.state.steps))

    @property
    def _is_too_late(self) -> bool:
        now = self.clock.monotonic()
        ends = [end for end in (self._stop_by, self.cleanup_until) if end is not None]
        return self._stop_by is not None and now >= min(ends)

    def _continue_after(self, ended: ev.PlanningEnded, known: frozenset[str]) -> None:
        """Continue with the plan that is in force after a replan; `known`: the steps that existed before."""
        self._is_planning, self._stop_by = False, None
        if self.lost is not None:
            return
        if ended.outcome == "budget" and self.state.ending is None:
            # A resume with a larger budget reruns the failed steps, and so returns to the replan.
            self.emit(ev.RunEnding(at=self.clock.stamp(), why="budget", message=ended.message))
            return
        self._wanted.clear()
        if ended.outcome == "revised":
            self._held.clear()
            self.timers.clear()
            if self.options.selected is not None:  # new steps could not be selected before
                chosen = self.options.selected | (self.state.steps.keys() - known)
                self.options = self.options.but(selected=chosen)
        self.enter([step for step in self.state.plan.steps if step.section == self.section])
        ending = self.state.ending
        if ending is not None:
            cancel_pending(self, "cancelled" if ending.why == "cancel" else ending.why)

    # Waiting for the replan.

    @property
    def _is_idle(self) -> bool:
        return super()._is_idle and not self._is_planning

    def _wait_limit(self) -> float | None:
        patience = super()._wait_limit()
        if not self._is_planning:
            return patience
        return self._poll_after if patience is None else min(self._poll_after, patience)
