"""Risks that steps declare, held against those that are found."""

from __future__ import annotations

from planrun.risk.levels import rank
from planrun.source.compile import Compiler
from planrun.source.problems import in_order
from planrun.source.risks import TOO_MUCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.outline import Draft
    from planrun.source.validate import Checked


def _found(compiler: Compiler, draft: Draft, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the risk of a step; of one with instances, the worst of theirs."""
    group = compiler.groups.get(draft.id)
    if group is None or not group.made:
        return compiler.risks.of(fields)
    from planrun.source.unfolding import filled

    every = [compiler.risks.of(filled(fields, made)) for made in group.made]
    return max(every, key=lambda found: rank(found["risk"]) if found else -1)


def check_declared(checked: Checked) -> None:
    """Report every declared risk that is below the one that was found; only such steps are looked at."""
    outline = checked.outline
    compiler = Compiler(checked)
    for draft in outline.drafts:
        if outline.is_full:
            break
        if "risk" not in draft.keys or draft.is_gate or "uses" in draft.keys:
            continue
        try:
            fields = compiler.surface(draft)
        except ValueError:  # a shell that cannot be split into words: told already
            continue
        found = _found(compiler, draft, {**fields, "declared_risk": ""})
        node = draft.keys["risk"]
        if found and found["risk_reason"] != TOO_MUCH and rank(node.value) < rank(found["risk"]):
            message = f'step "{draft.id}" declares the risk {node.value}, and planrun finds {found["risk"]}'
            hint = found["risk_reason"]
            if found.get("open_risk"):
                hint += "; leave `risk` out, and it is found again when all values are known"
            outline.report("E260", message, node, hint)
    checked.problems = in_order(outline.problems)
