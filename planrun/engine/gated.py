"""Runs in which a step may wait for an approval, an answer or a decision, and runs that a model may replan."""

from __future__ import annotations

from planrun.engine.failures import classify, react
from planrun.engine.queue import push
from planrun.engine.scheduler import Scheduler
from planrun.engine.termination import cancel_pending
from planrun.model import events as ev
from planrun.model.job import as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.engine.scheduler import Dependencies, Options
    from planrun.model.job import Outcome, Passage, Prepared
    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Gates, Replanner

POLL_INTERVAL = 0.25
"""Seconds between two looks for answers, while something else keeps the run going."""


class GatedScheduler(Scheduler):
    """A run whose steps are let in by `gates`.

    A step whose gate nobody opened gives its place to others. When nothing but such steps is left, the run comes to
    rest; a gate with a time of its own keeps it waiting so long.
    """

    def __init__(self, state: RunState, rooms: Dependencies, options: Options, gates: Gates) -> None:
        super().__init__(state, rooms, options)
        self._gates = gates
        self._held: dict[str, Passage] = {}  # steps at their gates, or beyond them in another way

    def _launch(self, step: Step) -> None:
        """Start a step that may start; what starts a process is made ready first, so that this is what is judged."""
        if self._has_failed(step):
            self._resolve(step)
            return
        attempt = len(self.state.steps[step.id].attempts) + 1
        prepared = None
        if step.kind in ("run", "exec", "tool"):
            prepared = self.rooms.steps.prepare(step, attempt, self.state)
            if prepared.job is None:  # it cannot run, whatever anybody says
                self._begin(step, attempt, prepared)
                return
        passage = self._gates.judge(step, self.state, prepared.job if prepared else None)
        if passage.answer == "ask" and (step.undoes or not self.options.asks):  # nobody is there to be asked
            why = f"nobody approved it beforehand: {passage.reason}"
            passage = passage.but(answer="deny", opened=None, reason=why)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self._emit(event)
        if passage.answer == "ask":
            self._hold(step, passage)
        elif passage.answer == "deny":
            self._refuse(step, passage)
        elif passage.answer == "skip":
            self._queue.release(step.id)
            self._move(step.id, "skipped", "approval", passage.reason)
        else:
            self._admit(step, attempt, prepared, passage)

    def _admit(self, step: Step, attempt: int, prepared: Prepared | None, passage: Passage) -> None:
        prepared = prepared or self.rooms.steps.prepare(step, attempt, self.state)
        if passage.job is not None:
            prepared = prepared.but(job=passage.job)
        self._begin(step, attempt, prepared, risk=passage.risk, rule=passage.rule)

    def _hold(self, step: Step, passage: Passage) -> None:
        self._queue.release(step.id)
        self._held[step.id] = passage
        if passage.seconds is not None:  # it is judged again then
            push(self._waiting, (self._clock.monotonic() + max(0.0, passage.seconds), step.id))

    def _refuse(self, step: Step, passage: Passage) -> None:
        self._queue.release(step.id)
        self._emit(
            ev.StepMoved(
                at=self._clock.stamp(),
                step=step.id,
                status="failed",
                reason="timeout" if passage.is_late else "denied",
                message=passage.reason,
                rule=passage.rule,
            )
        )
        self._settle(step.id)
        self._abort(step)

    # What is to become of a failure.

    def _conclude(self, step: Step, attempt: int, outcome: Outcome) -> None:
        """Record the end of an attempt; when it is the last one that failed, somebody may be asked what to do."""
        failed = outcome.status == "failed" and outcome.reason != "denied"
        # The end of a service that others relied on is what it is.
        asks = step.on_failure == "ask" and self.state.steps[step.id].opened is None
        if failed and asks and self.state.ending is None:
            tries = len(self.state.steps[step.id].tries)
            if react(step, tries, outcome, repeat=True)[1] is None:
                self._queue.release(step.id)
                fields = as_fields(outcome, classify(outcome)) | {"step_status": "waiting"}
                self._emit(ev.AttemptEnded(at=self._clock.stamp(), step=step.id, n=attempt, **fields))
                self._resolve(step)
                return
        super()._conclude(step, attempt, outcome)

    def _has_failed(self, step: Step) -> bool:
        """Whether a step waits for somebody to say what its failure means."""
        found = self.state.steps[step.id]
        return found.status == "waiting" and found.after is not None and found.on_failure != "retry"

    def _resolve(self, step: Step) -> None:
        """Do with a failed step what somebody says, or have it wait for that."""
        passage = self._gates.failed(step, self.state)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self._emit(event)
        found = self.state.steps[step.id]
        if passage.answer == "ask":
            self._hold(step, passage)
        elif found.on_failure == "retry":
            self._queue.put_back(step.id)
        else:
            ended = found.attempts[-1].ended
            reason = ended.reason if ended else "lost"
            self._move(step.id, "failed", reason)
            self._abort(step)

    # Those who wait.

    def _goes_on(self, found: StepState) -> bool:
        return super()._goes_on(found) and found.step.id not in self._held

    def _heed(self) -> None:
        if self._at_gates():  # before the time of one is over: who answers in the last moment is heard
            for event in self._gates.heard(self.state):
                self._emit(event)
                self._call([event.step] if event.step else self._at_gates("approval"))
        super()._heed()
        timed = {name for _, name in self._waiting}
        for name, passage in list(self._held.items()):
            if passage.seconds is not None and name not in timed:  # it is about to be judged
                del self._held[name]

    def _at_gates(self, reason: str = "") -> list[str]:
        """The steps that wait for somebody, or for one thing of him."""
        states = self.state.steps
        found = [name for name in self._held if states[name].at_gate]
        return [name for name in found if states[name].reason == reason] if reason else found

    def _call(self, names: list[str]) -> None:
        """Have steps judged again that wait at their gates."""
        for name in names:
            if name in self._held and self.state.steps[name].at_gate:  # once, however many answers it got
                del self._held[name]
                self._waiting[:] = sorted(entry for entry in self._waiting if entry[1] != name)
                self._queue.put_back(name)

    def _patience(self) -> float | None:
        patience = super()._patience()
        if not self._at_gates():
            return patience
        return POLL_INTERVAL if patience is None else min(POLL_INTERVAL, patience)

    def _over(self) -> bool:
        while self._waits_for_people:
            ended = self.rooms.executor.wait(0)  # what could not be started
            if not ended:
                self._emit(ev.RunEnding(at=self._clock.stamp(), why="gates"))
                if self.services:
                    self.services.look()  # it stops those that are ready: they do not run while the run waits
                break
            for job, outcome in ended:
                self._finish(job, outcome)
            self._look()
            self._start()
        return super()._over()

    @property
    def _waits_for_people(self) -> bool:
        """Whether nothing goes on without an answer."""
        if self.state.pausing or self.lost is not None or not self._is_idle:
            return False
        return bool(self._at_gates())


