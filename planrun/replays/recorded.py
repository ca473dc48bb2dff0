"""The recorded events of one process, as the ports of the scheduler that replays them: executor, gates, clock, locks.

The scheduler decides what starts, what is skipped and how failures are handled. The recorded events give what came
from outside: how attempts ended, answers, signals, what a model wrote. The replay ends where both differ.
"""

from __future__ import annotations

from planrun.actions.verify import PROBE
from planrun.clock import between
from planrun.errors import EvaluationError, InternalError, RecordsLost
from planrun.model import events as ev
from planrun.model.job import Job, Outcome, Passage, Prepared
from planrun.model.record import Record
from planrun.replays.results import chance_of, holds, outcome_of, reads_only_recorded, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Literal

    from planrun.model.plan import Step
    from planrun.model.state import RunState


class RecordedLocks:
    """The port `Locks`: a step has its locks when it started next in the record, and waits otherwise."""

    retry_after = 0.0

    def __init__(self, recorded: RecordedEvents) -> None:
        self._recorded = recorded
        self._reasons: dict[str, str] = {}  # why a step waits, since it was reported last

    def claim(self, step: str, _names: tuple[str, ...]) -> str:
        """Give a step its locks if it started next, or return again why it had to wait."""
        coming = self._recorded.events[self._recorded.place :]
        if coming and getattr(coming[0], "step", None) == step and not isinstance(coming[0], ev.StepHeld):
            return ""
        if coming and isinstance(coming[0], ev.StepHeld) and coming[0].step == step:
            self._reasons[step] = coming[0].message
        elif step not in self._reasons:
            held = (event for event in coming if isinstance(event, ev.StepHeld) and event.step == step)
            self._reasons[step] = next((event.message for event in held), "held")
        return self._reasons[step]

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
"""Seconds by which a recorded moment, cut to milliseconds, may differ from the one of the scheduler."""
_STUCK = 1000
"""Waits in a row without a replayed event: more than any run has."""


class ReplayEnded(Exception):
    """There is no further recorded event."""


class Difference(Record):
    """The place where a replay differs from the record; `line` of the ledger, 1-based. None: nothing is there."""

    line: int
    recorded: ev.Event | None
    replayed: ev.Event | None


_OF_AGENTS = (
    *(ev.AgentStarted, ev.AgentProgressed, ev.ToolCalled, ev.ToolReturned),
    *(ev.AgentCompacted, ev.AgentEnded, ev.AgentNoted),
)


def _without_agents(events: list[tuple[int, ev.Event]]) -> Iterator[tuple[int, ev.Event]]:
    """Yield the events that the scheduler made itself: those of agents come from outside, as the end of a process."""
    is_agent = False  # the last call to a model was made by an agent
    for line, event in events:
        if isinstance(event, _OF_AGENTS):
            is_agent = True
            continue
        if isinstance(event, ev.ModelAsked | ev.ModelRepeated | ev.ModelAnswered):
            is_agent = bool(event.agent)
            if is_agent:
                continue
        if isinstance(event, ev.BudgetCrossed) and (is_agent or event.step):
            continue
        yield line, event


class RecordedEvents:
    """The recorded events of one process; `first` is the line of the ledger on which it begins.

    `whole`: whether the process ended; otherwise the replay ends with the last recorded event.
    """

    def __init__(self, events: Sequence[ev.Event], first: int, *, whole: bool) -> None:
        own = [(first + place, event) for place, event in enumerate(events)]
        own = (
            list(_without_agents(own)) if any(isinstance(event, ev.AgentStarted) for event in events) else own
        )
        self.events = [event for _, event in own]
        self.lines = [line for line, _ in own]
        self.first = first
        self.whole = whole
        self.place = 0
        self.difference: Difference | None = None

    @property
    def line(self) -> int:
        """The line of the ledger of the event that has to come now."""
        if self.place < len(self.lines):
            return self.lines[self.place]
        return self.lines[-1] + 1 if self.lines else self.first

    @property
    def next(self) -> ev.Event | None:
        """The event that has to come now."""
        return self.events[self.place] if self.place < len(self.events) else None

    def play(self, event: ev.Event) -> None:
        """Compare an event of the scheduler with the record; raises ReplayEnded when they differ."""
        expected = self.next
        if expected is None and not self.whole:
            raise ReplayEnded
        if expected is None or not same(expected, event):
            self.difference = Difference(line=self.line, recorded=expected, replayed=event)
            raise ReplayEnded
        self.place += 1

    def stick(self) -> None:
        """Note that the scheduler waits for something that was never recorded."""
        if self.next is not None:
            self.difference = Difference(line=self.line, recorded=self.next, replayed=None)
        raise ReplayEnded

    def later(self, step: str) -> ev.Event | None:
        """The next event about a step, from the one after the next on."""
        for event in self.events[self.place + 1 :]:
            if getattr(event, "step", None) == step:
                return event
        return None


