"""A what-if: the recorded results of a run under another plan or policy, with the real scheduler."""

from __future__ import annotations

import os

from planrun.actions.command import SH
from planrun.actions.environment import RunEnvironment
from planrun.actions.prepare import Steps
from planrun.app.history import kept, weights
from planrun.app.selection import select
from planrun.approval.assess import as_written
from planrun.approval.digest import review
from planrun.approval.policies import Ceilings, ceilings_of, facts_of, layers_of, restore
from planrun.approval.rules import decide
from planrun.approval.scripts import names_of_steps
from planrun.engine import Dependencies, Options
from planrun.engine.gated import GatedScheduler
from planrun.engine.scheduler import Scheduler
from planrun.errors import EvaluationError
from planrun.executors.virtual import VirtualClock, VirtualExecutor
from planrun.expressions.check import references
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.events import GateOpened
from planrun.model.job import Job, Outcome, Passage, Prepared
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.plan.compile.canonical import plain
from planrun.plan.keys.params import keep_params
from planrun.plan.keys.table import fields_for
from planrun.records import history
from planrun.replays.results import calls, outcome_of
from planrun.reports import facts
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.model.plan import Plan, Step
    from planrun.model.progress import StepState

# Fields that do not change a step's action: only when, whether and how often it runs, and its texts.
_AROUND = frozenset(fields_for("people", "flow"))
_ASSUMED = Outcome(status="completed", reason="ran", exit_code=0)


class Case(Record):
    """The case: a recorded run, the plan and the policies that it would have been under.

    `changed`: scripts of the workspace that are not what ran then. `seconds`: what is known of durations besides.
    `same`: whether everything that was approved is as it was then.
    """

    before: RunState
    plan: Plan
    params: Mapping[str, Any]
    rundir: str
    layers: Layers | None  # None: every step may start
    changed: dict[str, set[str]] = {}  # noqa: RUF012 - never written
    seconds: Mapping[str, float] = {}
    same: bool = True


