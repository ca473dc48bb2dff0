"""`.planrun.yml`: the settings of a project, for what has no plan or comes before one. Loaded where there is one."""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.plan.schema.forms import as_bool, as_int, as_size
from planrun.plan.schema.shape import with_shape
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import BOUNDS, read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.yaml.node import Node

PROJECT_FILE = ".planrun.yml"


class Project(Record):
    """The settings of a project; None: what planrun does without them."""

    plan_size: int | None = None  # bytes
    plan_depth: int | None = None
    plan_steps: int | None = None
    persist: bool = True  # the records of a completed run are kept
    stored_runs: int | None = None
    max_context_tokens: int | None = None  # of a question to a model
    auto_detect: bool = True  # the complexity of goals is found
    threshold: str = ""  # from which complexity on a plan is suggested
    remembers_plans: bool = False
    memory_file: str = ""  # what models are told of the project


# Section and key, the field, and what reads the value.
_FIELDS = (
    ("limits", "plan_size", "plan_size", lambda node: as_size(node.value)),
    ("limits", "plan_depth", "plan_depth", as_int),
    ("limits", "plan_steps", "plan_steps", as_int),
    ("records", "persist", "persist", as_bool),
    ("records", "stored_runs", "stored_runs", as_int),
    ("planner", "max_context_tokens", "max_context_tokens", as_int),
    ("planner", "auto_detect", "auto_detect", as_bool),
    ("planner", "threshold", "threshold", lambda node: node.value),
    ("memory", "plans", "remembers_plans", as_bool),
    ("memory", "project", "memory_file", lambda node: node.value),
)


def read(path: str) -> tuple[Node | None, bytes]:
    """Return the tree of a project file, None for an empty one, and its bytes; raises InvalidPlan with all problems."""
    data = read_source(path, "project file")
    root, problems, complete = read_tree(data, path, "project file")
    if [problem.code for problem in problems] == ["E006"]:
        return None, data  # empty, or comments alone
    if root is not None:
        problems = with_shape(root, problems, path, "Project", complete=complete)
    if problems or root is None:
        raise InvalidPlan(problems, sources={path: data})
    return root, data


def project(folder: str = "") -> Project:
    """Return the settings of the project in a folder, by default the current one; raises InvalidPlan."""
    path = os.path.join(folder, PROJECT_FILE)
    if not os.path.lexists(path):
        return Project()
    root, _ = read(path)
    fields: dict[str, Any] = {}
    for section, key, field, value in _FIELDS:
        held = root.get(section) if root is not None else None
        node = held.get(key) if held is not None else None
        if node is not None:
            fields[field] = value(node)
    return Project(**fields)


def take_bounds() -> None:
    """Have the limits of the project in the current folder count for all plans that are read from now on."""
    found = project()
    BOUNDS.size = found.plan_size or 0
    BOUNDS.depth = found.plan_depth or 0
    BOUNDS.steps = found.plan_steps or 0
