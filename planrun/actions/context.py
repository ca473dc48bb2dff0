"""What the modules of action kinds may ask of `Steps`, for the type checker alone."""

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
            """Return what sets variables for a step, from the plan inwards."""

        def secrets(self, step: Step) -> dict[str, str]:
            """Return the values of the secrets that a step lists."""

        def shell(self, step: Step, scope: dict[str, Any]) -> tuple[str, ...]:
            """Return the shell of a script that names none."""

        def redacted(self, step: Step, recipe: Recipe) -> Recipe:
            """Return the recipe that a fingerprint is made of, without values of secrets."""

        def copying(self, step: Step, recipe: Recipe) -> Copying | None:
            """Return the reviewed scripts that a step runs from copies; None when it names none."""
