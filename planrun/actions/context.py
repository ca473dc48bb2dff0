"""The methods of `Steps` that the modules of action kinds use, for type checking only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from planrun.actions.environment import Layers, RunEnvironment
    from planrun.actions.render import Recipe
    from planrun.actions.scripts import Copying
    from planrun.model.plan import Step
    from planrun.model.state import RunState

    class StepContext(Protocol):
        """The part of `planrun.actions.prepare.Steps` that prepares one action; raises EvaluationError."""

        place: RunEnvironment

        def layers(self, step: Step, state: RunState, scope: dict[str, Any]) -> Layers:
            """Return the layers of variables of a step, the plan first."""

        def secrets(self, step: Step) -> dict[str, str]:
            """Return the values of the secrets that a step lists."""

        def shell(self, step: Step, scope: dict[str, Any]) -> tuple[str, ...]:
            """Return the default shell of a script."""

        def redacted(self, step: Step, recipe: Recipe) -> Recipe:
            """Return the recipe for the fingerprint, without values of secrets."""

        def fingerprint(self, step: Step, attempt: int, state: RunState) -> str:
            """Return the fingerprint that an attempt would have now; empty when it cannot be rendered."""

        def copying(self, step: Step, recipe: Recipe) -> Copying | None:
            """Return the reviewed scripts that a step runs from copies; None when it names none."""
