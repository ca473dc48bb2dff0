"""Have a model plan anew while a run goes on: which failures it is asked about, what it is told, what is made of it.

The port `Planner` of the engine. Text of version n + 1 is that of version n with steps added; it comes through the same
door as any file, is held against what was reviewed, and kept in the run's folder before any event names it.
"""

from __future__ import annotations

from planrun.app.copies import stored_text
from planrun.app.describing import action
from planrun.app.planning.conversing import Accepted, Conversation, Question, Refused
from planrun.app.planning.inspecting import Bounds, inspect
from planrun.app.planning.revising import Revision
from planrun.engine.errorclasses import is_typed
from planrun.errors import PlanrunError
from planrun.llm.prompts import replan as prompts
from planrun.model import events as ev
from planrun.policy.deciding import in_force
from planrun.reports.clean import line
from planrun.reports.logs import tail
from planrun.steps.environment import credentials_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

    from planrun.app.planning.adopting import Adoption
    from planrun.app.planning.conversing import Result
    from planrun.llm.budget import Budget
    from planrun.llm.drafts import Draft
    from planrun.llm.faults import Fault
    from planrun.model.llm import Llm
    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState
    from planrun.policy.deciding import Layers
    from planrun.ports import Clock, Model
    from planrun.steps.runner import Place

    Events = Generator["ev.Event | None", None, None]

_LONGEST_MESSAGE = 1000  # characters of an analysis, and of what is said of an end
_LONGEST_TEXT = 600  # characters of what a step runs, in the table
_MOST_PROBLEMS = 20


class Desk:
    """What whoever plans anew in one run works with; `open_model` opens the model with the first planning."""

    def __init__(self, llm: Llm, layers: Layers, open_model: Callable[[], Model], clock: Clock) -> None:
        self.llm = llm
        self.layers = layers
        self.open_model = open_model
        self.clock = clock
        self.context: Mapping[str, Any] = {}


class Replanner:
    """Plans anew in one run. `budget` gives what may be spent in it, with what was spent before."""

    def __init__(
        self, desk: Desk, place: Place, adoption: Adoption, budget: Callable[[RunState], Budget]
    ) -> None:
        self._desk = desk
        self._place = place
        self._adoption = adoption
        self._budget = budget
        self._inherited = credentials_in(place.env)
        self._model: Model | None = None
        self._conversation: Conversation | None = None
        self._events: Events | None = None
        self._stopped = False

    # The port.

    def wants(self, step: Step, state: RunState) -> bool:
        """Say whether the failure of a step, which has ended, is planned anew."""
        return wants(step, state)

    def begin(self, steps: tuple[str, ...], state: RunState) -> None:
        """Begin to plan anew for failed steps; nothing else runs meanwhile."""
        self._stopped = False
        self._events = self._plan(steps, state)

    def events(self, state: RunState) -> list[ev.Event]:  # noqa: ARG002 - the state is that of `begin`
        """Return what happened since the last call, without waiting.

        A list ends with an event that has to be on record before anything leaves this machine.
        """
        found: list[ev.Event] = []
        for event in self._events or ():
            if event is None:
                break
            found.append(event)
            if isinstance(event, ev.ModelAsked | ev.PlanningEnded):
                break
        return found

    def stop(self) -> None:
        """End the planning that is under way; its end is among the next events."""
        self._stopped = True
        if self._conversation:
            self._conversation.stop()

    def close(self) -> None:
        """Leave no process behind."""
        if self._model:
            self._model.close()

    # One planning.

    def _plan(self, steps: tuple[str, ...], state: RunState) -> Events:
        desk = self._desk
        number = (state.planning.count("replan") if state.planning else 0) + 1
        yield ev.PlanningStarted(
            at=desk.clock.stamp(), purpose="replan", steps=steps, model=desk.llm.model, n=number
        )
        try:
            fields = yield from self._talk(steps, state)
        except (
            PlanrunError
        ) as error:  # a copy of the plan or a script that cannot be read, a disk that is full
            fields = {"outcome": "failed", "message": line(str(error), _LONGEST_MESSAGE)}
        yield ev.PlanningEnded(at=desk.clock.stamp(), purpose="replan", steps=steps, **fields)

    def _talk(
        self, steps: tuple[str, ...], state: RunState
    ) -> Generator[ev.Event | None, None, dict[str, Any]]:
        if self._stopped:
            return {"outcome": "stopped"}
        result = yield from self.ask(steps, state)
        return self._end(result, state)

    def ask(self, steps: tuple[str, ...], state: RunState) -> Generator[ev.Event | None, None, Result]:
        """Yield what happens until the model has answered, None while it thinks; nothing is kept of the answer.

        The value of what is accepted is the plan and what the model says about it.
        """
        self._model = self._model or self._desk.open_model()
        calls = len(state.planning.calls) if state.planning else 0
        talk = self._conversation = Conversation(
            self._model, self._desk.llm, self._budget(state), self._desk.clock, call=calls
        )
        revision = Revision(state, steps, stored_text(self._place.rundir, state.named))
        question = Question(
            purpose="replan",
            system=prompts.SYSTEM,
            prompt=prompts.question(self._situation(steps, state, revision)),
            check=lambda draft: self._check(draft, state, revision),
        )
        try:
            return (yield from talk.ask(question))
        finally:
            self._conversation = None

    def _check(self, draft: Draft, state: RunState, revision: Revision) -> Accepted | Refused | list[Fault]:
        found = revision.next_plan(draft, self._adoption)
        if isinstance(found, list):
            return found
        plan, new = found
        bounds = Bounds(
            before=_as_written(state, revision.text, self._adoption),
            layers=self._desk.layers,
            context=self._desk.context,
            failed=frozenset(revision.failed),
            pending=frozenset(revision.pending),
            inherited=self._inherited,
        )
        return inspect(plan, new, bounds) or Accepted(value=(plan, draft.analysis))

    def _end(self, result: Result, state: RunState) -> dict[str, Any]:
        """Return how a planning ended, as fields of its event; what was accepted is on disk then."""
        known: dict[str, Any] = {"rounds": result.rounds, "message": line(result.message, _LONGEST_MESSAGE)}
        if result.outcome == "accepted":
            plan, analysis = result.value
            named = self._adoption.adopt(plan, state)
            return {
                **known,
                "outcome": "revised",
                "plan": named,
                "message": line(analysis, _LONGEST_MESSAGE),
            }
        problems = tuple([line(fault.text, _LONGEST_MESSAGE) for fault in result.faults[:_MOST_PROBLEMS]])
        return {**known, "outcome": result.outcome, "refusals": result.refusals, "problems": problems}

    # What the model is told.

    def _situation(self, steps: tuple[str, ...], state: RunState, revision: Revision) -> prompts.Situation:
        plan, llm = state.plan, self._desk.llm
        left = left_over(state)
        budget = [
            f"at most {llm.max_generated_steps} new steps",
            f"{left - 1} more plannings after this one"
            if left > 1
            else "this is the last planning of the run",
        ]
        return prompts.Situation(
            goal=plan.goal,
            plan=plan.title or plan.name,
            policy=in_force(self._desk.layers),
            steps=[_row(step, state) for step in plan.steps],
            failed=[_failure(name, state, self._place.rundir) for name in steps],
            budget=budget,
            pending=revision.pending,
            numbers=revision.first,
        )


