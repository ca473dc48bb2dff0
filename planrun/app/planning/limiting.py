"""Which model a run may ask, and what the ledger says of the limits; light, since many runs look and few ask."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.app.admission import Admission
    from planrun.app.settings import Settings
    from planrun.model.plan import Plan


def model_of(plan: Plan, settings: Settings) -> str:
    """Return the model that may be asked in a run of a plan; empty when none is."""
    llm = plan.llm
    wants = llm or any(step.on_failure == "replan" or step.kind == "abstract" for step in plan.steps)
    if not wants or settings.locked:
        return ""
    from planrun.app.planning.models import llm_of, why_no_model

    return "" if why_no_model(settings, llm) else llm_of(settings, llm).model


def limits_on_record(
    plan: Plan,
    settings: Settings,
    admission: Admission | None,
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
    from planrun.app.planning.models import check_recording, insecure
    from planrun.app.planning.spending import spending  # parses a file

    check_recording(settings)
    ceilings = admission.recorded()["ceilings"] if admission else ()
    is_bound = bool(ceilings or any(known.get("locked") for known in before))
    kept = next((known["budget"] for known in reversed(before) if known.get("budget")), None)
    found = spending(plan.limits, settings, kept, is_bound=is_bound)
    found.refuse_unpriced(model)
    if warning := insecure(settings):
        found = found.but(notes=(*found.notes, warning))
    return {"budget": found.recorded()}
