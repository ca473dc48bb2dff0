"""The key `plan` of `.planrun.yml`: the plan that is run when none is named."""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.plan.yaml.file import read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node

_SIMPLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")


def plan_named(path: str, folder: str) -> str:
    """Return the plan that a project file names, as seen from its folder; "" when it names none.

    Raises InvalidPlan with every problem. The file comes with the checkout: it names no plan outside its folder.
    """
    data = read_source(path, "project file")
    if (simple := _simple(data)) and os.path.isfile(_target(simple, folder)):
        return simple
    from planrun.plan.project import read  # most project files have one line

    root, data = read(path)
    plan = root.get("plan") if root is not None else None
    if plan is None:
        return ""
    target = _target(plan.value, folder)
    if not target:
        message = f"{plan.value} is outside the folder of {os.path.basename(path)}"
        problems = [_problem("E290", message, path, plan, "name a plan inside it")]
    elif not os.path.isfile(target):
        problems = [_problem("E290", f"no such file: {plan.value}", path, plan)]
    else:
        problems = []
    if problems:
        raise InvalidPlan(problems, sources={path: data})
    return os.path.normpath(str(plan.value))


def _target(plan: str, folder: str) -> str:
    """Return the path of a plan with links followed; "" when it is outside its folder."""
    here = os.path.realpath(folder or ".")
    target = os.path.realpath(os.path.join(here, plan))
    is_inside = not os.path.isabs(plan) and target.startswith(here.rstrip("/") + "/")
    return target if is_inside else ""


def _problem(code: str, message: str, path: str, node: Node, hint: str = "") -> Problem:
    from planrun.plan.problems import Problem

    return Problem(
        code=code, message=message, file=path, line=node.line, col=node.col, end_col=node.end_col, hint=hint
    )


def _simple(data: bytes) -> str:
    """Return the plan of a file whose only line besides comments is `plan: NAME`, without a YAML reader; else ""."""
    rows = [row for row in data.split(b"\n") if row.strip() and not row.startswith(b"#")]
    if len(rows) != 1 or not rows[0].startswith(b"plan: "):
        return ""
    name = rows[0][6:].strip().decode("ascii", "replace")
    return name if name.endswith((".yml", ".yaml")) and not set(name) - _SIMPLE else ""
