"""What an editor shows about the word under the pointer."""

from __future__ import annotations

import json
import re

from lsprotocol import types

from planrun.expressions.check import infer
from planrun.expressions.parse import OPEN, parse, parse_script, pieces
from planrun.expressions.tree import ExpressionError
from planrun.lsp.names import Name, at_place
from planrun.lsp.schema import describe
from planrun.lsp.tree import Spot, holds
from planrun.plan.check.references import References
from planrun.plan.keys.formulas import BARE
from planrun.plan.keys.top import declared_secrets
from planrun.risk.classifier import classify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.lsp.analysis import Analysis
    from planrun.model.plan import Step

_INTERPOLATION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_COMMANDS = ("run", "exec")


def hover(analysis: Analysis, before: Analysis | None, place: tuple[int, int]) -> types.Hover | None:
    """Return what there is to say about a place; None for nothing.

    `before`: the last version that was compiled; what it says of steps is shown until this one is.
    """
    line, col = place
    compiled = analysis if analysis.is_compiled and analysis.plan else before or analysis
    name = at_place(analysis.names, line, col)
    spot = analysis.tree.at(line, col)
    inside = spot is not None and holds(spot, line, col, analysis.text.line(line))
    parts: list[str] = []
    if name is not None:
        parts.append(_of_name(name, analysis, compiled))
    if spot is not None and inside:
        parts += _of_key(spot) if spot.is_key else _of_value(spot, analysis, (line, col))
    parts = [part for part in parts if part]
    if not parts:
        return None
    span = analysis.text.span(name.line, name.col, name.length) if name else None
    if span is None and spot is not None and spot.is_key:
        span = analysis.text.word_span(spot.node.line, spot.node.col)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts)), span)


def _of_key(spot: Spot) -> list[str]:
    found = describe(spot.path)
    if found is None:
        return []
    parts = [f"**{found.name}**" + (f": {found.type}" if found.type else ""), found.description]
    if found.words:
        parts.append("One of: " + ", ".join(f"`{word}`" for word in found.words))
    if found.has_example:
        text = json.dumps(found.example, ensure_ascii=False)
        parts.append(f"```yaml\n{found.name}: {text}\n```")
    return parts


def _of_name(name: Name, analysis: Analysis, compiled: Analysis) -> str:
    if name.what == "param":
        checked = analysis.checked
        fragment = checked.params.get(name.name) if checked else None
        if fragment is None:
            return ""
        facts = {key: value for key, value in fragment.items() if key != "description"}
        about = f"\n\n{_plain(str(fragment['description']))}" if fragment.get("description") else ""
        return f"**params.{name.name}** `{json.dumps(facts, ensure_ascii=False)}`{about}"
    step = compiled.steps.get(name.name)
    return about_step(step, compiled) if step is not None else ""


def about_step(step: Step, analysis: Analysis) -> str:
    """Return what a step is: title, action, dependencies, risk."""
    rows = [f"**{_plain(step.id)}**: {_plain(step.title)}" if step.title else f"**{_plain(step.id)}**"]
    if step.description:
        rows.append(_plain(step.description))
    before = [on for edge in step.edges if (on := edge.on) in analysis.steps]
    after = [other.id for other in analysis.steps.values() if step.id in [edge.on for edge in other.edges]]
    rows.append(f"depends on: {_listed(before)}; needed by: {_listed(after)}")
    rows.append(
        f"risk: **{step.risk}** ({_plain(step.risk_reason)})"
        if step.risk_reason
        else f"risk: **{step.risk}**"
    )
    return "  \n".join(rows)


def _of_value(spot: Spot, analysis: Analysis, place: tuple[int, int]) -> list[str]:
    kind = _type_at(spot, analysis, place)
    if kind:
        return [f"expression: `{kind}`"]
    key = next((step for step in reversed(spot.path) if isinstance(step, str)), "")
    if key in _COMMANDS and len(spot.path) >= 3 and spot.path[0] in ("steps", "finally"):
        return [_risk(spot, analysis)]
    return []


def _risk(spot: Spot, analysis: Analysis) -> str:
    """Return the class of risk of a command and why: as the plan has it, or of its text while the plan has errors."""
    node = spot.node
    for raw in analysis.checked.outline.steps if analysis.checked and analysis.is_compiled else ():
        step = analysis.steps.get(raw.id)
        value = raw.keys.get(spot.path[2] if isinstance(spot.path[2], str) else "")
        if step is not None and value is not None and value.line <= node.line and _is_of(raw.node, spot):
            effects = f"; effects: {', '.join(step.effects)}" if step.effects else ""
            return f"risk: **{step.risk}** ({_plain(step.risk_reason)}){effects}"
    if spot.path[2] != "run":
        return ""
    found = classify(_INTERPOLATION.sub('"$VALUE"', node.value))
    return f"risk: **{found.level}** ({_plain(found.reason)})"


def _is_of(node: object, spot: Spot) -> bool:
    values = getattr(node, "value", {})
    found = values.get(spot.path[2]) if isinstance(values, dict) else None
    if found is None:
        return False
    same = (found.line, found.col) == (spot.node.line, spot.node.col)
    inside = isinstance(found.value, list) and any(
        (each.line, each.col) == (spot.node.line, spot.node.col) for each in found.value
    )
    return same or inside


def _type_at(spot: Spot, analysis: Analysis, place: tuple[int, int]) -> str:
    """Return the type of the expression at a place; empty where there is none, or its type is not known."""
    checked = analysis.checked
    if checked is None:
        return ""
    here = (spot.node.line, spot.node.col)
    formula = next(
        (each for each in checked.formulas.listed if (each.node.line, each.node.col) == here), None
    )
    if formula is None:
        return ""
    references = References(
        checked.outline,
        checked.params,
        checked.outputs,
        declared_secrets(checked.outline.root),
        checked.groups,
    )
    if formula.kind in BARE:
        return references.type_of(formula)
    row, col = analysis.text.line(place[0]), place[1]
    start = row.rfind(OPEN, 0, col + 1)
    if start < 0 or 0 <= row.find("}}", start) < col - 3:
        return ""
    source = row[start : row.find("}}", start) + 2] if row.find("}}", start) > 0 else ""
    try:
        if not source or not pieces(source):
            return ""
        tree = parse_script(source) if formula.kind == "script" else parse(source)
        if tree[0] == "template":
            tree = next(part[0] for part in tree[1] if not isinstance(part, str))
        return infer(tree[3] if tree[0] == "sh" else tree, references._type)
    except (ExpressionError, StopIteration):
        return ""


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:10])
    return (shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")) or "none"


def _plain(text: str) -> str:
    """Return text of a plan as markdown shows it: no marks of its own, and one line."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in " ".join(text.split()))
