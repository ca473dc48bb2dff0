"""What is said of the results of cached steps: whose was used, or why a step ran all the same."""

from __future__ import annotations

from planrun.reports.clean import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.progress import StepState

NO_RESULT = "there is no earlier result"


def spent_or_reused(step: StepState, spent: str) -> str:
    """Return what stands in brackets behind a completed step: `cached, of run …`, or its time and why it ran."""
    if step.reason == "cached":
        return reused(step)
    why = uncached(step)
    return f"{spent}, ran: {why}" if why else spent


def reused(step: StepState) -> str:
    """Whose result a cached step has: `cached, of run 20260131-093000-1f2e3d`."""
    source = step.restored.source if step.restored else ""
    return f"cached, of run {line(source)}" if source else "cached"


def uncached(step: StepState) -> str:
    """Why no earlier result of a cached step was used, in one clean line; "" where nobody looked, or there was none."""
    tries = step.tries
    found = tries[0].ended.cache if tries and tries[0].ended else {}
    why = line(str(found.get("why", "")))
    return "" if why == NO_RESULT else why
