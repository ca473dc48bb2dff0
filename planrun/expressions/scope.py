"""The names an expression can read during a run, taken from its state when they are asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.state import RunState


class StepValues(dict[str, "dict[str, Any]"]):
    """`steps.<id>` as it stands at the moment it is read; nothing is copied for steps that nobody reads."""

    def __init__(self, state: RunState) -> None:
        super().__init__()
        self._state = state

    def __contains__(self, step: object) -> bool:
        return step in self._state.steps

    def __missing__(self, step: str) -> dict[str, Any]:
        found = self._state.steps[step]
        return {
            "status": found.status,
            "outputs": found.outputs,
            "exit_code": found.exit_code,
            "attempts": len(found.attempts),
        }


def scope_of(state: RunState, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scope for one evaluation; `fixed` holds what does not change in a run (env, run, step …)."""
    return {"params": state.params, "steps": StepValues(state), **fixed}
