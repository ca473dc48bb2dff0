"""Replan failures during a run: which ones, what the model gets, and the next version of the plan from its draft.

`Replanner` implements the engine's port. The text of version n + 1 is that of version n with steps added. The loader
reads it like any file, it is compared with what was reviewed, and it is kept in the run's folder before an event names
it. Each step that has not started is kept or replaced; ended steps stay, and only planrun numbers steps.

Scripts that the run has copied are not read again, since an earlier step may have changed them; only scripts that only
the new version names are read.
"""

from __future__ import annotations

import re

from planrun.actions.environment import credentials_in
from planrun.app.copies import stored_text
from planrun.approval.digest import digest_of, named_plan, review
from planrun.engine.failures import is_typed
from planrun.errors import InvalidInput, InvalidPlan, PlanrunError
from planrun.llm import prompts
from planrun.llm.drafts import KEYS, STEPS, Fault
from planrun.llm.plantext import step_text
from planrun.model import events as ev
from planrun.model import graph
from planrun.plan.compile.canonical import plain
from planrun.plan.edit.page import append_steps
from planrun.plan.load import load_bytes
from planrun.plan.readers import copies
from planrun.planner.conversation import Accepted, Conversation, Question, Refused
from planrun.planner.inspect import Bounds, inspect, told_limits
from planrun.planner.repository import read_repository
from planrun.records import inputs
from planrun.records.ledger import sync_path
from planrun.reports.escape import line, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.session import Session
    from planrun.approval.digest import Reviewed
    from planrun.approval.gates import PolicyGates
    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.plan import Plan
    from planrun.model.policy import Origin
    from planrun.model.state import RunState


class Adoption:
    """Moves the run of a session to new versions of its plan; `gates`: None for a run without gates."""

    def __init__(self, session: Session, steps: Steps, gates: PolicyGates | None) -> None:
        self._session = session
        self._steps = steps
        self._gates = gates

    def next_version(
        self, data: bytes, state: RunState, origin: Origin, rewritten: Collection[str] = ()
    ) -> Plan:
        """Return the plan in `data` as the next version of the run's plan; raises InvalidPlan.

        An unchanged or replaced step keeps its origin; all others, and those in `rewritten`, have `origin`.
        """
        plan = load_bytes(data, state.plan.file, cache=False, read=copies(state.plan.files))
        version = int(state.named.get("version", state.plan.version)) + 1
        secrets = self._session.secrets
        before = {step.id: step for step in state.plan.steps}  # masked
        shown = {step.id: step for step in (secrets.masked(plan) if secrets else plan).steps}
        gone = {name for step in plan.steps for name in step.replaces}
        origins = {
            name: known.origin
            for name, known in before.items()
            if name in shown
            and name not in rewritten
            and (name in gone or plain(known) == plain(shown[name].but(origin=known.origin)))
        }
        return plan.but(
            version=version,
            steps=tuple([step.but(origin=origins.get(step.id, origin)) for step in plan.steps]),
        )

    def adopt(self, plan: Plan, state: RunState) -> dict[str, Any]:
        """Prepare the run for a version of `next_version`; returns the `plan` of PlanningEnded.

        The copies are on disk when this returns; only the event itself changes the state. No step may run
        meanwhile. Raises RecordsLost, InvalidInput for an invalid script and for a secret in a name.
        """
        secrets = self._session.secrets
        if secrets:
            secrets.refuse(plan, state.params)
        reviewed = self._review(plan, state)
        place = self._steps.place
        if reviewed.contents:
            for path in inputs.add_scripts(place.rundir, reviewed.contents):
                sync_path(path)
        inputs.add_plan(place.rundir, plan.version, plan.source)  # the new version includes no new file
        shown = secrets.masked(plan) if secrets else plan
        state.versions = {**state.versions, plan.version: shown}
        self._steps.place = place.but(scripts=reviewed.scripts)
        if self._gates:
            self._gates.use_digest(reviewed.digest)
        return named_plan(plan, reviewed)

    def _review(self, plan: Plan, state: RunState) -> Reviewed:
        found = review(plan, state.params, self._steps.place.workspace)
        kept = dict(state.named.get("scripts", {}))
        open_before = dict(state.named.get("uncovered", {}))
        scripts = {
            path: kept.get(path, digest) for path, digest in found.scripts.items() if path not in open_before
        }
        # A script that a step has removed since was also reviewed: its copy runs.
        scripts |= {path: digest for path, digest in kept.items() if path in found.uncovered}
        uncovered = {path: why for path, why in found.uncovered.items() if path not in scripts}
        uncovered |= {path: why for path, why in open_before.items() if path in found.scripts}
        fresh = {scripts[path] for path in scripts if path not in kept}
        return found.but(
            digest=digest_of(plan.digest, state.params, scripts),
            scripts=scripts,
            uncovered=uncovered,
            contents={digest: data for digest, data in found.contents.items() if digest in fresh},
        )


