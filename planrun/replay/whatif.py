"""What a run would have come to: a case made from a ledger, a plan and a policy, played and laid beside the record."""

from __future__ import annotations

import os

from planrun.actions.prepare import Place, Steps
from planrun.actions.render import SH
from planrun.app.history import kept, weights
from planrun.app.selection import select
from planrun.approval.digest import review
from planrun.approval.policies import Ceilings, ceilings_of, layers_of, restore
from planrun.engine.context import Dependencies, Options
from planrun.engine.gated import GatedScheduler
from planrun.engine.scheduler import Scheduler
from planrun.executors.virtual import VirtualClock, VirtualExecutor
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.plan.keys.params import keep_params
from planrun.records import history
from planrun.replay.simulate import Case, Supposition
from planrun.reports import facts
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.model.plan import Plan
    from planrun.model.progress import StepState

GONE = "it is not in the plan any more"


class Row(Record):
    """One step then, and as it would have been; `why` tells what of that is assumed, unknown or different."""

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


class Supposed(Record):
    """What a run would have come to; a verdict of None: it depends on what nobody can know, or on somebody's answer."""

    rows: tuple[Row, ...]
    verdict: str | None
    exit_code: int | None
    seconds: float
    waits_for: tuple[str, ...] = ()


def suppose(before: RunState, rundir: str, plan: Plan | None, policy: str) -> Supposed:
    """Play a run under another plan or ceiling; raises InvalidInput, InvalidPlan for what is none."""
    case, state = _case(before, rundir, plan, policy)
    clock = VirtualClock(before.started.at if before.started else "2000-01-01T00:00:00.000Z")
    place = Place(
        run=os.path.basename(rundir),
        workspace=os.getcwd(),
        rundir=rundir,
        env={},
        shell=SH,
        context=dict(before.started.context) if before.started else {},
    )
    supposed = Supposition(case, Steps(place), clock)
    for status in ("awaiting_approval", "approved"):
        state.apply(ev.PlanMoved(at=clock.stamp(), status=status))
    code = _loop(state, supposed, case, clock).run()
    unknown = _unknown(state, supposed)
    waits = tuple(name for name, step in state.steps.items() if step.at_gate)
    # An assumed failure does not exist: nobody assumes one.
    known = not unknown and state.ended is not None
    return Supposed(
        rows=tuple(_rows(before, state, supposed, unknown)),
        verdict=state.ended.verdict if state.ended and known else None,
        exit_code=code if not unknown else None,
        seconds=clock.now,
        waits_for=waits,
    )


def _case(before: RunState, rundir: str, plan: Plan | None, policy: str) -> tuple[Case, RunState]:
    params = before.params
    changed: set[str] = set()
    same = True
    if plan is not None:
        given = before.options.get("given", ())
        params = keep_params(plan, params, given, ())
        reviewed = review(plan, params, os.getcwd())
        then = before.named.get("scripts", {})
        changed = {name for name, digest in reviewed.scripts.items() if then.get(name, digest) != digest}
        same = reviewed.digest == before.named.get("digest")
    chosen = plan or before.plan
    home = os.path.dirname(os.path.dirname(rundir))
    case = Case(
        before=before,
        plan=chosen,
        params=params,
        rundir=rundir,
        layers=_layers(before, rundir, chosen, policy),
        changed=frozenset(changed),
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
    for told in known:
        restore(ceilings, rundir, told["ceilings"])
    option = next((told["option"] for told in reversed(known) if told.get("option")), "")
    return layers_of(plan, Settings(auto_approve=option), ceilings)


def _took(before: RunState) -> dict[str, float]:
    return {
        name: facts.duration(step)
        for name, step in before.steps.items()
        if step.status == "completed" and step.tries
    }


def _loop(state: RunState, supposed: Supposition, case: Case, clock: VirtualClock) -> Scheduler:
    known = case.before.options
    rooms = Dependencies(
        executor=VirtualExecutor(clock, supposed.play),
        steps=supposed,
        journal=supposed,
        sinks=(),
        clock=clock,
        inbox=supposed,
        holds=supposed.holds,
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
    asks = any(step.kind in ("ask", "decide") or step.on_failure == "ask" for step in case.plan.steps)
    if case.layers is None and not asks:
        return Scheduler(state, rooms, options)
    return GatedScheduler(state, rooms, options, supposed)


def _unknown(state: RunState, supposed: Supposition) -> set[str]:
    """Return the steps whose end nobody can know: those with such a condition, and all that depend on them."""
    if not supposed.unknown:
        return set()
    found = set(supposed.unknown)
    for section in (state.plan.main(), state.plan.cleanup()):
        waits = graph.waits(section)
        found |= graph.descendants(waits, found & set(waits))
    return found


def _rows(before: RunState, after: RunState, supposed: Supposition, unknown: set[str]) -> list[Row]:
    rows = []
    for name in {**after.steps, **before.steps}:
        old, new = before.steps.get(name), after.steps.get(name)
        fields: dict[str, Any] = {"step": name, "recorded": old.status if old else "", "replayed": ""}
        if old is not None:
            fields |= {"recorded_reason": old.reason, "recorded_s": facts.duration(old)}
        if new is None:
            rows.append(Row(**fields, why=GONE))
            continue
        fields |= {"replayed": new.status, "replayed_reason": new.reason, "replayed_s": facts.duration(new)}
        row = Row(**fields, is_assumed=name in supposed.assumed, is_unknown=name in unknown)
        why = supposed.unknown.get(name) or supposed.assumed.get(name, "")
        if not why and row.is_unknown:
            why = "it depends on what is unknown"
        rows.append(row.but(why=why or (_why(new) if row.differs else "")))
    return rows


def _why(step: StepState) -> str:
    """Say why a step would not have completed."""
    if step.ended:
        return "" if step.status == "completed" else facts.sentence(step)
    asked = step.asked
    return (asked.reason if asked else "") or "it would wait for what comes before it"