class WhatIf:
    """Step runner, gates, journal and inbox of such a run; `assumed` and `unknown` hold the reasons, by step."""

    def __init__(self, case: Case, steps: Steps, clock: VirtualClock) -> None:
        self.assumed: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self.records = 0
        self.lost = None
        self._case = case
        self._steps = steps
        self._clock = clock
        self._known = {**case.before.dropped, **case.before.steps}
        self._next: dict[str, Outcome] = {}
        self._taken: dict[str, int] = {}

    # Journal and inbox.

    def append(self, _event: ev.Event) -> None:
        """Nothing is written."""
        self.records += 1

    hold = append

    def flush(self) -> None:
        """Nothing is written."""

    sync = flush

    def take(self) -> list[int]:
        """No signal comes: those of the record belong to moments that may not come."""
        return []

    # The step runner.

    def play(self, job: Job) -> Outcome:
        """Return how an attempt ends."""
        return self._next[job.step]

    def prepare(self, step: Step, attempt: int, state: RunState) -> Prepared:
        """Return the next attempt that is on record, or one that is assumed."""
        if step.action.asks and not self._foreign(step):
            try:
                return self._steps.prepare(step, attempt, state)
            except EvaluationError:  # what it asks depends on something unknown
                return Prepared(fingerprint="", outcome=_ASSUMED)
        self._next[step.id] = outcome = self._outcome(step)
        if not step.action.is_command and not outcome.duration:
            return Prepared(fingerprint="", outcome=outcome)
        log = f"logs/{step.id}/{attempt}.log"
        return Prepared(
            fingerprint="",
            job=Job(step=step.id, attempt=attempt, argv=(), env={}, cwd="", log=log, timeout=step.timeout),
        )

    def _outcome(self, step: Step) -> Outcome:
        found = self._known.get(step.id)
        why = self._foreign(step)
        ended = [] if why or found is None else _results(found)
        taken = self._taken.get(step.id, 0)
        if step.service is not None and not (taken < len(ended) and ended[taken][0].status == "failed"):
            return _ASSUMED.but(duration=float("inf"))  # until no step needs it any more
        if taken < len(ended):
            self._taken[step.id] = taken + 1
            event, log = ended[taken]
            return _in_time(step, outcome_of(event, self._case.rundir, log))
        if not why and found is not None and found.restored is not None:
            return _ASSUMED.but(outputs=found.restored.outputs)
        self.assumed[step.id] = why or ("it never ran" if not ended else f"it ran only {len(ended)} times")
        return _in_time(step, _ASSUMED.but(duration=self._case.seconds.get(step.id, self._usual)))

    @property
    def _usual(self) -> float:
        ordered = sorted(self._case.seconds.values())
        return ordered[(len(ordered) - 1) // 2] if ordered else 1.0

    def _foreign(self, step: Step) -> str:
        """Return why the record of a step does not show what it would do; empty when it does."""
        found = self._known.get(step.id)
        if found is None:
            return "it is not in the recorded run"
        if found.step is not step and _recipe(found.step) != _recipe(step):
            return "its action changed"
        if self._surroundings_changed(step):
            return "its environment or parameters changed"
        if changed := sorted(self._case.changed.get(step.id) or self._case.changed.get(step.group) or ()):
            return f"the script {changed[0]} changed"
        for formula in step.formulas():
            if formula is not step.condition and (name := self._unwritten(formula)):
                return f"it reads what {name} would hand on"
        return ""

    def _surroundings_changed(self, step: Step) -> bool:
        old, new = self._case.before.plan, self._case.plan
        if old is new:
            return False
        if (
            plain(old.env) != plain(new.env)
            or old.inherit_env != new.inherit_env
            or old.env_file != new.env_file
        ):
            return True
        reads = {
            str(reference.path[1])
            for formula in step.formulas()
            for reference in references(formula)
            if reference.path[0] == "params" and len(reference.path) > 1
        }
        now, then = self._case.params, self._case.before.params
        return any(now.get(name) != then.get(name) for name in reads)

    def _unwritten(self, formula: Any) -> str:
        """Return a step with unknown outputs or exit code that a formula reads; "" when there is none."""
        for reference in references(formula):
            path = [str(part) for part in reference.path]
            if path[0] != "steps" or len(path) < 3 or path[2] == "status":
                continue
            for name in (*self.assumed, *self.unknown):
                if name == path[1] or name.startswith((f"{path[1]}[", f"{path[1]}/")):
                    return name
        return ""

    def conclude(self, _step: Step, _job: Job, outcome: Outcome) -> Outcome:
        """What its outputs were is part of what was recorded."""
        return outcome

    def opening(self, group: Step, state: RunState) -> dict[str, Any]:
        """Return the source of a group; raises EvaluationError."""
        found = self._known.get(group.id)
        if found is not None and found.opened is not None and not self._foreign(group):
            return {name: value for name, value in vars(found.opened).items() if name in ("items", "params")}
        return self._steps.opening(group, state)

    def gathered(self, group: Step, state: RunState) -> dict[str, Any]:
        """Return the outputs of a group; those that come from something unknown are left out."""
        try:
            return self._steps.gathered(group, state)
        except EvaluationError:
            self.assumed[group.id] = "its outputs read unknown values"
            return {}

    def plan_outputs(self, state: RunState) -> tuple[dict[str, Any], str]:
        """Return the outputs of the plan; those that read something unknown are left out."""
        outputs, message = self._steps.plan_outputs(state)
        return outputs, "" if self.assumed or self.unknown else message

    def holds(self, step: Step, state: RunState) -> bool:
        """Whether a condition holds; an unknown condition counts as true, and its step as unknown."""
        assert step.condition is not None
        if name := self._unwritten(step.condition):
            self.unknown[step.id] = f"its condition reads what {name} would hand on"
            return True
        reads = {str(reference.path[0]) for reference in references(step.condition)}
        if "env" not in reads and "hash_files" not in set(calls(step.condition)):
            return self._steps.holds(step, state)
        found = self._known.get(step.id)
        if found is None or plain(found.step).get("condition") != plain(step).get("condition"):
            self.unknown[step.id] = "its condition reads the environment or files, which are not on record"
            return True
        if found.status == "skipped" and found.reason == "condition":
            return False
        if not found.attempts:
            self.unknown[step.id] = (
                "its condition was never evaluated, and reads values that are not on record"
            )
        return True

    # The gates.

    def judge(self, step: Step, _state: RunState, _job: Job | None) -> Passage:
        """Return the decision of the policies of the case, with the recorded answers."""
        decision = None
        if self._case.layers is not None:
            begun = self._case.before.started
            found = as_written(step, self._case.layers)
            risk = self._risk(step)
            facts = facts_of(step, begun.context if begun else {}, {**found, "risk": risk} if risk else found)
            decision = decide(facts, self._case.layers)
            if decision.answer == "deny":
                return Passage(answer="deny", risk=risk, rule=decision.rule, reason=decision.reason)
        if step.action.asks:
            return self._answer(step)
        if decision is None or decision.answer == "allow":
            return Passage(answer="allow", risk=self._risk(step), rule=decision.rule if decision else "")
        return self._approval(step, decision.rule, decision.reason)

    def _risk(self, step: Step) -> str:
        """The class that was found when a step started, if it would do the same."""
        found = self._known.get(step.id)
        started = found.attempts[-1].started if found and found.attempts else None
        return started.risk if started and not self._foreign(step) else ""

    def _answer(self, step: Step) -> Passage:
        found = self._known.get(step.id)
        gate = found.gate if found else None
        if gate is None or gate.answered is None or self._foreign(step):
            return Passage(answer="ask", opened=self._opened(step, step.kind, "it has no answer"))
        return Passage(answer="allow", answered=gate.answered.but(at=self._clock.stamp()))

    def _approval(self, step: Step, rule: str, reason: str) -> Passage:
        found = self._known.get(step.id)
        gates = [found.gate if found else None, self._case.before.gate]
        answered = next((gate.answered for gate in gates if gate and gate.answered), None)
        opened = self._opened(step, "approval", reason).but(rule=rule)
        if answered is None or not self._case.same or self._foreign(step):
            return Passage(answer="ask", rule=rule, reason=reason, opened=opened)
        if answered.answer == "approved":
            return Passage(answer="allow", rule=f"approval:{answered.approval or answered.via}")
        by = f" by {answered.by}" if answered.by else ""
        return Passage(answer="deny", rule=rule, reason=f"rejected{by}")

    def _opened(self, step: Step, kind: str, reason: str) -> ev.GateOpened:
        return GateOpened(at=self._clock.stamp(), step=step.id, kind=kind, reason=reason)

    def failed(self, step: Step, state: RunState) -> Passage:
        """Return the recorded decision on a failure."""
        found = self._known.get(step.id)
        after = found.after if found else None
        if state.steps[step.id].after is not None or after is None or after.answered is None:
            return Passage(
                answer="ask", opened=self._opened(step, "failure", "no one decided about its failure")
            )
        now = self._clock.stamp()
        opened = after.opened.but(at=now) if after.opened else self._opened(step, "failure", "")
        return Passage(answer="allow", opened=opened, answered=after.answered.but(at=now))

    def poll_replies(self, _state: RunState) -> list[ev.GateAnswered]:
        """No answer comes."""
        return []

    def is_asking(self, _state: RunState) -> bool:
        """No one is asked."""
        return False


def _results(found: StepState) -> list[tuple[ev.AttemptEnded, str]]:
    """Return the attempts of a step that ended by themselves, each with its log."""
    return [
        (attempt.ended, attempt.started.log)
        for attempt in found.attempts
        if attempt.ended
        and attempt.ended.status in ("completed", "failed")
        and attempt.ended.reason != "refused"
    ]


def _recipe(step: Step) -> dict[str, Any]:
    """Return the inputs that determine the action of a step."""
    return {name: value for name, value in plain(step).items() if name not in _AROUND}


def _in_time(step: Step, outcome: Outcome) -> Outcome:
    """Return how an attempt ends under the timeout that a step has in this plan."""
    if (
        step.service is not None
        or outcome.duration <= step.timeout
        or outcome.reason in ("timeout", "idle_timeout")
    ):
        return outcome
    return Outcome(
        status="failed",
        reason="timeout",
        duration=step.timeout,
        message="it took longer than this timeout",
    )


GONE = "it is not in the plan any more"


class Row(Record):
    """One step as recorded and as it would have been; `why`: what is assumed, unknown or different."""

    step: str
    recorded: str  # its status; "" where it was not there
    replayed: str
    recorded_reason: str = ""
    replayed_reason: str = ""
    recorded_s: float = 0.0
    replayed_s: float = 0.0
    is_assumed: bool = False
    is_unknown: bool = False
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether anything about the step would have been different, or is not known."""
        ends = (self.recorded, self.recorded_reason) != (self.replayed, self.replayed_reason)
        return ends or self.is_assumed or self.is_unknown


class WhatIfResult(Record):
    """The result of a what-if; a verdict of None: it depends on unknown values, or on an answer."""

    rows: tuple[Row, ...]
    verdict: str | None
    exit_code: int | None
    seconds: float
    waits_for: tuple[str, ...] = ()


def what_if(before: RunState, rundir: str, plan: Plan | None, policy: str) -> WhatIfResult:
    """Play a run under another plan or ceiling; raises InvalidInput, InvalidPlan for what is none."""
    case, state = _case(before, rundir, plan, policy)
    clock = VirtualClock(before.started.at if before.started else "2000-01-01T00:00:00.000Z")
    place = RunEnvironment(
        run=os.path.basename(rundir),
        workspace=os.getcwd(),
        rundir=rundir,
        env={},
        shell=SH,
        context=dict(before.started.context) if before.started else {},
    )
    what_if_ports = WhatIf(case, Steps(place), clock)
    for status in ("awaiting_approval", "approved"):
        state.apply(ev.PlanMoved(at=clock.stamp(), status=status))
    code = _loop(state, what_if_ports, case, clock).run()
    unknown = _unknown(state, what_if_ports)
    waits = tuple(name for name, step in state.steps.items() if step.at_gate)
    # No failure is ever assumed.
    known = not unknown and state.ended is not None
    rows = []
    for name in {**state.steps, **before.steps}:
        old, new = before.steps.get(name), state.steps.get(name)
        fields: dict[str, Any] = {"step": name, "recorded": old.status if old else "", "replayed": ""}
        if old is not None:
            fields |= {"recorded_reason": old.reason, "recorded_s": facts.duration(old)}
        if new is None:
            rows.append(Row(**fields, why=GONE))
            continue
        fields |= {"replayed": new.status, "replayed_reason": new.reason, "replayed_s": facts.duration(new)}
        row = Row(**fields, is_assumed=name in what_if_ports.assumed, is_unknown=name in unknown)
        why = what_if_ports.unknown.get(name) or what_if_ports.assumed.get(name, "")
        if not why and row.is_unknown:
            why = "it depends on unknown values"
        rows.append(row.but(why=why or (_why(new) if row.differs else "")))
    return WhatIfResult(
        rows=tuple(rows),
        verdict=state.ended.verdict if state.ended and known else None,
        exit_code=code if not unknown else None,
        seconds=clock.now,
        waits_for=waits,
    )


def _case(before: RunState, rundir: str, plan: Plan | None, policy: str) -> tuple[Case, RunState]:
    params = before.params
    changed: dict[str, set[str]] = {}
    same = True
    if plan is not None:
        given = before.options.get("given", ())
        params = keep_params(plan, params, given, ())
        reviewed = review(plan, params, os.getcwd())
        then = before.named.get("scripts", {})
        other = {name for name, digest in reviewed.scripts.items() if then.get(name, digest) != digest}
        changed = names_of_steps(plan, other) if other else {}
        same = reviewed.digest == before.named.get("digest")
    chosen = plan or before.plan
    home = os.path.dirname(os.path.dirname(rundir))
    case = Case(
        before=before,
        plan=chosen,
        params=params,
        rundir=rundir,
        layers=_layers(before, rundir, chosen, policy),
        changed=changed,
        seconds={**history.estimates(history.path_of(home, before.plan)), **_took(before)},
        same=same,
    )
    state = RunState(chosen)
    state.params = params
    return case, state


def _layers(before: RunState, rundir: str, plan: Plan, policy: str) -> Layers | None:
    """Return the policies that a run would have been under: the plan's, all that it was under, and the new one."""
    events = [event for event in (before.started, *before.resumed) if event]
    known = [event.options["policy"] for event in events if event.options.get("policy")]
    if not (known or policy or plan.policy or plan.llm):
        return None
    ceilings: Ceilings = ceilings_of(Settings(policy=policy))
    for policies in known:
        restore(ceilings, rundir, policies["ceilings"])
    option = next((policies["option"] for policies in reversed(known) if policies.get("option")), "")
    return layers_of(plan, Settings(auto_approve=option), ceilings)


def _took(before: RunState) -> dict[str, float]:
    return {
        name: facts.duration(step)
        for name, step in before.steps.items()
        if step.status == "completed" and step.tries
    }


def _loop(state: RunState, what_if_ports: WhatIf, case: Case, clock: VirtualClock) -> Scheduler:
    known = case.before.options
    dependencies = Dependencies(
        executor=VirtualExecutor(clock, what_if_ports.play),
        steps=what_if_ports,
        journal=what_if_ports,
        sinks=(),
        clock=clock,
        inbox=what_if_ports,
        holds=what_if_ports.holds,
        chance=lambda: 0.5,
    )
    jobs = int(known.get("jobs", 1))
    if case.before.plan.limits.max_parallel in (None, jobs):  # the caller did not choose it
        jobs = case.plan.limits.max_parallel or jobs
    options = Options(
        jobs=jobs,
        schedule=case.plan.schedule,
        selected=select(case.plan, known.get("selection", {})),
        strict=bool(known.get("strict")),
        fail_on_flaky=bool(known.get("fail_on_flaky")),
        rollback=not known.get("no_rollback"),
        seconds=weights(kept(case.rundir, known) or {}),
    )
    asks = any(step.action.asks or step.on_failure == "ask" for step in case.plan.steps)
    if case.layers is None and not asks:
        return Scheduler(state, dependencies, options)
    return GatedScheduler(state, dependencies, options, what_if_ports)


def _unknown(state: RunState, what_if_ports: WhatIf) -> set[str]:
    """Return the steps with an unknown end: those with an unknown condition, and their dependents."""
    if not what_if_ports.unknown:
        return set()
    found = set(what_if_ports.unknown)
    for section in (state.plan.main(), state.plan.cleanup()):
        waits = graph.waits(section)
        found |= graph.descendants(waits, found & set(waits))
    return found


def _why(step: StepState) -> str:
    """Say why a step would not have completed."""
    if step.ended:
        return "" if step.status == "completed" else facts.sentence(step)
    asked = step.asked
    return (asked.reason if asked else "") or "it would wait for its dependencies"
