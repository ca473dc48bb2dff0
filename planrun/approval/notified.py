"""The commands of notifications as steps that policies judge: only `deny` counts, since they were reviewed."""

from __future__ import annotations

from planrun.model.plan import Step
from planrun.plan.compile.risks import Risks
from planrun.plan.kinds.command import Exec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.model.notify import Target

STEP = "notify"
"""The id by which rules name the commands of notifications."""


def step_of(target: Target) -> Step:
    """Return the command of a target as a step, with its risk."""
    fields: dict[str, Any] = {
        "id": STEP,
        "kind": "exec",
        "action": Exec(argv=target.argv),
        "secrets": target.secrets,
        "line": target.line,
    }
    fields |= Risks({}, ()).of(fields)
    return Step(**fields)


def denial_of(target: Target, layers: Layers, context: Mapping[str, Any]) -> str:
    """Return why a policy denies the command of a target; empty when none does."""
    from planrun.approval.policies import static_decision  # reading scripts needs none of it

    decision = static_decision(step_of(target), layers, context)
    return f"denied: {decision.reason}" if decision.answer == "deny" else ""
