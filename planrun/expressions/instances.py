"""What an item of a list is called, and which lists an expression may give."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.model.combining import spelled, unnameable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Tree


def name_of(item: Any, key: Tree | None) -> str:
    """Return the name of an item, by an expression over `item` or of itself; raises EvaluationError: it has none."""
    value = item if key is None else evaluate(key, {"item": item})
    if value is None or isinstance(value, list | tuple | dict):
        raise EvaluationError("has no name" if key else "has no name; say by `key:` what it is called")
    name = spelled(value)
    wrong = "has an empty name" if not name else unnameable(name)
    if wrong:
        raise EvaluationError(wrong if not name else f"has a name that {wrong}")
    return name
