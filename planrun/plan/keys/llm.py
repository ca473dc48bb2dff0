"""The language model of a plan, from the checked node tree."""

from __future__ import annotations

from planrun.model.planning import Llm
from planrun.plan.keys.outline import members
from planrun.plan.schema.forms import as_bool, as_duration, as_int, to_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.plan.yaml.node import Node


def _seconds(node: Node) -> float:
    return as_duration(node.value)


_READ: dict[str, Callable[[Node], Any]] = {
    "plan_max_tokens": as_int,
    "max_generated_steps": as_int,
    "retries": as_int,
    "extra_body": to_data,
    "enabled": as_bool,
    "planning_timeout": _seconds,
    "timeout": _seconds,
}


def llm_of(node: Node) -> Llm:
    """Return what a plan says about its model."""
    fields: dict[str, Any] = {
        name: _READ[name](value) if name in _READ else value.value for name, value in members(node)
    }
    return Llm(**fields)