_FIRST = re.compile(r"\s*- id: \"?([A-Za-z0-9_][A-Za-z0-9._-]*)\"?\s*$")  # as planrun writes new steps
_NEVER_OK = ("failed", "blocked", "cancelled")  # statuses on which no step can depend


class Revision:
    """The next version of a run's plan from one draft; `failed` are the steps of the planning.

    `text`: the exact bytes of the run's current plan.
    """

    def __init__(self, state: RunState, failed: tuple[str, ...], text: bytes) -> None:
        self._state = state
        self.failed = failed
        self.text = text
        self.pending = tuple(
            [
                name
                for name, step_state in state.steps.items()
                if not step_state.ended and step_state.step.section == "steps" and name not in state.replaced
            ]
        )
        self._main = [name for name, step_state in state.steps.items() if step_state.step.section == "steps"]
        self._taken = frozenset([*state.steps, *state.dropped])
        if not all(name.isascii() and name.isdecimal() for name in self._taken):
            self.first = 0
        else:
            self.first = max(map(int, self._taken)) + 1

    def next_plan(self, draft: Draft, adoption: Adoption) -> tuple[Plan, tuple[str, ...]] | list[Fault]:
        """Return the next plan of the run, with the ids of its new steps, or every fault of the draft."""
        faults = [*self._about_ids(draft), *self._about_places(draft), *self._about_edges(draft)]
        if faults:
            return faults
        steps = self._complete(draft)
        new = tuple([step.id for step in steps])
        try:
            data = append_steps(self.text, self._file, "\n".join([step_text(step, 0, {}) for step in steps]))
            plan = adoption.next_version(data, self._state, "replanned", new)
        except InvalidPlan as error:
            return list(self._faults_of(error, new))
        except InvalidInput as error:
            return [Fault(path="steps", rule="plan", message=str(error))]
        return adoption.next_version(data, self._state, "replanned", self.later(plan, new)), new

    @property
    def _file(self) -> str:
        return str(self._state.named.get("file") or self._state.plan.file)

    # Checks of the draft.

    def _about_ids(self, draft: Draft) -> Iterator[Fault]:
        seen: set[str] = set()
        numbers = {str(self.first + at) for at in range(len(draft.steps))} if self.first else set()
        for at, step in enumerate(draft.steps):
            path = f"steps[{at}].id"
            if step.id in self._taken:
                message = f'"{step.id}" is, or was, the id of a step of this plan'
                yield Fault(path=path, rule="id_taken", message=message)
            elif step.id in seen:
                yield Fault(path=path, rule="id_twice", message=f'two new steps have the id "{step.id}"')
            elif step.id in numbers and step.id != str(self.first + at):
                message = f"the step at this place gets the number {self.first + at}"
                yield Fault(path=path, rule="id_order", message=message, allowed=(str(self.first + at),))
            seen.add(step.id)
            if not step.acts:
                message = "a step that takes the place of another has to say what it runs"
                yield Fault(path=f"steps[{at}].run", rule="required", message=message)

    def _about_places(self, draft: Draft) -> Iterator[Fault]:
        replaceable = (*self.failed, *self.pending)
        replaced = {name for step in draft.steps for name in step.replaces}
        for at, name in enumerate(draft.keep):
            if name not in self.pending:
                message = self._why_not(name, "kept")
                yield Fault(path=f"keep[{at}]", rule="not_pending", message=message, allowed=self.pending)
            elif name in replaced:
                message = f'"{name}" is replaced by a new step; it is one or the other'
                yield Fault(path=f"keep[{at}]", rule="kept_and_replaced", message=message)
        for at, step in enumerate(draft.steps):
            for which, name in enumerate(step.replaces):
                if name not in replaceable:
                    path = f"steps[{at}].replaces[{which}]"
                    message = self._why_not(name, "replaced")
                    yield Fault(path=path, rule="not_replaceable", message=message, allowed=replaceable)
        for name in self.failed:
            if name not in replaced:
                message = f'no new step replaces the failed step "{name}"'
                yield Fault(path="steps", rule="must_replace", message=message)

    def _why_not(self, name: str, what: str) -> str:
        found = self._state.steps.get(name)
        if found is None:
            return f'there is no step "{name}"'
        if found.step.section == "finally":
            return f'"{name}" stands under finally and cannot be {what}'
        return (
            f'"{name}" has {found.status} and cannot be {what}'
            if found.ended
            else f'"{name}" cannot be {what}'
        )

    def _about_edges(self, draft: Draft) -> Iterator[Fault]:
        new = [step.id for step in draft.steps]
        kept = [name for name in draft.keep if name in self.pending]
        gone = {name for step in draft.steps for name in step.replaces} | (set(self.pending) - set(kept))
        for at, step in enumerate(draft.steps):
            for which, name in enumerate(step.depends_on):
                why = self._why_no_edge(name, step, new, gone)
                if why:
                    path = f"steps[{at}].depends_on[{which}]"
                    done = [name for name in self._main if self._state.steps[name].status == "completed"]
                    yield Fault(
                        path=path,
                        rule="depends_on",
                        message=why,
                        allowed=(*done, *kept, *[name for name in new if name != step.id]),
                    )

    def _why_no_edge(self, name: str, step: DraftStep, new: list[str], gone: Iterable[str]) -> str:
        if name == step.id:
            return "a step cannot depend on itself"
        if name in new:
            return ""
        found = self._state.steps.get(name)
        if found is None or name not in self._main:
            return f'there is no step "{name}" that a new step can depend on'
        if name in gone or name in self._state.replaced:
            return f'"{name}" is replaced; depend on what takes its place'
        if found.status in _NEVER_OK and self._state.tolerance(name) != "continue":
            return f'"{name}" has {found.status}: what depends on it would never start'
        return ""

    # The next version.

    def _complete(self, draft: Draft) -> list[DraftStep]:
        """Return the new steps with their final ids; the last one replaces the steps that the draft did not keep."""
        steps = list(draft.steps)
        if self.first:
            names = {step.id: str(self.first + at) for at, step in enumerate(steps)}
            steps = [_renamed(step, names) for step in steps]
        placed = {*draft.keep, *[name for step in steps for name in step.replaces]}
        left = tuple([name for name in self.pending if name not in placed])
        if left:
            steps[-1] = steps[-1].but(replaces=(*steps[-1].replaces, *left))
        return steps

    def later(self, plan: Plan, new: Iterable[str]) -> set[str]:
        """Return the new steps and all after them, which were reviewed in another order."""
        found, waits = set(new), graph.waits(plan.main())
        left = set(self.pending) - {name for step in plan.steps for name in step.replaces}
        for name in graph.order(waits):
            if name in left and not found.isdisjoint(waits[name]):
                found.add(name)
        return found

    def _faults_of(self, error: InvalidPlan, new: tuple[str, ...]) -> Iterator[Fault]:
        """Yield the problems of the whole text at the places that the model can repair."""
        lines = error.sources.get(self._file, b"").decode("utf-8", "replace").splitlines()
        for problem in error.problems:
            name = _step_at(lines, problem.line)
            named = [other for other in new if f'"{other}"' in problem.message]
            name = name if name in new else named[0] if named else name
            path = f"steps[{new.index(name)}]" if name in new else "keep" if name in self.pending else "steps"
            hint = f"; {problem.hint}" if problem.hint else ""
            yield Fault(path=path, rule=problem.code, message=f"{problem.message}{hint}")


