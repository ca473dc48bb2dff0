"""Somebody wants failures of a run at rest to be planned anew: which, and whether that may be.

Which model a run may ask, and what the ledger says of the limits; light, since many runs look and few ask.

Whether a model may plan anew in a run, which one, and how far: decided, told and recorded before anything starts.

Light: every run of a plan that mentions a model looks, and few come to ask it.
"""

from __future__ import annotations

import os

from planrun.engine.failures import is_typed
from planrun.errors import Denied, InvalidInput, PlanrunError
from planrun.plan.problems import did_you_mean
from planrun.planner import models
from planrun.planner.models import (
    Taping,
    check_recording,
    insecure,
    llm_of,
    spending,
    spending_on_record,
    why_no_model,
)
from planrun.planner.prepare import make_concrete, require_expandable
from planrun.planner.replan import Desk, Replanner, left_over
from planrun.planner.versions import Adoption

__all__ = [
    "failures_to_replan",
    "limits_on_record",
    "make_concrete",
    "replan_option",
    "replanner",
    "require_actions",
    "suggestion",
]
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.session import Session
    from planrun.approval.gates import PolicyGates
    from planrun.approval.rules import Layers
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.planner.replan import Replanner
    from planrun.ports import Model
    from planrun.settings import Settings


def failures_to_replan(state: RunState, wanted: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """Return the failed steps that are planned anew: those that are wanted, or all that count when none is named.

    Raises InvalidInput for steps that did not fail and where no model may be asked, Denied after a refusal.
    """
    if why := why_no_replan(state.plan, settings):
        raise InvalidInput(f"no model plans anew: {why}")
    if state.planning and state.planning.is_denied:
        run = state.started.run if state.started else "RUN"
        raise Denied(
            "a policy forbade what a model wrote for this run, and it is not asked again; "
            f"`planrun resume {run} --plan FILE` goes on with a plan of your own"
        )
    if left_over(state) < 1:
        raise InvalidInput(
            f"limits.max_replans allows {state.plan.limits.max_replans}, and all of them were made"
        )
    for name in wanted:
        if name not in state.steps:
            hint = did_you_mean(name, list(state.steps))
            raise InvalidInput(f'no step "{name}" in this run' + (f"; {hint}" if hint else ""))
        if why := _why_not(name, state):
            raise InvalidInput(f'the step "{name}" {why}')
    failed = [name for name in state.steps if not _why_not(name, state) and state.tolerance(name) is None]
    if not (wanted or failed):
        raise InvalidInput("no failure of this run can be planned anew")
    return wanted or tuple(failed)


def suggestion(state: RunState, settings: Settings) -> str:
    """Return in one line how a model may help a run that failed; empty where none may, or a fact says that none can."""
    try:
        failed = failures_to_replan(state, (), settings)
    except PlanrunError:
        return ""
    errors = [state.steps[name].error for name in failed]
    if not state.started or all(is_typed(error) and error and error["class"] == "logic" for error in errors):
        return ""
    return f"to ask a model for a recovery plan: planrun replan {state.started.run}"


def _why_not(name: str, state: RunState) -> str:
    """Say why a step is none that can be planned anew."""
    found = state.steps[name]
    if found.status != "failed":
        return f"has not failed: it is {found.status}"
    if found.step.section != "steps":
        return "stands under finally, which belongs to every end of a run"
    if name in state.replaced:
        return "was replaced already"
    return "was denied, and stays so" if found.reason == "denied" else ""


def model_of(plan: Plan, settings: Settings) -> str:
    """Return the model that may be asked in a run of a plan; empty when none is."""
    llm = plan.llm
    wants = llm or any(step.on_failure == "replan" or step.kind == "abstract" for step in plan.steps)
    if not wants or settings.locked:
        return ""
    return "" if why_no_model(settings, llm) else llm_of(settings, llm).model


def limits_on_record(
    plan: Plan,
    settings: Settings,
    ceilings: Collection[object],
    before: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the option `budget` as the ledger has it, empty for a run that asks no model.

    `before`: the options that the run recorded so far. Raises InvalidInput when dollars are limited and nobody knows
    what the model costs, for a table of prices and a recording that cannot be read,
    RecordsLost for a recording that cannot be written.
    """
    model = model_of(plan, settings)
    if not model:
        return {}
    check_recording(settings)
    is_bound = bool(ceilings or any(known.get("locked") for known in before))
    kept = next((known["budget"] for known in reversed(before) if known.get("budget")), None)
    found = spending(plan.limits, settings, kept, is_bound=is_bound)
    found.refuse_unpriced(model)
    if warning := insecure(settings):
        found = found.but(notes=(*found.notes, warning))
    return {"budget": found.recorded()}


def replan_option(
    plan: Plan, settings: Settings, layers: Layers, failed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the option `replan` as the first event of a run has it; empty where no failure asks for a planning.

    `failed`: steps that somebody asked to have planned anew. Keys: model (empty: none plans anew), most (plannings in
    the run), told (a line for people).
    """
    llm = plan.llm
    named = list(failed) or [step.id for step in plan.main() if step.on_failure == "replan"]
    by_class = llm.replan_on_failure if llm and llm.enabled else "never"
    if not named and by_class == "never":
        return {}
    why = why_no_replan(plan, settings)
    if why:
        return {"replan": {"model": "", "most": 0, "told": f"no model plans anew: {why}"}}
    most = plan.limits.max_replans
    model = llm_of(settings, llm).model
    times = "once" if most == 1 else f"up to {most} times"
    told = f"{model} may plan anew {times}, {_when(by_class, named)}; what it writes {_how_far(layers)}"
    return {"replan": {"model": model, "most": most, "told": told}}


def why_no_replan(plan: Plan, settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """Return in one line why no model may plan anew; empty when one may."""
    if plan.limits.max_replans < 1:
        return "limits.max_replans is 0"
    if settings.locked:
        return "under --locked nothing but the locked plan runs"
    return why_no_model(settings, plan.llm, environ)


def _when(by_class: str, named: list[str]) -> str:
    """Say after which failures."""
    if by_class == "any":
        return "after any failure that would count"
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    of_steps = f"a failure of {shown}"
    if by_class == "never":
        return f"after {of_steps}"
    return f"after a fatal failure, or {of_steps}" if named else "after a fatal failure"


def _how_far(layers: Layers) -> str:
    """Say what of it runs unasked, and what becomes of the rest."""
    levels = ("none", "read-only", "low", "medium", "high")
    policies = [layers.plan.llm_auto_approve] if layers.plan else ["low"]
    ceilings = [ceiling.policy.llm_auto_approve for ceiling in layers.ceilings]
    lowest = min([*policies, *ceilings], key=levels.index)
    asked = "nothing of it runs unasked" if lowest == "none" else f"runs unasked up to {lowest}"
    if not ceilings:
        return f"{asked}, and waits for an approval above" if lowest != "none" else asked
    most = min(ceilings, key=levels.index)
    return f"{asked}, and is denied above {most}"


def replanner(
    session: Session, state: RunState, steps: Steps, gates: PolicyGates | None, opening: Mapping[str, Any]
) -> Replanner | None:
    """Return who plans anew in a run that starts, or goes on, with the event whose fields `opening` has."""
    if not opening["options"].get("replan", {}).get("model") or session.admission is None:
        return None
    settings, llm = session.settings, llm_of(session.settings, state.plan.llm)
    mask = session.vault.veil.mask_text if session.vault and session.vault.veil else None

    def opened() -> Model:
        return models.open_model(settings, state.plan.llm, taping=Taping(mask=mask, planning=state.planning))

    desk = Desk(llm, session.admission.layers, opened, session.clock)
    desk.context = opening["context"]
    spent = spending_on_record(opening["options"])  # read before any step can write to a table of prices
    adoption = Adoption(session, steps, gates)
    return Replanner(desk, steps.place, adoption, lambda state: spent.budget(state.planning))


def require_actions(plan: Plan, settings: Settings, names: Collection[str]) -> None:
    """Raise InvalidInput for abstract steps, by `names`, that would be executed and are not expanded."""
    if settings.expand:
        require_expandable(plan, settings)
        return
    steps = [step for step in plan.steps if step.id in names]
    named = ", ".join(f'"{step.id}" ({plan.file_of(step)}:{step.line})' for step in steps[:5])
    more = f" and {len(steps) - 5} more" if len(steps) > 5 else ""
    raise InvalidInput(
        f"the plan has steps without an action: {named}{more}; expand it first: "
        "give each a `run`, an `exec` or a `validate`, have a model do it by `planrun expand` or --expand, "
        "or leave them out by --skip-abstract"
    )
