"""Which steps a run repeats by itself: those that failed for passing reasons, and what depends on them."""

from __future__ import annotations

from planrun.actions.prepare import Steps
from planrun.app.rerun import RerunPlan
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.engine import Dependencies, Options
    from planrun.model.progress import StepState
    from planrun.model.state import RunState


def with_rounds(dependencies: Dependencies, options: Options) -> Dependencies:
    """Return the dependencies of a run that goes on by itself."""
    steps = dependencies.steps
    assert isinstance(steps, Steps)
    return dependencies.but(again=Rounds(steps=steps, selected=options.selected).again)


class Rounds(Record):
    """The port `again` of the scheduler; `selected`: the steps that may run, None: all."""

    steps: Steps
    selected: frozenset[str] | None

    def again(self, state: RunState) -> dict[str, str]:
        """Return the steps of another round, each with the reason; none where no failure is a passing one.

        What is not idempotent and has started is never among them.
        """
        passing = [name for name, found in state.steps.items() if _is_passing(state, name, found)]
        if not passing:
            return {}
        # What an abort or the first failure of a group stopped is taken up again with it.
        stopped = [
            name
            for name, found in state.steps.items()
            if found.status == "cancelled" and found.step.section == "steps" and not found.is_spent
        ]
        plan = RerunPlan(state, state, self.steps, selected=self.selected, holds=self.steps.holds)
        found = plan.of_request([*passing, *stopped])
        reasons = {name: _why(state.steps[name]) for name in passing} | dict.fromkeys(
            stopped, "it was stopped"
        )
        main = {name for name, each in state.steps.items() if each.step.section == "steps"}
        return {name: reasons.get(name, why) for name, why in found.items() if name in main}


def _is_passing(state: RunState, name: str, found: StepState) -> bool:
    """Whether a step failed for a passing reason, and nothing makes up for it."""
    if found.status != "failed" or found.step.section != "steps" or found.step.kind == "group":
        return False
    error = found.error
    if error is None or error.get("class") != "transient" or found.is_spent or name in state.replaced:
        return False
    return state.tolerance(name) is None


def _why(found: StepState) -> str:
    error = found.error or {}
    return f"it failed for a passing reason ({error.get('rule', '')})"
