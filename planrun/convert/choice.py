"""Files without a task that runs by itself: all tasks in one plan, and a parameter that chooses one of them."""

from __future__ import annotations

from planrun.convert.draft import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

PARAM = "task"


def choose(plan: DraftPlan, ends: Mapping[str, list[str]]) -> str:
    """Let a parameter choose which task runs, with all that it needs; returns the name of the parameter.

    `ends`: the steps that each task ends with. A step runs for each task that needs it.
    """
    param = PARAM
    while param in plan.params:
        param = f"wanted_{param}"
    users: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    edges = {step.id: list(step.edges) for step in plan.steps}
    for task, last in ends.items():
        waiting, seen = list(last), set()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += edges[name]
                users[name].append(task)
    for step in plan.steps:
        tasks = users[step.id]
        if len(tasks) < len(ends):
            one = f"params.{param} == {quoted(tasks[0])}" if len(tasks) == 1 else ""
            step.demand(one or f"params.{param} in [{', '.join(map(quoted, tasks))}]")
    fragment = {"type": "string", "enum": list(ends), "required": True, "description": "The task to run."}
    plan.params = {param: fragment, **plan.params}
    return param


def tell(found: Findings, param: str, why: str, place: Node) -> None:
    """Report that the plan has all tasks."""
    message = (
        f"{why}: the plan has all tasks, and `--param {param}=NAME` chooses one; --job converts single ones"
    )
    found.differs("task", message, place)
