"""Language models in a run: what a plan allows them, the questions to them, their usage, their results.

Also the display names of steps that replace others (`Step 3'`).
"""

from __future__ import annotations

from planrun.errors import InternalError
from planrun.model import events as ev
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.plan import Plan
    from planrun.model.state import RunState

    PlanningEvent = (
        ev.PlanningStarted
        | ev.ModelAsked
        | ev.ModelRepeated
        | ev.ModelAnswered
        | ev.BudgetCrossed
        | ev.PlanningEnded
    )

    from typing import Any, Literal

    Effort = Literal["low", "medium", "high", "xhigh", "max"]
    ReplanOn = Literal["fatal", "any", "never"]


class Call:
    """One call to a model, complete or not; `planning` is its purpose."""

    __slots__ = ("answered", "asked", "planning")

    def __init__(self, asked: ev.ModelAsked, planning: ev.PlanningStarted | None) -> None:
        self.asked = asked
        self.planning = planning
        self.answered: ev.ModelAnswered | None = None

    def used(self, resource: str) -> float:
        """Tokens or usd that it cost; an unknown usage counts as reserved."""
        return amount(self.answered, self.asked.reserved, resource)


def amount(answered: ev.ModelAnswered | None, reserved: Mapping[str, float], resource: str) -> float:
    """Return how much of a resource a call counts for: as reserved, as long as its usage is unknown.

    Tokens that the service reads from its cache count as dollars alone: a conversation sends all of itself each turn.
    """
    if answered is None or (answered.is_estimate and not answered.usage):
        return reserved.get(resource, 0)
    if resource == "tokens":
        return sum(
            value for name, value in answered.usage.items() if name not in ("usd", "cache_read_tokens")
        )
    return answered.usage.get(resource, 0)


class Planning:
    """Everything about models in one run, in the order in which it happened."""

    def __init__(self) -> None:
        self.started: list[ev.PlanningStarted] = []
        self.ended: list[ev.PlanningEnded] = []
        self.calls: list[Call] = []
        self.crossed: list[ev.BudgetCrossed] = []

    @property
    def going(self) -> ev.PlanningStarted | None:
        """The planning that has no end yet."""
        return self.started[-1] if len(self.started) > len(self.ended) else None

    @property
    def is_denied(self) -> bool:
        """Whether a ceiling ever denied the output of a model."""
        return any(event.outcome == "denied" for event in self.ended)

    def denies(self, state: RunState) -> bool:
        """Whether a ceiling forbade what a model wrote for a step, and no later plan replaced that step."""
        names = {name for event in self.ended if event.outcome == "denied" for name in event.steps}
        left = [state.steps[name] for name in names if name in state.steps]
        return any(
            found.status not in ("completed", "skipped") and state.tolerance(found.step.id) is None
            for found in left
        )

    def count(self, purpose: str) -> int:
        """How many plannings of a purpose there were."""
        return sum(event.purpose == purpose for event in self.started)

    def used(self, resource: str) -> float:
        """How much of a budget all calls used up: tokens, usd, or turns."""
        if resource == "turns":
            return len(self.calls)
        return sum(call.used(resource) for call in self.calls)


def fold_planning(state: RunState, event: PlanningEvent | ev.RunResumed) -> None:
    """Take an event about models, or a resumption, into the state of a run; called by `RunState.apply` alone."""
    planning = state.planning = state.planning or Planning()
    if isinstance(event, ev.RunResumed):
        close(state, event.at)
    elif isinstance(event, ev.PlanningStarted):
        close(state, event.at)
        planning.started.append(event)
    elif isinstance(event, ev.ModelAsked):
        planning.calls.append(Call(event, planning.going))
    elif isinstance(event, ev.ModelAnswered):
        found = [call for call in planning.calls if call.asked.call == event.call]
        if not found:
            raise InternalError(f"there was no call {event.call}")
        found[-1].answered = event
    elif isinstance(event, ev.ModelRepeated):
        return  # its answer has the number of attempts
    elif isinstance(event, ev.BudgetCrossed):
        planning.crossed.append(event)
    else:
        planning.ended.append(event)
        if event.outcome == "revised":
            state.revise(event.plan)
            state.ask_anew()


def close(state: RunState, at: str) -> None:
    """Give a planning an end whose planrun was killed."""
    planning = state.planning
    left = planning.going if planning else None
    if planning and left:
        planning.ended.append(
            ev.PlanningEnded(at=at, purpose=left.purpose, steps=left.steps, outcome="stopped", message="lost")
        )


class Llm(Record):
    """How a model is asked, and when; times in seconds.

    `replan_on_failure`: which failures of steps that do not say it are planned anew: those of class fatal, all that
    would count, or none.
    """

    model: str = ""  # empty: the command line names one
    effort: Effort = "medium"
    plan_max_tokens: int = 8000  # the longest answer; doubled once when one is cut off
    max_generated_steps: int = 10
    planning_timeout: float = 300.0  # for all calls of one planning
    timeout: float = 120.0  # one call with its repeats
    retries: int = 5  # repeats of a call
    max_context_tokens: int | None = None  # of all that is sent in one call; None: 100,000, of agents 120,000
    clear_context: bool = True  # the agent of a step begins with a conversation of its own
    delegate_steps: bool = True  # each step with an agent has one of its own, which works on a copy
    fallback: Literal["fail", "template"] = "fail"
    replan_on_failure: ReplanOn = "fatal"
    enabled: bool = True
    extra_body: Mapping[str, Any] = {}  # more fields of each request, as the service knows them
    # Of agents that work together: what was given of the fields in planrun.model.collaboration.
    delegation: Mapping[str, Any] = {}
    memory: Mapping[str, Any] = {}
    messenger: Mapping[str, Any] = {}
    reflection: Mapping[str, Any] = {}


def lineage(plan: Plan) -> dict[str, str]:
    """Return what the steps are called that take the place of others, by id.

    A step is called as the one that it replaces, with one more prime: 3', and 3'' when that was replaced, too.
    """
    found: dict[str, str] = {}
    replacing = {step.id: step.replaces[0] for step in plan.steps if step.replaces}
    for name in replacing:
        at, primes = name, ""
        while at in replacing and len(primes) <= len(replacing):
            at, primes = replacing[at], primes + "'"
        found[name] = at + primes
    return found
