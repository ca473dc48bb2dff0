"""The outputs of the plan that is run, evaluated when all its steps have ended."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.render import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Plan


def evaluated(plan: Plan, scope: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the outputs by name, and why others could not be evaluated; "" when all could.

    `scope`: the names that expressions of the plan can read.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for name, template in plan.outputs.items():
        try:
            values[name] = render(template, scope)
        except EvaluationError as error:
            wrong.append(f'{_place(plan, name)}: the output "{name}" of the plan: {error}')
    return values, "; ".join(wrong)


def _place(plan: Plan, output: str) -> str:
    """Return file, line and column of an output; the file alone where the text of the plan is not at hand."""
    from planrun.source.document import parse  # after an error alone

    root, _ = parse(plan.source, plan.file) if plan.source else (None, None)
    listed = root.get("outputs") if root is not None else None
    node = listed.get(output) if listed is not None else None
    return f"{plan.file}:{node.line}:{node.col}" if node is not None else plan.file
