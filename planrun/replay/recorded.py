"""Locks of the host as a score tells of them: a step has its locks when it started next, and waited otherwise.

The events of one process as a score that the real loop plays: all it is told comes from there, in that order.

The loop decides what starts, what is left out and what becomes of a failure; the score only says what came from
outside: how attempts ended, what people answered, signals, what a model wrote. Where the loop does something else than
the score says, the replay ends, and both are told.
"""

from __future__ import annotations

from planrun.actions.verify import PROBE
from planrun.clock import between
from planrun.errors import EvaluationError, InternalError, RecordsLost
from planrun.model import events as ev
from planrun.model.job import Job, Outcome, Passage, Prepared
from planrun.model.record import Record
from planrun.replay.results import chance_of, holds, is_told, outcome_of, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from planrun.model.plan import Step
    from planrun.model.state import RunState


class Holding:
    """The port `Locks` by a score."""

    retry_after = 0.0

    def __init__(self, score: Score) -> None:
        self._score = score
        self._told: dict[str, str] = {}  # why a step waits, since it was told last

    def claim(self, step: str, _names: tuple[str, ...]) -> str:
        """Give a step its locks if it started next, or say again why it had to wait."""
        coming = self._score.events[self._score.place :]
        if coming and getattr(coming[0], "step", None) == step and not isinstance(coming[0], ev.StepHeld):
            return ""
        if coming and isinstance(coming[0], ev.StepHeld) and coming[0].step == step:
            self._told[step] = coming[0].message
        elif step not in self._told:
            held = (event for event in coming if isinstance(event, ev.StepHeld) and event.step == step)
            self._told[step] = next((event.message for event in held), "held")
        return self._told[step]

    def release(self, step: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


_PLANNING = (
    ev.PlanningStarted,
    ev.ModelAsked,
    ev.ModelRepeated,
    ev.ModelAnswered,
    ev.BudgetCrossed,
    ev.PlanningEnded,
)
_SIGNALS = {"cancel": 15, "pause": 10}  # what ends or pauses a run when the signal is not on record
_CUT = 0.005
"""Seconds by which a recorded moment, cut to milliseconds, may differ from the one that the loop saw."""
_STUCK = 1000
"""Waits in a row in which nothing of the score is played: more than any run has, which looks around at most."""


class PlayedOut(Exception):
    """There is nothing more to play."""


class Difference(Record):
    """Where a replay is not what was recorded; `line` of the ledger, 1-based. None: nothing is there."""

    line: int
    recorded: ev.Event | None
    replayed: ev.Event | None


class Score:
    """What was recorded of one process; `first` is the line of the ledger on which it begins.

    `whole`: whether the process came to its end; a replay of another one ends with what is on record.
    """

    def __init__(self, events: Sequence[ev.Event], first: int, *, whole: bool) -> None:
        self.events = events
        self.first = first
        self.whole = whole
        self.place = 0
        self.difference: Difference | None = None

    @property
    def next(self) -> ev.Event | None:
        """The event that has to come now."""
        return self.events[self.place] if self.place < len(self.events) else None

    def play(self, event: ev.Event) -> None:
        """Take note of what the loop does; raises PlayedOut when it is not what was recorded."""
        expected = self.next
        if expected is None and not self.whole:
            raise PlayedOut
        if expected is None or not same(expected, event):
            self.difference = Difference(line=self.first + self.place, recorded=expected, replayed=event)
            raise PlayedOut
        self.place += 1

    def stick(self) -> None:
        """Take note that the loop waits for something that was never recorded."""
        if self.next is not None:
            self.difference = Difference(line=self.first + self.place, recorded=self.next, replayed=None)
        raise PlayedOut

    def later(self, step: str) -> ev.Event | None:
        """The next event about a step, from the one after the next on."""
        for event in self.events[self.place + 1 :]:
            if getattr(event, "step", None) == step:
                return event
        return None


class Player:
    """Executor, step runner, journal, inbox, clock and gates of one process, all by its score."""

    def __init__(self, state: RunState, score: Score, rundir: str) -> None:
        self._state = state
        self._score = score
        self._rundir = rundir
        self._live: dict[str, Job] = {}
        self._unborn: set[str] = set()
        self._start = score.events[0].at
        self._now = 0.0
        self._idle = 0
        begun = state.resumed[-1] if state.resumed else state.started
        self._context = {"id": state.started.run, **begun.context} if begun and state.started else {}
        self._sent = -1  # the place of the last signal that was handed on
        self.records = score.first - 1
        self.lost: RecordsLost | None = None

    # The clock, which is where the score is.

    def stamp(self) -> str:
        """When the next event was recorded: so what is made of it has the same moment."""
        event = self._score.next
        return event.at if event else self._score.events[-1].at

    def monotonic(self) -> float:
        """Seconds since the first event."""
        event = self._score.next
        if isinstance(event, ev.RunEnding) and event.why == "deadline":
            self._move(event)
        return self._now

    def _move(self, event: ev.Event) -> None:
        # Moments are cut to milliseconds, which must not have what is due come too early.
        late = 0.0 if isinstance(event, ev.AttemptEnded) else _CUT
        self._now = max(self._now, between(self._start, event.at) + late)

    def due(self, waiting: list[tuple[float, str]], _now: float) -> list[str]:
        """Take the steps out of `waiting` that go on next, and those that have been due for certain.

        Which of two steps was due first, and whether one was due when another ended, only their events say: moments
        that are cut to milliseconds are too coarse.
        """
        names = self._returning([name for _, name in waiting])
        certain = between(self._start, self.stamp()) - _CUT
        names += [name for moment, name in waiting if moment <= certain and name not in names]
        waiting[:] = sorted([entry for entry in waiting if entry[1] not in names])
        return names

    def _returning(self, waiting: list[str]) -> list[str]:
        """Return which of the waiting steps go on at once: the queue hands them out in the order of the plan."""
        order = {name: place for place, name in enumerate(self._state.steps)}
        names: list[str] = []
        for event in self._score.events[self._score.place :]:
            name = getattr(event, "step", "")
            answered = isinstance(event, ev.GateAnswered) and event.via != "timeout"
            if name not in waiting or answered or isinstance(event, ev.AttemptEnded):
                break
            if names and order[name] < order[names[-1]]:
                break
            if name not in names:
                names.append(name)
        return names

    # The journal.

    def append(self, event: ev.Event) -> None:
        """Hold what the loop does against the score."""
        self._score.play(event)
        self.records += 1
        self._idle = 0
        self._now = max(self._now, between(self._start, event.at))

    def sync(self) -> None:
        """Nothing is written."""

    # The inbox.

    def take(self) -> list[int]:
        """Return the signal that comes now."""
        event = self._score.next
        if isinstance(event, ev.RunEnding) and event.why == "records":
            self.lost = RecordsLost(event.message)
        if self._sent == self._score.place or not self._is_signal(event):
            return []
        self._sent = self._score.place
        return [
            event.signal or _SIGNALS[event.why] if isinstance(event, ev.RunEnding) else _SIGNALS["cancel"]
        ]

    def _is_signal(self, event: ev.Event | None) -> bool:
        """Whether a signal brings an event about; of a second one there is only what it does to the cleanup."""
        if isinstance(event, ev.RunEnding):
            return event.why in _SIGNALS
        ending = self._state.ending
        if not isinstance(event, ev.StepMoved) or ending is None or ending.why != "cancel":
            return False
        return event.reason == "cancelled" and self._state.steps[event.step].step.section == "finally"

    # The executor.

    @property
    def running(self) -> tuple[str, ...]:
        """The steps whose attempt has no outcome yet."""
        return tuple([name for name in self._live if name not in self._unborn])

    def start(self, job: Job) -> None:
        """Start an attempt; one that could not be started never took a place."""
        self._live[job.step] = job
        ended = self._about(job.step, ev.AttemptEnded)
        if ended is not None and ended.reason == "spawn":
            self._unborn.add(job.step)

    def wait(self, _timeout: float | None) -> list[tuple[Job, Outcome]]:
        """Return what ended next, all of it that was seen to end at once."""
        event = self._score.next
        self._idle += 1
        if event is None or self._idle > _STUCK:
            self._score.stick()
        assert event is not None
        self._move(event)
        found = []
        last = ""
        for ended in self._score.events[self._score.place :]:
            if _is_of_a_failure(ended, last):
                continue
            if isinstance(ended, ev.StepOpened) and (probe := self._live.pop(f"{ended.step}{PROBE}", None)):
                found.append((probe, Outcome(status="completed", reason="ran")))
                continue
            if not isinstance(ended, ev.AttemptEnded) or ended.step not in self._live:
                break  # what comes then is the loop's
            last = ended.step
            job = self._live.pop(ended.step)
            self._unborn.discard(ended.step)
            found.append((job, outcome_of(ended, self._rundir, job.log)))
        return found

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """How it ended is on record."""

    def signal_all(self, _signum: int) -> None:
        """How they ended is on record."""

    def kill_all(self) -> None:
        """How they ended is on record."""

    def close(self) -> None:
        """Nothing runs."""

    def chance(self) -> float:
        """Return what chance drew for the pause that begins now."""
        ended = self._score.next
        if not isinstance(ended, ev.AttemptEnded):
            return 0.5
        step = self._state.steps[ended.step]
        return chance_of(step.step.retries, len(step.tries), ended.delay)

    # The cache.

    def find(self, step: Step, _state: RunState) -> dict[str, Any] | None:
        """Return the earlier result that was used again, where the score says so next."""
        event = self._score.next
        if not isinstance(event, ev.StepRestored) or event.step != step.id:
            return None
        return {name: value for name, value in vars(event).items() if name not in ("at", "step")}

    # The step runner.

    def prepare(self, step: Step, attempt: int, _state: RunState) -> Prepared:
        """Return the attempt that was recorded."""
        job = Job(step=step.id, attempt=attempt, argv=(), env={}, cwd="", log="", timeout=step.timeout)
        event = self._about(step.id, ev.AttemptStarted)
        if (
            event is None or event.n != attempt
        ):  # it is to come to a gate, or the score will say that it never started
            return Prepared(fingerprint="", job=job)
        if event.log:
            if step.service is not None and step.verify:
                job = job.but(following=(job.but(step=f"{step.id}{PROBE}"),))
            return Prepared(fingerprint=event.fingerprint, job=job.but(log=event.log))
        ended = self._about(step.id, ev.AttemptEnded)
        if ended is None:
            return Prepared(fingerprint=event.fingerprint)
        return Prepared(fingerprint=event.fingerprint, outcome=outcome_of(ended, self._rundir, ""))

    def opening(self, group: Step, _state: RunState) -> dict[str, Any]:
        """Return what a group was made of; raises EvaluationError where it could not be opened."""
        moved = self._about(group.id, ev.StepMoved)
        if moved is not None and moved.reason == "refused" and self._is_next(moved):
            raise EvaluationError(moved.message)
        event = self._about(group.id, ev.StepOpened)
        return (
            {name: vars(event)[name] for name in ("items", "params") if name in vars(event)} if event else {}
        )

    def gathered(self, group: Step, _state: RunState) -> dict[str, Any]:
        """Return the outputs that a group had."""
        event = self._about(group.id, ev.StepMoved)
        return event.outputs if event else {}

    def plan_outputs(self, _state: RunState) -> tuple[dict[str, Any], str]:
        """Return the outputs that the plan had, and why others could not be evaluated."""
        event = self._score.events[-1]
        return (event.outputs, event.message) if isinstance(event, ev.RunEnded) else ({}, "")

    def conclude(self, _step: Step, _job: Job, outcome: Outcome) -> Outcome:
        """What its outputs were is part of what was recorded."""
        return outcome

    def holds(self, step: Step, state: RunState) -> bool:
        """Whether a condition holds; raises EvaluationError.

        What it reads of environment and files is not on record: then it is what it was.
        """
        if is_told(step):
            return holds(step, state, self._context)
        event = self._about(step.id, ev.StepMoved)
        if event is None or not self._is_next(event):
            return True
        if event.reason == "refused":
            raise EvaluationError(event.message.removeprefix("its condition: "))
        return not (event.status == "skipped" and event.reason == "condition")

    def _about(self, step: str, kind: type[Any]) -> Any:
        for event in self._score.events[self._score.place :]:
            if type(event) is kind and getattr(event, "step", None) == step:
                return event
        return None

    def _is_next(self, event: ev.Event) -> bool:
        """Whether it is the first of all that comes about its step."""
        step = getattr(event, "step", "")
        for other in self._score.events[self._score.place :]:
            if getattr(other, "step", None) == step:
                return other is event
        return False

    # The gates.

    def judge(self, step: Step, _state: RunState, _job: Job | None) -> Passage:
        """Let a step in as it was let in."""
        opened, answered, event = self._gate(step.id)
        asked: dict[str, Any] = {"opened": opened, "answered": answered}
        if isinstance(event, ev.AttemptStarted) and event.step == step.id:
            return Passage(answer="allow", risk=event.risk, rule=event.rule, **asked)
        if isinstance(event, ev.StepMoved) and event.step == step.id:
            answer: Any = "skip" if event.status == "skipped" else "deny"
            late = event.reason == "timeout"
            return Passage(answer=answer, rule=event.rule, reason=event.message, is_late=late, **asked)
        return Passage(answer="ask", seconds=self._time_of(step.id), **asked)

    def failed(self, step: Step, state: RunState) -> Passage:
        """Have become of a failure what became of it."""
        opened, answered, _ = self._gate(step.id)
        after = state.steps[step.id].after
        known = answered or (after.answered if after else None)
        asked: dict[str, Any] = {"opened": opened, "answered": answered}
        if known:
            return Passage(answer="allow", **asked)
        return Passage(answer="ask", seconds=self._time_of(step.id), **asked)

    def _gate(self, step: str) -> tuple[ev.GateOpened | None, ev.GateAnswered | None, ev.Event | None]:
        """Return what is asked about a step now, what is answered at once, and the event after that."""
        coming = iter(self._score.events[self._score.place :])
        opened = answered = None
        event = next(coming, None)
        if isinstance(event, ev.GateOpened) and event.step == step:
            opened, event = event, next(coming, None)
        if isinstance(event, ev.GateAnswered) and event.step == step:
            answered, event = event, next(coming, None)
        return opened, answered, event

    def _time_of(self, step: str) -> float | None:
        """Return the seconds after which a gate was looked at again because its time was over."""
        event = self._score.later(step)
        over = isinstance(event, ev.GateAnswered) and event.via == "timeout"
        if event is None or not (over or isinstance(event, ev.StepMoved)):
            return None
        return max(0.0, between(self._start, event.at) - self._now)

    def poll_replies(self, _state: RunState) -> list[ev.GateAnswered]:
        """Return what people answered now."""
        found = []
        for event in self._score.events[self._score.place :]:
            if not isinstance(event, ev.GateAnswered) or event.via == "timeout":
                break
            found.append(event)
        return found

    # The planner.

    def wants(self, step: Step, _state: RunState) -> bool:
        """Whether a failure was planned anew."""
        later = self._score.events[self._score.place :]
        return any(isinstance(event, ev.PlanningStarted) and step.id in event.steps for event in later)

    def begin(self, steps: tuple[str, ...], _state: RunState) -> None:
        """What came of it is on record."""

    def events_of_planning(self) -> list[ev.Event]:
        """Return what happened in a planning from now on."""
        found: list[ev.Event] = []
        for event in self._score.events[self._score.place :]:
            if not isinstance(event, _PLANNING):
                break
            found.append(event)
            if isinstance(event, ev.PlanningEnded):
                break
        return found


def _is_of_a_failure(event: ev.Event, failed: str) -> bool:
    """Whether an event is what became at once of the failure of a step, before the end of another one was looked at."""
    if isinstance(event, ev.StepMoved) and event.reason in ("abort", "fail_fast"):
        return True
    if isinstance(event, ev.RunEnding):
        return event.why == "abort"
    return isinstance(event, ev.GateOpened | ev.GateAnswered | ev.StepMoved) and event.step == failed


class Planning:
    """The port `Planner` by a score."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.wants = player.wants
        self.begin = player.begin

    def events(self, _state: RunState) -> list[ev.Event]:
        """Return what happened since the last call."""
        return self._player.events_of_planning()

    def stop(self) -> None:
        """How it ended is on record."""


def played(score: Score, run: Callable[[], object]) -> None:
    """Have the loop play a score to its end, or to the first difference; raises InternalError for nothing else."""
    try:
        run()
    except PlayedOut:
        return
    except InternalError:
        if score.difference is None and score.next is not None:
            score.difference = Difference(line=score.first + score.place, recorded=score.next, replayed=None)
        return
    if score.next is not None:
        score.difference = Difference(line=score.first + score.place, recorded=score.next, replayed=None)
