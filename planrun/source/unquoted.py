"""Values known before the run that `run:` refuses without quotes: defaults and enums of parameters, and instances.

A refused value makes its step `failed (refused)` when it starts, so a plan that can only fail is an error (E220), and
one that fails with some of its values has a warning (W306).
"""

from __future__ import annotations

from itertools import product

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.errors import ExpressionError
from planrun.expressions.render import render_text, unsafe_in
from planrun.model.jsontext import quote
from planrun.source.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.expressions.tree import Template, Tree
    from planrun.source.formulas import Formula
    from planrun.source.instances import Instances
    from planrun.source.outline import Outline

    Values = dict[str, Any]

MAX_EVALUATED = 50_000  # values of all scripts of a plan: about 0.2 s; what is beyond is refused when it runs
MAX_COMBINED = 100  # combinations of values of parameters that one interpolation reads
_SHOWN = 40  # characters of a value in a message
_KNOWN = frozenset(("params", "matrix", "item"))
_OUTSIDE = ("command", "brace")  # what `open_quotes` calls places outside of quotes


def check_unquoted(
    outline: Outline,
    formulas: Iterable[Formula],
    params: Mapping[str, Values],
    groups: Mapping[str, Instances],
) -> None:
    """Report interpolations in scripts whose known values `run:` refuses."""
    left = MAX_EVALUATED
    for formula in formulas:
        owner = formula.owner
        if formula.kind != "script" or owner is None:
            continue
        for place, part in enumerate([part for part in formula.value[1] if not isinstance(part, str)]):
            scopes = list(_scopes(part[0], params, groups.get(owner.id)))
            left -= len(scopes)
            if left < 0:
                return
            found = _refused(part, scopes, is_certain=_is_closed(part[0], params))
            if found is None:
                continue
            message, never = found
            code = "E220" if never and "condition" not in owner.keys else "W306"
            error = ExpressionError(message, part[0][1], part[0][2])
            severity = "error" if code == "E220" else "warning"
            outline.report_in(formula.node, code, error, _hint(formula.value, place, part), severity=severity)


def _scopes(
    tree: Tree, params: Mapping[str, Values], group: Instances | None
) -> Iterator[tuple[str | None, Values]]:
    """Yield the names that an interpolation may be evaluated with, each with the instance that it is of.

    Nothing where `| sh` quotes the value, or where something that it reads is not known.
    """
    paths = [reference.path for reference in references(tree)]
    if tree[0] == "sh" or not all(path[0] in _KNOWN for path in paths):
        return
    made: list[Values | None] = [None]
    if any(path[0] != "params" for path in paths):
        if group is None or group.made is None:
            return
        made = [*group.made]
    domains = {str(path[1]): None for path in paths if path[0] == "params" and len(path) > 1}
    values = [_values(params.get(name, {})) for name in domains]
    size = 1
    for listed in values:
        size *= len(listed)
    if size > MAX_COMBINED or (size == 0 and domains):
        return
    for instance in made:
        for combined in product(*values):
            scope: Values = {"params": dict(zip(domains, combined, strict=True)), **(instance or {})}
            yield instance["instance"] if instance else None, scope


def _values(fragment: Values) -> list[Any]:
    """Return the values that a parameter is known to have, or to be able to have."""
    if "enum" in fragment:
        return list(fragment["enum"])
    return [fragment["default"]] if "default" in fragment else []


def _is_closed(tree: Tree, params: Mapping[str, Values]) -> bool:
    """Whether the values that an interpolation is evaluated with are all that there can be."""
    return all(
        len(reference.path) > 1 and "enum" in params.get(str(reference.path[1]), {})
        for reference in references(tree)
        if reference.path[0] == "params"
    )


def _refused(
    part: tuple[Tree, str], scopes: list[tuple[str | None, Values]], *, is_certain: bool
) -> tuple[str, bool] | None:
    """Return a message about the refused values, and whether step or instance can never run; None for none."""
    refused: dict[str | None, str] = {}
    fine: set[str | None] = set()
    for instance, scope in scopes:
        try:
            text = render_text(("template", (part,)), scope)
        except EvaluationError:
            return None  # another problem, with a message of its own
        if unsafe_in(text):
            refused.setdefault(instance, text)
        else:
            fine.add(instance)
    if not refused:
        return None
    never = [instance for instance in refused if instance not in fine] if is_certain else []
    instance = never[0] if never else next(iter(refused))
    text = refused[instance]
    shown = quote(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    message = f"`run` refuses the value {shown}: it contains {unsafe_in(text)!a} and is not quoted"
    if instance is not None:
        message = f"instance {quote(instance)}: {message}"
    if len(refused) > 1:
        message += f" ({len(refused) - 1} more like it)"
    return message, bool(never)


def _hint(template: Template, place: int, part: tuple[Tree, str]) -> str:
    source = part[1].strip()
    if open_quotes(template[1])[place] not in _OUTSIDE:
        return "write the interpolation outside of quotes and add `| sh`, or pass the value in `env:`"
    if part[0][0] == "path":
        return f"write `${{{{ {source} | sh }}}}` to quote it, or pass the value in `env:`"
    return "add `| sh` to quote it, or pass the value in `env:`"
