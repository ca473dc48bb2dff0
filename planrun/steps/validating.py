"""Steps that check things themselves: no process, an outcome at once."""

from __future__ import annotations

import time

from planrun.model.job import Outcome, Prepared
from planrun.model.plan import Validate
from planrun.source.canonical import plain
from planrun.steps.checks import CheckScope, run_checks
from planrun.steps.render import Recipe, added_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Step
    from planrun.model.state import RunState
    from planrun.steps.runner import Steps


def validate(steps: Steps, step: Step, state: RunState, scope: dict[str, Any]) -> Prepared:
    """Make the checks of a step; raises EvaluationError where its environment cannot be rendered."""
    assert isinstance(step.action, Validate)
    began = time.monotonic()
    place, added = steps.place, added_environment(steps.layers(step, state, scope))
    env = {**place.env, **added, **steps.secrets(step)}
    results = run_checks(step.action.checks, CheckScope(place.workspace, env, scope, place.masks))
    failed = [result for result in results if not result["ok"]]
    message = "; ".join(f"{result['name']}: {result['message']}" for result in failed)
    outcome = Outcome(
        status="failed" if failed else "completed",
        reason="verify" if failed else "ran",
        duration=time.monotonic() - began,
        message=message,
        checks=results,
    )
    return Prepared(fingerprint=fingerprint_of_checks(steps, step, added), outcome=outcome)


def fingerprint_of_checks(steps: Steps, step: Step, env: dict[str, str]) -> str:
    """Return the fingerprint of such a step; how its checks are laid out does not show in it."""
    recipe = Recipe(argv=(repr(plain(step.action)),), env=env, workdir="")
    return steps.veiled(step, recipe).fingerprint("checks")
