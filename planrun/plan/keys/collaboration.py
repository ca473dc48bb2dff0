"""The keys under `llm` for agents that work together: `delegation`, `memory`, `messenger` and `reflection`."""

from __future__ import annotations

from planrun.model.collaboration import Collaboration
from planrun.plan.keys.outline import members, scalar
from planrun.plan.schema.forms import as_bool, as_duration, as_int, as_number
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.yaml.node import Node


def _seconds(node: Node) -> float:
    return as_duration(node.value)


# What is not here is text.
_READ: dict[str, Callable[[Node], Any]] = {
    "enabled": as_bool,
    "alpha": as_number,
    "max_depth": as_int,
    "depth_penalty": as_int,
    "suppress_for": _seconds,
    "max_parallel_agents": as_int,
    "load_penalty": as_number,
    "max_entries": as_int,
    "max_bytes": as_int,
    "timeout": _seconds,
    "llm": as_bool,
    "autofix": as_bool,
}


def settings_of(name: str, node: Node) -> dict[str, Any]:
    """Return the settings of one of these keys, without those that say the default."""
    defaults = getattr(Collaboration, name)
    given = {key: _READ[key](value) if key in _READ else value.value for key, value in members(node)}
    return {key: value for key, value in given.items() if value != getattr(defaults, key)}


def check(checked: Checked) -> None:
    """Report a folder of the memory that is not inside of the workspace."""
    llm = checked.outline.root.get("llm")
    memory = llm.get("memory") if llm is not None and llm.kind == MAPPING else None
    folder = scalar(memory.get("dir")) if memory is not None and memory.kind == MAPPING else None
    if folder is None:
        return
    parts = folder.value.split("/")
    if not folder.value or folder.value.startswith(("/", "~")) or ".." in parts or "${{" in folder.value:
        message = f'the folder "{folder.value}" of `llm.memory.dir` is not inside of the workspace'
        hint = "name a folder of the workspace, or leave `dir` out: then it is in the folder for caches"
        checked.outline.report("E265", message, folder, hint)
