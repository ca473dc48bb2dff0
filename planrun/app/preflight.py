"""What is known of a run before it: what the cache has for a step, and which conditions hold whatever steps do.

Starts no process and changes nothing.
"""

from __future__ import annotations

import os

from planrun.actions.command import shell_on
from planrun.actions.environment import RunEnvironment, caller_environment
from planrun.actions.keys import upstream
from planrun.actions.prepare import Steps
from planrun.app.caching import cache_of
from planrun.app.run import secrets_of
from planrun.approval.digest import review
from planrun.approval.preview import known_params
from planrun.clock import SystemClock
from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.settings import ci_context, current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.caching import StepCache
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings


class Preview(Record):
    """What the cache has for a step now.

    `hit` and `key`: None when they are known only when steps before it ran; `source`: the run that made the result;
    `why`: the first part that differs from the last time, or why there is no result, "" for a hit; `depends_on`: the
    step before it whose results are not known.
    """

    hit: bool | None = None
    key: str | None = None
    source: str = ""
    why: str = ""
    depends_on: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "hit": self.hit,
            "key": self.key,
            "run": self.source or None,
            "why": self.why or None,
            "depends_on": self.depends_on or None,
        }


class Ahead:
    """A run that has not begun, with the files, parameters and variables of this moment."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self._settings = settings
        params, self.missing = known_params(plan, settings.params)
        secrets = secrets_of(plan)
        workspace = current_folder()
        self.state = RunState(secrets.masked(plan) if secrets else plan)
        self.state.params = params
        env, _ = caller_environment(plan.inherit_env, os.environ, plan.secrets)
        place = RunEnvironment(
            run="",
            workspace=workspace,
            rundir=os.path.join(workspace, ".planrun", "runs", "preview"),  # it is in no key, and is not made
            env=env,
            shell=shell_on(env.get("PATH", os.defpath)),
            context=ci_context(os.environ),
            scripts=dict(review(plan, params, workspace).scripts),
            hidden=(os.path.normpath(settings.report_dir),),
        )
        if secrets:
            place = place.but(secrets=secrets.declared, absent=secrets.absent, masks=secrets.redactor)
        self.steps = Steps(place)
        self._previews: _Previews | None = None

    def cached(self, step: Step) -> Preview:
        """Return what the cache has for a step with `cache`."""
        if self.missing:
            name = self.missing[0]
            return Preview(why=f"the parameter {name} has no value (--param {name}=VALUE)")
        if self._previews is None:
            cache = cache_of(self.steps, self._settings, SystemClock())
            self._previews = _Previews(self.state, self.steps, cache)
        return self._previews.of(self.state.steps[step.id].step)

    def holds(self, step: Step) -> bool | None:
        """Return whether the condition of a step holds whatever steps do; None when it depends on them."""
        if step.condition is None:
            return True
        for reference in references(step.condition):
            root, second = reference.path[0], str(reference.path[1]) if len(reference.path) > 1 else ""
            if root == "steps" or (root == "run" and second in ("status", "failed")):
                return None
            if root == "params" and second in self.missing:
                return None
        try:
            return self.steps.holds(step, self.state)
        except (EvaluationError, KeyError):
            return None

    def scope(self, step: Step) -> dict[str, Any]:
        """Return the names that texts of a step can read now: none of other steps."""
        try:
            found = self.steps.scope(self.state, step)
        except (EvaluationError, KeyError):  # its environment depends on what other steps return
            found = {"params": self.state.params, "run": self.steps.place.context}
        return {name: value for name, value in found.items() if name not in ("steps", "step")}


class _Previews:
    """What the cache has for steps; the results of steps before them stand in `state` as if they had been used."""

    def __init__(self, state: RunState, steps: Steps, cache: StepCache) -> None:
        self._state = state
        self._steps = steps
        self._cache = cache
        self._known: dict[str, Preview] = {}

    def of(self, step: Step) -> Preview:
        """Return what the cache has for one step, after what it has for the steps before it."""
        pending = [step]
        while pending:
            each = pending[-1]
            before = [name for name in upstream(self._state, each) if name not in self._known]
            if before:
                pending += [self._state.steps[name].step for name in before]
            else:
                self._known[pending.pop().id] = self._look(each) if each.cache else Preview()
        return self._known[step.id]

    def _look(self, step: Step) -> Preview:
        if step.container is not None:
            return Preview(why="its image is looked up only when it runs")
        unknown = next(filter(self._is_unknown, upstream(self._state, step)), "")
        try:
            key, entry, why = self._cache.peek(step, self._state, complete=not unknown)
        except EvaluationError as error:
            return Preview(why="" if unknown else str(error), depends_on=unknown)
        if unknown:
            return Preview(why=why, depends_on=unknown)
        if entry is None:
            return Preview(hit=False, key=key, why=why)
        found = self._state.steps[step.id]
        found.restored, found.outputs = entry, entry.outputs
        return Preview(hit=True, key=key, source=entry.source)

    def _is_unknown(self, name: str) -> bool:
        """Whether the outputs or files of a step are known only when it ran."""
        step = self._state.steps[name].step
        if self._known.get(name, Preview()).hit:
            return False
        plain = step.action.timed and not (step.action.name or step.outputs or step.produces or step.keeps)
        return not plain