STOP_TIMEOUT = 3.0
"""Seconds that a model has to end after it was stopped; then nobody waits for what it says."""


class ReplanningScheduler(GatedScheduler):
    """A run whose failures `planner` may have planned anew.

    Such a failure ends its step, and nobody looks at those that depend on it. What runs, and what is between two
    attempts, goes on to its end; nothing else starts. Then there is one planning for all such failures, and after it
    frontier and queue are made anew from the state, under whatever plan that has.
    """

    def __init__(
        self, state: RunState, rooms: Dependencies, options: Options, gates: Gates, planner: Replanner
    ) -> None:
        super().__init__(state, rooms, options, gates)
        self._planner = planner
        self._wanted = list(options.replan)  # failed steps whose planning is to come, or is going on
        self._plans = False  # a planning is going on
        self._listen = POLL_INTERVAL  # seconds until the next look at it
        self._stop_by: float | None = None  # when a planning that was stopped has to have ended

    # Failures that want it.

    @property
    def _unjudged(self) -> Sequence[str]:
        return self._wanted

    def _settle(self, name: str) -> None:
        if self._wants(name):
            self._queue.settle(name)
            self._wanted.append(name)
        else:
            super()._settle(name)

    def _wants(self, name: str) -> bool:
        found = self.state.steps[name]
        if found.status != "failed" or self._section != "steps" or self._plans:
            return False
        return self.state.ending is None and self.lost is None and self._planner.wants(found.step, self.state)

    @property
    def _is_unfinished(self) -> bool:
        return bool(self._wanted) or super()._is_unfinished

    def _start(self) -> None:
        if not self._wanted:
            super()._start()
            return
        while self.lost is None and not self.state.pausing:
            name = self._queue.take(self._working, len(self._waiting))
            if name is None:
                return
            if self._is_between_attempts(name):
                self._launch(self.state.steps[name].step)
            else:  # the queue is made anew after the planning
                self._queue.release(name)

    def _is_between_attempts(self, name: str) -> bool:
        found = self.state.steps[name]
        return found.status == "waiting" and not found.at_gate

    @property
    def _is_draining(self) -> bool:
        """Whether something has to end before there is a planning."""
        while not self._working and not any(map(self._is_between_attempts, self.state.steps)):
            ended = self.rooms.executor.wait(0)  # what could not be started
            if not ended:
                return False
            for job, outcome in ended:
                self._finish(job, outcome)
        return True

    # The planning.

    def _over(self) -> bool:
        if self._plans:
            if self.lost is not None:
                self._give_up(self.lost)
            return False
        if not self._wanted or self.lost is not None or self.state.pausing:
            return super()._over()
        if self.state.ending is not None:  # nothing is planned for a run that is being ended
            self._let_go()
            return super()._over()
        if not self._is_draining:
            self._plans, self._listen = True, 0.0
            # In file order: which of two ended first is chance, and a recording has to know the question again.
            self._wanted = [name for name in self.state.steps if name in self._wanted]
            self._planner.begin(tuple(self._wanted), self.state)
        return False

    def _let_go(self) -> None:
        """Have failures be failures, and dependents be looked at."""
        wanted, self._wanted = self._wanted, []
        for name in wanted:
            self._frontier.settle(name)

    def _heed(self) -> None:
        super()._heed()
        if self._plans:
            self._hear()

    def _hear(self) -> None:
        """Record what happened in the planning since the last look; stop it when the run is being ended."""
        self._listen = POLL_INTERVAL
        if self._stop_by is None and (self.state.ending is not None or self.lost is not None):
            self._stop_by = self._clock.monotonic() + STOP_TIMEOUT
            self._planner.stop()
        while self._plans and (events := self._planner.events(self.state)):
            for event in events:
                known = frozenset(self.state.steps)
                self._emit(event)
                if isinstance(event, ev.PlanningEnded):
                    self._go_on(event, known)
        if self._plans and self._is_too_late:
            left = tuple(self._wanted)
            event = ev.PlanningEnded(
                at=self._clock.stamp(),
                purpose="replan",
                steps=left,
                outcome="stopped",
                message="no end in time",
            )
            self._emit(event)
            self._go_on(event, frozenset(self.state.steps))

    @property
    def _is_too_late(self) -> bool:
        now = self._clock.monotonic()
        ends = [end for end in (self._stop_by, self._cleanup_until) if end is not None]
        return self._stop_by is not None and now >= min(ends)

    def _go_on(self, ended: ev.PlanningEnded, known: frozenset[str]) -> None:
        """Go on with whatever plan there is after a planning; `known` are the steps that there were before."""
        self._plans, self._stop_by = False, None
        if self.lost is not None:
            return
        if ended.outcome == "budget" and self.state.ending is None:
            # A resume with more of it runs the failed steps again, and so comes back to the planning.
            self._emit(ev.RunEnding(at=self._clock.stamp(), why="budget", message=ended.message))
            return
        self._wanted.clear()
        if ended.outcome == "revised":
            self._held.clear()
            self._waiting.clear()
            if (
                self.options.selected is not None
            ):  # what takes the place of a step was not there to be selected
                chosen = self.options.selected | (self.state.steps.keys() - known)
                self.options = self.options.but(selected=chosen)
        self._enter([step for step in self.state.plan.steps if step.section == self._section])
        ending = self.state.ending
        if ending is not None:
            cancel_pending(self, "cancelled" if ending.why == "cancel" else ending.why)

    # Waiting for it.

    @property
    def _is_idle(self) -> bool:
        return super()._is_idle and not self._plans

    def _patience(self) -> float | None:
        patience = super()._patience()
        if not self._plans:
            return patience
        return self._listen if patience is None else min(self._listen, patience)
