"""The secrets that steps list must have values before anything starts; loaded where one has none."""

from __future__ import annotations

import os

from planrun.actions.prepare import Place, Steps
from planrun.errors import EvaluationError, InvalidPlan
from planrun.expressions.check import references
from planrun.model.groups import chain
from planrun.model.plan import Group
from planrun.model.state import RunState
from planrun.plan.includes import outline_for
from planrun.plan.keys.outline import entries
from planrun.plan.problems import Problem, in_order
from planrun.plan.readers import shown
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node


def require_secrets(
    plan: Plan, params: Mapping[str, Any], absent: Mapping[str, str], names: Iterable[str] | None
) -> None:
    """Raise InvalidPlan for each secret in `absent` that a step lists which is about to run, at its place in the file.

    `names`: the steps that are about to run; None: all. A step does not need its secrets when its condition, or that
    of a group around it, is false for parameters and environment alone.
    """
    wanted = None if names is None else frozenset(names)
    state = RunState(plan)
    state.params = dict(params)
    steps = Steps(
        Place(run="", workspace="", rundir="", env=dict(os.environ), shell=(), context=ci_context(os.environ))
    )
    listings = _Listings(plan)
    problems: dict[tuple[str, int, int, str], Problem] = {}
    sources = {plan.file: plan.source}
    for step in plan.steps:
        missing = [name for name in _listed(step) if name in absent]
        if missing and (wanted is None or step.id in wanted) and not _is_left_out(step, state, steps):
            sources |= {shown(plan.file, path): data for path, data in plan.files.items()}
            for name in missing:  # instances of a step share a place
                found = _problem(plan, step, name, absent[name], listings)
                problems.setdefault((found.file, found.line, found.col, name), found)
    if problems:
        raise InvalidPlan(in_order(list(problems.values())), sources=sources)


def _listed(step: Step) -> tuple[str, ...]:
    action = step.action
    return action.template.secrets if isinstance(action, Group) and action.template else step.secrets


def _is_left_out(step: Step, state: RunState, steps: Steps) -> bool:
    around = [state.steps[name].step for name in chain(state, step.id)]
    return any(_is_false(each, state, steps) for each in (step, *around))


def _is_false(step: Step, state: RunState, steps: Steps) -> bool:
    """Whether a condition is false whatever other steps do."""
    if step.condition is None or any(found.path[0] == "steps" for found in references(step.condition)):
        return False
    try:
        return not steps.holds(step, state)
    except EvaluationError:
        return False


def _problem(plan: Plan, step: Step, name: str, why: str, listings: _Listings) -> Problem:
    node, file = listings.node(step, name)
    return Problem(
        code="E235",
        message=f'step "{step.group or step.id}" needs the secret {name}, which is {why} in planrun\'s environment',
        file=file or plan.file_of(step),
        hint=f"set it, or declare `secrets: [{{name: {name}, required: false}}]`",
        line=node.line if node else step.line,
        col=node.col if node else step.col,
        end_col=node.end_col if node else 0,
    )


class _Listings:
    """Where steps list secrets in the files of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._outlines: dict[str, Outline | None] = {}

    def node(self, step: Step, name: str) -> tuple[Node | None, str]:
        """Return the place where a step lists a secret, and its file; None where its text is not at hand."""
        file = step.file
        if file not in self._outlines:
            self._outlines[file] = outline_for(self._plan, step)
        outline = self._outlines[file]
        if outline is None:
            return None, ""
        for draft in outline.drafts:
            place = (outline.path_of(draft.at) or step.file, draft.at.line, draft.at.col)
            if place == (step.file, step.line, step.col):
                listed = entries(draft.keys.get("secrets"))
                found = next((node for node in listed if node.value == name), None)
                return found, outline.file_of(found) if found else ""
        return None, ""
