"""What a plan says of runs as a whole: what they are given, and what they may use up."""

from __future__ import annotations

from planrun.model.plan import Limits, Param
from planrun.plan.keys.outline import members, scalar
from planrun.plan.schema.forms import as_duration, as_int, as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.plan.yaml.node import Node


def params_of(fragments: Mapping[str, Mapping[str, Any]]) -> tuple[Param, ...]:
    """Return the parameters of a plan in file order; `fragments`: as they were written, by name."""
    found = []
    for name, fragment in fragments.items():
        schema = {key: value for key, value in fragment.items() if key != "required"}
        required = {"required": True} if fragment.get("required") is True else {}
        found.append(Param(name=name, schema=schema, **required))
    return tuple(found)


def limit_of(root: Node, key: str) -> int:
    """Return a number under `limits`, of a file that may be misshapen; the default where it is none."""
    limits = root.get("limits")
    given = scalar(limits.get(key)) if limits is not None else None
    try:
        return as_int(given) if given is not None else int(getattr(Limits, key))
    except ValueError:  # reported by the check of the shape
        return int(getattr(Limits, key))


def limits_of(node: Node | None) -> Limits:
    """Return the limits of a run."""
    fields: dict[str, Any] = {}
    for key, value in members(node):
        if key in ("deadline", "cleanup"):
            fields[key] = as_duration(value.value)
        elif key == "max_usd":
            fields[key] = float(as_number(value))
        elif key == "locks":
            fields[key] = {name: as_int(slots) for name, slots in members(value)}
        else:
            fields[key] = as_int(value)
    return Limits(**fields)
