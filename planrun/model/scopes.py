"""What expressions of a member of a group can read."""

from __future__ import annotations

from planrun.model.groups import chain
from planrun.model.progress import StepValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Step, Text
    from planrun.model.state import RunState


def names_of(state: RunState, step: Step) -> dict[str, Any]:
    """Return `params`, `steps`, `matrix` and `item` as expressions of a member read them.

    A group of which it waits for the instance of its own name stands for that instance.
    """
    found = _names_of(state, step)
    group = state.steps[step.group].step if step.group else None
    for on, _ in group.grouping.same if group and group.kind == "group" else ():
        name = on.rpartition("/")[2]
        found["steps"][name] = found["steps"][f"{name}[{step.instance}]"]
    return found


def _names_of(state: RunState, step: Step) -> dict[str, Any]:
    """Return `params`, `steps`, `matrix` and `item` as expressions of a member read them.

    `matrix` and `item` are those of the member itself or of the nearest group around it that has them; inside another
    plan its own parameters and steps are read, and nothing from outside.
    """
    found: dict[str, Any] = {"params": state.params, "steps": StepValues(state)}
    if step.matrix:
        found["matrix"] = step.matrix
    if step.item:
        found["item"] = step.item[0]
    for name in chain(state, step.id):
        group = state.steps[name]
        if group.step.kind == "group" and group.step.grouping.form == "uses":
            return {**found, **names_within(state, name)}
        if group.step.matrix:
            found.setdefault("matrix", group.step.matrix)
        if group.step.item:
            found.setdefault("item", group.step.item[0])
    return found


def plans_around(
    state: RunState, step: Step, fixed: Mapping[str, Any]
) -> Iterator[tuple[tuple[Text, ...], dict[str, Text], dict[str, Any]]]:
    """Yield what the plans around a step set for all their steps: files, variables, and the names that these read.

    The plan that is run comes first, then those that are used, the innermost last.
    """
    plan = state.plan
    yield plan.env_file, plan.env, {**fixed, "params": state.params}
    for name in reversed(list(chain(state, step.id))):
        group = state.steps[name].step
        if group.kind == "group" and group.grouping.form == "uses":
            action = group.grouping
            yield action.env_file, action.env, {**fixed, **names_within(state, name)}


def names_within(state: RunState, group: str) -> dict[str, Any]:
    """Return `params` and `steps` as expressions of another plan read them, which is a group here."""
    opened = state.steps[group].opened
    return {"params": opened.params if opened else {}, "steps": StepValues(state, group)}