def _step_at(lines: list[str], number: int) -> str:
    """Return the id of the step around a line, for steps whose first key is `id`."""
    for text in reversed(lines[:number]):
        match = _FIRST.match(text)
        if match:
            return match[1]
    return ""


def _renamed(step: DraftStep, names: dict[str, str]) -> DraftStep:
    """Number a step and its references to other new steps."""

    def of(name: str) -> str:
        return names.get(name, name)

    changed = {old: new for old, new in names.items() if old != new}
    rename = _references(changed) if changed else str
    texts = {
        key.name: rename(getattr(step, key.name)) for key in KEYS if key.kind == "text" and key.name != "id"
    }
    return step.but(**texts, id=of(step.id), depends_on=tuple(map(of, step.depends_on)))


def _references(names: dict[str, str]) -> Callable[[str], str]:
    """Return a function that renames steps in expressions: `steps.a.`, `steps['a']`, `step_a_failed`."""
    some = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    dotted = re.compile(rf"(?<![\w.])steps\.(?:{some})(?=\.)")
    quoted = re.compile(rf"(?<![\w.])steps\[\s*(['\"])({some})\1\s*\]")
    seeded = re.compile(rf"(?<![\w.])step_({some})_(?=(?:failed|succeeded)\b)")

    def rename(text: str) -> str:
        text = dotted.sub(lambda found: f'steps["{names[found[0].partition(".")[2]]}"]', text)
        text = quoted.sub(lambda found: f'steps["{names[found[2]]}"]', text)
        return seeded.sub(lambda found: f"step_{names[found[1]]}_", text)

    return rename


