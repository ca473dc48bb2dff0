"""Somebody wants failures of a run at rest to be planned anew: which, and whether that may be."""

from __future__ import annotations

from planrun.app.planning.readiness import why_no_replan
from planrun.app.planning.replanning import left_over
from planrun.engine.errorclasses import is_typed
from planrun.errors import Denied, InvalidInput, PlanrunError
from planrun.source.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.settings import Settings
    from planrun.model.state import RunState


def failures_to_plan(state: RunState, wanted: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
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
        failed = failures_to_plan(state, (), settings)
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
