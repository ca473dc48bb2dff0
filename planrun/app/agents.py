"""The agents of a run: whether it has any, and the executor that they work in."""

from __future__ import annotations

from planrun.actions.environment import credentials_in
from planrun.agents.context import AgentContext
from planrun.agents.executor import AgentExecutor
from planrun.agents.judging import Judge
from planrun.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.actions.prepare import Steps
    from planrun.agents.context import AgentModels
    from planrun.approval.rules import Layers
    from planrun.executors.local import LocalExecutor


def executor_of(models: AgentModels, layers: Layers, executor: LocalExecutor, steps: Steps) -> AgentExecutor:
    """Return the executor of a run in which agents work."""
    place = steps.place
    policies = [*[ceiling.policy for ceiling in layers.ceilings], *([layers.plan] if layers.plan else [])]
    decisions = {name: str(value) for policy in policies for name, value in policy.decisions.items()}
    context = AgentContext(
        models=models,
        judge=Judge(layers, place.context, credentials_in(place.env)),
        place=place,
        clock=SystemClock(),
        masks=place.masks,
        decisions=decisions,
    )
    return AgentExecutor(executor, context)