if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.approval.rules import Layers
    from planrun.llm.budget import Budget
    from planrun.llm.drafts import Draft, Fault
    from planrun.llm.projectfile import ProjectFile
    from planrun.model.plan import Plan, Step
    from planrun.model.planning import Llm
    from planrun.model.state import RunState
    from planrun.planner.conversation import Result
    from planrun.ports import Clock, Model

    Events = Generator["ev.Event | None", None, None]

_LONGEST_MESSAGE = 1000  # characters of an analysis, and of the message of an end
_LONGEST_TEXT = 600  # characters of a step's command, in the table
_MOST_PROBLEMS = 20


class ReplanContext:
    """The context of replans in one run; `open_model` opens the model for the first one."""

    def __init__(self, llm: Llm, layers: Layers, open_model: Callable[[], Model], clock: Clock) -> None:
        self.llm = llm
        self.layers = layers
        self.open_model = open_model
        self.clock = clock
        self.context: Mapping[str, Any] = {}
        self.project: ProjectFile | None = None  # what models should know of the project
        self.mask: Callable[[str], str] = str  # hides secrets in what is told of the project


class Replanner:
    """Replans failures of one run. `budget` returns its remaining budget."""

    def __init__(
        self,
        context: ReplanContext,
        place: RunEnvironment,
        adoption: Adoption,
        budget: Callable[[RunState], Budget],
    ) -> None:
        self._context = context
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
        """Return whether the failure of a step, which has ended, is replanned."""
        return wants(step, state)

    def begin(self, steps: tuple[str, ...], state: RunState) -> None:
        """Begin to replan failed steps; no step runs meanwhile."""
        self._stopped = False
        self._events = self._plan(steps, state)

    def events(self, state: RunState) -> list[ev.Event]:  # noqa: ARG002 - the state is that of `begin`
        """Return the events since the last call, without waiting.

        A list ends with an event that must be recorded before any data leaves this machine.
        """
        result: list[ev.Event] = []
        for event in self._events or ():
            if event is None:
                break
            result.append(event)
            if isinstance(event, ev.ModelAsked | ev.PlanningEnded):
                break
        return result

    def stop(self) -> None:
        """End the current planning; its end is among the next events."""
        self._stopped = True
        if self._conversation:
            self._conversation.stop()

    def close(self) -> None:
        """Leave no process running."""
        if self._model:
            self._model.close()

    # One planning.

    def _plan(self, steps: tuple[str, ...], state: RunState) -> Events:
        context = self._context
        number = (state.planning.count("replan") if state.planning else 0) + 1
        yield ev.PlanningStarted(
            at=context.clock.stamp(), purpose="replan", steps=steps, model=context.llm.model, n=number
        )
        try:
            fields = yield from self._converse(steps, state)
        except (
            PlanrunError
        ) as error:  # a copy of the plan or a script that cannot be read, a disk that is full
            fields = {"outcome": "failed", "message": line(str(error), _LONGEST_MESSAGE)}
        yield ev.PlanningEnded(at=context.clock.stamp(), purpose="replan", steps=steps, **fields)

    def _converse(
        self, steps: tuple[str, ...], state: RunState
    ) -> Generator[ev.Event | None, None, dict[str, Any]]:
        if self._stopped:
            return {"outcome": "stopped"}
        result = yield from self.ask(steps, state)
        return self._end(result, state)

    def ask(self, steps: tuple[str, ...], state: RunState) -> Generator[ev.Event | None, None, Result]:
        """Yield the events until the model has answered, None while waiting; nothing of the answer is kept.

        The value of an accepted answer is the plan and the explanation of the model.
        """
        self._model = self._model or self._context.open_model()
        calls = len(state.planning.calls) if state.planning else 0
        conversation = self._conversation = Conversation(
            self._model, self._context.llm, self._budget(state), self._context.clock, call=calls
        )
        revision = Revision(state, steps, stored_text(self._place.rundir, state.named))
        question = Question(
            purpose="replan",
            system=prompts.REPLAN_SYSTEM,
            pieces=prompts.question(self._situation(steps, state, revision)),
            check=lambda draft: self._check(draft, state, revision),
        )
        try:
            return (yield from conversation.ask(question))
        finally:
            self._conversation = None

    def _check(self, draft: Draft, state: RunState, revision: Revision) -> Accepted | Refused | list[Fault]:
        found = revision.next_plan(draft, self._adoption)
        if isinstance(found, list):
            return found
        plan, new = found
        return inspect(plan, new, self._bounds(state, revision)) or Accepted(value=(plan, draft.analysis))

    def _bounds(self, state: RunState, revision: Revision) -> Bounds:
        return Bounds(
            before=as_written(state, revision.text, self._adoption),
            layers=self._context.layers,
            context=self._context.context,
            failed=frozenset(revision.failed),
            pending=frozenset(revision.pending),
            inherited=self._inherited,
            form=STEPS,
        )

    def _end(self, result: Result, state: RunState) -> dict[str, Any]:
        """Return how a planning ended, as fields of its event; an accepted plan is on disk then."""
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

    # The prompt.

    def _situation(self, steps: tuple[str, ...], state: RunState, revision: Revision) -> prompts.Situation:
        plan, llm = state.plan, self._context.llm
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
            policy=told_limits(self._context.layers),
            steps=[_row(step, state) for step in plan.steps],
            failed=[_failure(name, state, self._place.rundir) for name in steps],
            budget=budget,
            pending=revision.pending,
            numbers=revision.first,
            log_bytes=_log_bytes(state),
            project=self._context.project,
            about=prompts.described(read_repository(self._place.workspace), self._context.mask, listed=False),
        )


