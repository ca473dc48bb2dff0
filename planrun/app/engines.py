"""Which program runs the containers of a plan."""

from __future__ import annotations

from planrun.actions import containers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Plan


def engine_of(plan: Plan) -> str:
    """Return the container program, where a step needs one and one is installed."""
    if not any(step.container or step.kind == "group" for step in plan.steps):
        return ""
    try:
        return containers.engine_of()
    except containers.NoEngine:  # each such step reports it
        return ""
