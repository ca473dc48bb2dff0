"""Whether a model may plan anew in a run, which one, and how far: decided, told and recorded before anything starts.

Light: every run of a plan that mentions a model looks, and few come to ask it.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from planrun.app.gates import PolicyGates
    from planrun.app.planning.replanning import Replanner
    from planrun.app.session import Session
    from planrun.app.settings import Settings
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.policy.deciding import Layers
    from planrun.ports import Model
    from planrun.steps.runner import Steps


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
    from planrun.app.planning.models import llm_of

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
    from planrun.app.planning.models import why_no_model

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


def replanner_of(
    session: Session, state: RunState, steps: Steps, gates: PolicyGates | None, opening: Mapping[str, Any]
) -> Replanner | None:
    """Return who plans anew in a run that starts, or goes on, with the event whose fields `opening` has."""
    if not opening["options"].get("replan", {}).get("model") or session.admission is None:
        return None
    from planrun.app.planning.adopting import Adoption
    from planrun.app.planning.models import Taping, llm_of, open_model
    from planrun.app.planning.replanning import Desk, Replanner
    from planrun.app.planning.spending import spending_on_record

    settings, llm = session.settings, llm_of(session.settings, state.plan.llm)
    mask = session.vault.veil.mask_text if session.vault and session.vault.veil else None

    def opened() -> Model:
        return open_model(settings, state.plan.llm, taping=Taping(mask=mask, planning=state.planning))

    desk = Desk(llm, session.admission.layers, opened, session.clock)
    desk.context = opening["context"]
    spent = spending_on_record(opening["options"])  # read before any step can write to a table of prices
    adoption = Adoption(session, steps, gates)
    return Replanner(desk, steps.place, adoption, lambda state: spent.budget(state.planning))


def require_actions(plan: Plan, settings: Settings, names: Collection[str]) -> None:
    """Raise InvalidInput for abstract steps, by `names`, that would be executed and are not expanded."""
    if settings.expand:
        from planrun.app.planning.preparing import require_expandable

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