def wants(step: Step, state: RunState) -> bool:
    """Return whether a failure is replanned: the step requests it, or the plan does for its class."""
    step_state = state.steps[step.id]
    if step.section != "steps" or step_state.reason == "denied" or left_over(state) < 1:
        return False
    if state.planning and state.planning.is_denied:
        return False
    if step.on_failure != "replan" and state.handlers.get(step.id):  # the plan has a handler for it
        return False
    if step.replan != "fatal" or step_state.error is None:
        return step.replan == "any"
    # No call for a guess: a class inferred from a text alone triggers no replan.
    return step_state.error["class"] == "fatal" and is_typed(step_state.error)


def left_over(state: RunState) -> int:
    """Return how many plannings a run has left: those that a budget or the end of the run prevented do not count."""
    used = 0
    for event in state.planning.ended if state.planning else ():
        used += event.purpose == "replan" and event.outcome not in ("budget", "stopped")
    return state.plan.limits.max_replans - used


def _row(step: Step, state: RunState) -> dict[str, Any]:
    """Return a row about one step for the prompt."""
    step_state = state.steps[step.id]
    row: dict[str, Any] = {"id": step.id, "status": step_state.status}
    if step.title:
        row["title"] = line(step.title, 200)
    if step_state.reason and step_state.status != "completed":
        row["reason"] = step_state.reason
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
    row["does"] = step.action.written()[:_LONGEST_TEXT]
    row["risk"] = step.risk
    return row


def _failure(name: str, state: RunState, rundir: str) -> dict[str, Any]:
    step_state = state.steps[name]
    error = step_state.error or {
        "class": "unknown",
        "rule": "none",
        "message": step_state.message or step_state.reason,
    }
    log = step_state.attempts[-1].started.log if step_state.attempts else ""
    return {
        "id": name,
        "error": error,
        "log": tail(rundir, log, _log_bytes(state)) if log else "",
    }


def _log_bytes(state: RunState) -> int:
    """Return how much of the end of a log the model gets."""
    return state.plan.limits.output_bytes or prompts.LOG_BYTES


def as_written(state: RunState, text: bytes, adoption: Adoption) -> Plan:
    """Return the run's plan with the exact text of its file, which the state may hold masked."""
    plan = adoption.next_version(text, state, "file")
    return plan.but(version=state.plan.version)