def wants(step: Step, state: RunState) -> bool:
    """Say whether a failure is one that a model is asked about: the step says so, or the plan does for its class."""
    found = state.steps[step.id]
    if step.section != "steps" or found.reason == "denied" or left_over(state) < 1:
        return False
    if state.planning and state.planning.is_denied:
        return False
    if step.on_failure != "replan" and state.handlers.get(step.id):  # the plan has somebody for it
        return False
    if step.replan != "fatal" or found.error is None:
        return step.replan == "any"
    # A model is not paid on a guess: a class that only a text told asks for nothing.
    return found.error["class"] == "fatal" and is_typed(found.error)


def left_over(state: RunState) -> int:
    """Return how many plannings anew a run has left: those that a budget or an end kept from their own count not."""
    used = 0
    for event in state.planning.ended if state.planning else ():
        used += event.purpose == "replan" and event.outcome not in ("budget", "stopped")
    return state.plan.limits.max_replans - used


def _row(step: Step, state: RunState) -> dict[str, Any]:
    """What the model is told of one step."""
    found = state.steps[step.id]
    row: dict[str, Any] = {"id": step.id, "status": found.status}
    if step.title:
        row["title"] = line(step.title, 200)
    if found.reason and found.status != "completed":
        row["reason"] = found.reason
    if step.edges:
        row["depends_on"] = [
            edge.on if edge.kind in ("ok", "open") else {edge.on: edge.kind} for edge in step.edges
        ]
    if step.condition_text:
        row["condition"] = step.condition_text
    if step.outputs:
        row["outputs"] = list(step.outputs)
    if step.section == "finally":
        row["section"] = "finally"
    row["does"] = action(step)[:_LONGEST_TEXT]
    row["risk"] = step.risk
    return row


def _failure(name: str, state: RunState, rundir: str) -> dict[str, Any]:
    found = state.steps[name]
    error = found.error or {"class": "unknown", "rule": "none", "message": found.message or found.reason}
    log = found.attempts[-1].started.log if found.attempts else ""
    return {
        "id": name,
        "error": error,
        "log": tail(rundir, log, prompts.LOG_BYTES) if log else "",
    }


def _as_written(state: RunState, text: bytes, adoption: Adoption) -> Plan:
    """Return the plan that the run has with the exact words of its file, which the state may hold masked."""
    plan = adoption.next_version(text, state, "file")
    return plan.but(version=state.plan.version)
