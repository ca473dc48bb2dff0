"""Conditions of a run that is played again: evaluated from what is on record, as far as it is."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.evaluate import evaluate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Step
    from planrun.model.state import RunState

_TOLD = frozenset({"params", "steps", "run", "matrix", "item"})


def is_told(step: Step) -> bool:
    """Whether a condition reads nothing but what a ledger holds: no environment, no files."""
    assert step.condition is not None
    reads = references(step.condition)
    return all(reference.path[0] in _TOLD for reference in reads) and "hash_files" not in set(
        calls(step.condition)
    )


def holds(step: Step, state: RunState, context: Mapping[str, Any]) -> bool:
    """Evaluate the condition of a step; `context`: the names below `run`. Raises EvaluationError."""
    assert step.condition is not None
    value = evaluate(step.condition, state.scope({"env": {}, "run": dict(context)}, step))
    if not isinstance(value, bool):
        raise EvaluationError(f"{step.condition_text} is not boolean")
    return value


def calls(tree: Any) -> Iterator[str]:
    """Yield the names of the functions that an expression calls."""
    if isinstance(tree, tuple):
        if len(tree) > 3 and tree[0] == "call":
            yield str(tree[3])
        for part in tree:
            yield from calls(part)