class Player:
    """Executor, step runner, journal, inbox, clock and gates of one process, all from its recorded events."""

    def __init__(self, state: RunState, recorded: RecordedEvents, rundir: str) -> None:
        self._state = state
        self._recorded = recorded
        self._rundir = rundir
        self._live: dict[str, Job] = {}
        self._unborn: set[str] = set()
        self._start = recorded.events[0].at
        self._now = 0.0
        self._idle = 0
        begun = state.resumed[-1] if state.resumed else state.started
        self._context = {"id": state.started.run, **begun.context} if begun and state.started else {}
        self._sent = -1  # the place of the last signal that was handed on
        self.records = recorded.first - 1
        self.lost: RecordsLost | None = None

    # Clock: recorded time.

    def stamp(self) -> str:
        """When the next event was recorded: so what is made of it has the same moment."""
        event = self._recorded.next
        return event.at if event else self._recorded.events[-1].at

    def monotonic(self) -> float:
        """Seconds since the first event."""
        event = self._recorded.next
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
        for event in self._recorded.events[self._recorded.place :]:
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
        """Compare an event of the scheduler with the record."""
        self.records = self._recorded.line
        self._recorded.play(event)
        self._idle = 0
        self._now = max(self._now, between(self._start, event.at))

    hold = append

    def flush(self) -> None:
        """Nothing is written."""

    sync = flush

    # The inbox.

    def take(self) -> list[int]:
        """Return the signal that comes now."""
        event = self._recorded.next
        if isinstance(event, ev.RunEnding) and event.why == "records":
            self.lost = RecordsLost(event.message)
        if self._sent == self._recorded.place or not self._is_signal(event):
            return []
        self._sent = self._recorded.place
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
        event = self._recorded.next
        self._idle += 1
        if event is None or self._idle > _STUCK:
            self._recorded.stick()
        assert event is not None
        self._move(event)
        found = []
        last = ""
        for ended in self._recorded.events[self._recorded.place :]:
            if _is_of_a_failure(ended, last):
                continue
            if isinstance(ended, ev.StepOpened) and (probe := self._live.pop(f"{ended.step}{PROBE}", None)):
                found.append((probe, Outcome(status="completed", reason="ran")))
                continue
            if not isinstance(ended, ev.AttemptEnded) or ended.step not in self._live:
                break  # later events come from the scheduler
            last = ended.step
            job = self._live.pop(ended.step)
            self._unborn.discard(ended.step)
            found.append((job, outcome_of(ended, self._rundir, job.log)))
        return found

    def attend(self) -> None:
        """Do nothing: nothing runs in a replay."""

    def output(self, _step: str, _start: int, _size: int) -> bytes | None:
        """Return None: nothing runs in a replay."""
        return None

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
        ended = self._recorded.next
        if not isinstance(ended, ev.AttemptEnded):
            return 0.5
        step = self._state.steps[ended.step]
        return chance_of(step.step.retries, len(step.tries), ended.delay)

    def why_interrupted(self) -> str:
        """Return why the signal came that cancels the run now."""
        ending = self._recorded.next
        return ending.message if isinstance(ending, ev.RunEnding) else ""

    # The cache.

    def find(self, step: Step, _state: RunState) -> dict[str, Any] | None:
        """Return the earlier result that was used again, where it is the next recorded event."""
        event = self._recorded.next
        if not isinstance(event, ev.StepRestored) or event.step != step.id:
            return None
        return {name: value for name, value in vars(event).items() if name not in ("at", "step")}

    def again(self, _state: RunState) -> dict[str, str]:
        """Return the steps of the round that was recorded next."""
        event = self._recorded.next
        return event.why if isinstance(event, ev.RoundStarted) else {}

    # The step runner.

    def prepare(self, step: Step, attempt: int, _state: RunState) -> Prepared:
        """Return the attempt that was recorded."""
        job = Job(step=step.id, attempt=attempt, argv=(), env={}, cwd="", log="", timeout=step.timeout)
        event = self._about(step.id, ev.AttemptStarted)
        if (
            event is None or event.n != attempt
        ):  # a gate comes first, or the record shows that it never started
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
        """Return the recorded source of a group; raises EvaluationError where it could not be opened."""
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
        event = self._recorded.events[-1]
        return (event.outputs, event.message) if isinstance(event, ev.RunEnded) else ({}, "")

    def conclude(self, _step: Step, _job: Job, outcome: Outcome) -> Outcome:
        """Its outputs are on record."""
        return outcome

    def holds(self, step: Step, state: RunState) -> bool:
        """Whether a condition holds; raises EvaluationError.

        Values of environment and files are not on record: then the recorded result counts.
        """
        if reads_only_recorded(step):
            return holds(step, state, self._context)
        event = self._about(step.id, ev.StepMoved)
        if event is None or not self._is_next(event):
            return True
        if event.reason == "refused":
            raise EvaluationError(event.message.removeprefix("its condition: "))
        return not (event.status == "skipped" and event.reason == "condition")

    def _about(self, step: str, kind: type[Any]) -> Any:
        for event in self._recorded.events[self._recorded.place :]:
            if type(event) is kind and getattr(event, "step", None) == step:
                return event
        return None

    def _is_next(self, event: ev.Event) -> bool:
        """Whether it is the first of all that comes about its step."""
        step = getattr(event, "step", "")
        for other in self._recorded.events[self._recorded.place :]:
            if getattr(other, "step", None) == step:
                return other is event
        return False

    # The gates.

    def judge(self, step: Step, _state: RunState, _job: Job | None) -> Passage:
        """Return the recorded decision on a step."""
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
        """Return the recorded decision on a failure."""
        opened, answered, _ = self._gate(step.id)
        after = state.steps[step.id].after
        known = answered or (after.answered if after else None)
        asked: dict[str, Any] = {"opened": opened, "answered": answered}
        if known:
            return Passage(answer="allow", **asked)
        return Passage(answer="ask", seconds=self._time_of(step.id), **asked)

    def _gate(self, step: str) -> tuple[ev.GateOpened | None, ev.GateAnswered | None, ev.Event | None]:
        """Return what is asked about a step now, what is answered at once, and the event after that."""
        coming = iter(self._recorded.events[self._recorded.place :])
        opened = answered = None
        event = next(coming, None)
        if isinstance(event, ev.GateOpened) and event.step == step:
            opened, event = event, next(coming, None)
        if isinstance(event, ev.GateAnswered) and event.step == step:
            answered, event = event, next(coming, None)
        return opened, answered, event

    def _time_of(self, step: str) -> float | None:
        """Return the seconds after which a gate was checked again because it timed out."""
        event = self._recorded.later(step)
        over = isinstance(event, ev.GateAnswered) and event.via == "timeout"
        if event is None or not (over or isinstance(event, ev.StepMoved)):
            return None
        return max(0.0, between(self._start, event.at) - self._now)

    def poll_replies(self, _state: RunState) -> list[ev.GateAnswered]:
        """Return the answers that come now."""
        found = []
        for event in self._recorded.events[self._recorded.place :]:
            if not isinstance(event, ev.GateAnswered) or event.via == "timeout":
                break
            found.append(event)
        return found

    def is_asking(self, _state: RunState) -> bool:
        """Whether the run waited for an answer at its terminal: it did not pause for its gates."""
        event = next(iter(self._recorded.events[self._recorded.place :]), None)
        return not (event is None or (isinstance(event, ev.RunEnding) and event.why == "gates"))

    # The planner.

    def wants(self, step: Step, _state: RunState) -> bool:
        """Whether a failure was replanned."""
        later = self._recorded.events[self._recorded.place :]
        return any(isinstance(event, ev.PlanningStarted) and step.id in event.steps for event in later)

    def begin(self, steps: tuple[str, ...], _state: RunState) -> None:
        """Its result is on record."""

    def events_of_planning(self) -> list[ev.Event]:
        """Return what happened in a planning from now on."""
        found: list[ev.Event] = []
        for event in self._recorded.events[self._recorded.place :]:
            if not isinstance(event, _PLANNING):
                break
            found.append(event)
            if isinstance(event, ev.PlanningEnded):
                break
        return found


def _is_of_a_failure(event: ev.Event, failed: str) -> bool:
    """Whether an event follows directly from the failure of a step."""
    if isinstance(event, ev.StepMoved) and event.reason in ("abort", "fail_fast"):
        return True
    if isinstance(event, ev.RunEnding):
        return event.why == "abort"
    return isinstance(event, ev.GateOpened | ev.GateAnswered | ev.StepMoved) and event.step == failed


class Planning:
    """The port `Planner`, from the recorded events."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.wants = player.wants
        self.begin = player.begin

    def events(self, _state: RunState) -> list[ev.Event]:
        """Return what happened since the last call."""
        return self._player.events_of_planning()

    def stop(self) -> None:
        """How it ended is on record."""


def played(recorded: RecordedEvents, run: Callable[[], object]) -> None:
    """Replay recorded events to their end, or to the first difference."""
    try:
        run()
    except ReplayEnded:
        return
    except InternalError:
        if recorded.difference is None and recorded.next is not None:
            recorded.difference = Difference(
                line=recorded.first + recorded.place, recorded=recorded.next, replayed=None
            )
        return
    if recorded.next is not None:
        recorded.difference = Difference(
            line=recorded.first + recorded.place, recorded=recorded.next, replayed=None
        )
