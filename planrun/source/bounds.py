"""What a run may use up, from nodes."""

from __future__ import annotations

from planrun.model.plan import Limits
from planrun.source.outline import members
from planrun.source.shape import as_duration, as_int, as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.node import Node


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
