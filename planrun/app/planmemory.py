"""Keep the plan of a run that completed, for goals alike. Loaded for projects that ask for it."""

from __future__ import annotations

import os

from planrun.records.planmemory import MAX_TEXT, KeptPlan, keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.state import RunState


def remember_plan(state: RunState, run: str, workspace: str, mask: Callable[[str], str]) -> None:
    """Keep the plan of a run with a goal that completed; what cannot be written is not kept."""
    plan, ended = state.plan, state.ended
    if not plan.goal.strip() or ended is None or ended.verdict != "completed" or len(plan.source) > MAX_TEXT:
        return
    text = plan.source.decode("utf-8", "replace")
    try:
        keep(
            os.path.abspath(workspace or "."),
            KeptPlan(
                goal=mask(" ".join(plan.goal.split())),
                name=mask(plan.name),
                digest=plan.digest,
                run=run,
                at=ended.at,
                steps=len(plan.main()),
                duration_s=ended.duration,
                text=mask(text),
            ),
        )
    except OSError:
        return
