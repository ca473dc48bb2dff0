"""A run that may be planned anew: failures that want it wait until nothing runs, then a model is asked once for all."""

from __future__ import annotations

from planrun.engine.gated import LISTEN, GatedScheduler
from planrun.engine.stopping import cancel_pending
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.engine.scheduler import Options, Rooms
    from planrun.model.state import RunState
    from planrun.ports import Gates, Replanner

STOP_WITHIN = 3.0
"""Seconds that a model has to end after it was stopped; then nobody waits for what it says."""


class ReplanningScheduler(GatedScheduler):
    """A run whose failures `planner` may have planned anew.

    Such a failure ends its step, and nobody looks at those that depend on it. What runs, and what is between two
    attempts, goes on to its end; nothing else starts. Then there is one planning for all such failures, and after it
    frontier and queue are made anew from the state, under whatever plan that has.
    """

    def __init__(
        self, state: RunState, rooms: Rooms, options: Options, gates: Gates, planner: Replanner
    ) -> None:
        super().__init__(state, rooms, options, gates)
        self._planner = planner
        self._wanted = list(options.replan)  # failed steps whose planning is to come, or is going on
        self._plans = False  # a planning is going on
        self._listen = LISTEN  # seconds until the next look at it
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
        self._listen = LISTEN
        if self._stop_by is None and (self.state.ending is not None or self.lost is not None):
            self._stop_by = self._clock.monotonic() + STOP_WITHIN
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
