"""The scheduler and its helpers; here: options and dependencies of a run, and the interface that the helpers use."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from planrun.engine.queue import Frontier, Queue
    from planrun.errors import RecordsLost
    from planrun.model.events import Event
    from planrun.model.job import Outcome
    from planrun.model.plan import Edge, Schedule, Step
    from planrun.model.state import RunState
    from planrun.ports import Cache, Clock, Executor, Inbox, Journal, Locks, Masks, Sink, StepRunner

    class RunContext(Protocol):
        """A run as the modules beside the scheduler see it; the scheduler implements it.

        All times are monotonic seconds.
        """

        state: RunState
        dependencies: Dependencies
        options: Options
        clock: Clock
        section: str  # steps, rollback or finally
        section_start: float | None  # None: the time limit of the section has been enforced
        cleanup_until: float | None  # when the cleanup after a signal must end; None: no signal arrived
        timers: list[tuple[float, str]]  # heap of (when, step): next attempts and timeouts of gates
        given_up: bool  # the run ends because its records cannot be written
        frontier: Frontier
        queue: Queue

        @property
        def lost(self) -> RecordsLost | None:
            """The first record that could not be written; from then on nothing starts."""

        @property
        def may_continue(self) -> bool:
            """Whether an attempt may start its next process."""

        def emit(self, event: Event) -> None:
            """Apply an event to the state, append it to the ledger and pass it to the sinks."""

        def sync(self) -> None:
            """Make every recorded event survive a power cut."""

        def evaluate(self, step: Step, edges: Sequence[Edge] | None = None) -> bool:
            """Evaluate edges, selection and condition of a step: True when it may start, else the step ends."""

        def is_excluded(self, step: Step) -> bool:
            """Whether a step is not among those that were selected."""

        def restore(self, step: Step) -> bool:
            """Complete a step with an earlier result of the cache; False when there is none."""

        def conclude(self, step: Step, attempt: int, outcome: Outcome) -> None:
            """Record the end of an attempt; retry or end its step."""

        def move(self, name: str, status: str, reason: str, message: str = "") -> None:
            """Record a status in which a step ends, and settle the step."""

        def settle(self, name: str) -> None:
            """Release what waits for the end of a step."""

        def abort(self, step: Step) -> None:
            """Stop the run or the group of a failed step if its settings require that."""

        def rest(self, seconds: float) -> None:
            """Start nothing for a while, or until the run is ended or paused."""

        def go_on(self) -> None:
            """Run the section that was entered to its end."""

        def enter(self, steps: Sequence[Step]) -> None:
            """Make frontier and queue of a section from the state."""

        def drive(self, section: str) -> None:
            """Run a section to its end."""

        def evaluate_ready(self) -> None:
            """Evaluate every step whose edges are settled."""


class Options(Record):
    """The options of a run that the command line sets."""

    jobs: int
    schedule: Schedule
    selected: frozenset[str] | None = None  # ids of the steps that may run; None: all
    strict: bool = False
    fail_on_flaky: bool = False
    replan: tuple[str, ...] = ()  # steps that failed before and are replanned before anything starts
    seconds: Mapping[str, float] = {}
    rollback: bool = True  # a failed run is rolled back
    cleanup_only: bool = False  # finish the pending cleanup of an earlier process and start nothing else
    proposes: bool = False  # patches of agents are kept, and not applied
    asks: bool = True  # a step that needs an approval waits for it; otherwise it is denied


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
    chance: Callable[[], float] | None = None  # places a delay in its jitter, 0…1; None: random
    locks: Locks | None = None  # of this host; None: no step has any
    cache: Cache | None = None  # None: no step is cached
    # Returns the steps to repeat in another round, each with the reason; None: the run has no rounds.
    again: Callable[[RunState], Mapping[str, str]] | None = None
    why_interrupted: Callable[[], str] | None = None  # why a signal came, where that is known
    # Takes the steps that are due out of the timers; None: `scheduler.due`.
    due: Callable[[list[tuple[float, str]], float], list[str]] | None = None
