"""When a run will probably end: by what its steps took before, what they say themselves, and the order to come."""

from __future__ import annotations

from planrun.records.progress import read_progress
from planrun.reports.clean import line
from planrun.reports.progress import Foresight, jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from planrun.model.state import RunState

_MESSAGE = 60  # characters of what a step says


def foresight(
    state: RunState, rundir: str, expected: Mapping[str, float], mask: Callable[[str], str] | None = None
) -> Foresight:
    """Return what is known of a run's future; `expected` are seconds of its steps from earlier runs.

    `mask`: lies over what steps say; where it is None nothing of what the steps of a plan with secrets say is shown.
    """

    def forecast(left: Mapping[str, float], usual: float) -> float:
        from planrun.engine.forecast import remaining  # only who watches a run asks

        return remaining(state, jobs_of(state), state.plan.schedule, left, usual)

    def said(names: Iterable[str]) -> dict[str, tuple[float, str]]:
        found = {}
        for name in names:
            step = state.steps[name]
            attempt = step.attempts[-1].n if step.attempts else 0
            told = read_progress(rundir, step.step.folder or name, attempt) if attempt else None
            if told is not None:
                found[name] = (told.share, shown(told.message))
        return found

    def shown(message: str) -> str:
        if mask is None:
            return "" if state.plan.secrets else line(message, _MESSAGE)
        return line(mask(message), _MESSAGE)

    return Foresight(expected=expected, forecast=forecast, said=said)
