"""The canonical form of a plan, its digest, and the recipe of a step. HOT: resuming asks for recipes.

The canonical form is what the plan means, as lines of JSON with sorted keys: every default resolved and then
left out, so that a written default and a missing key are the same. Places in the file, comments, the order of
keys, the way a value is quoted and the folder of the file do not show in it.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Plan, Step

FORM = "planrun-plan-1"  # goes up when the same plan gets another canonical form

# Where a thing stands and how it was written is not what it means.
_PLACES = frozenset(("file", "digest", "line", "col", "condition_text", "source", "steps"))
# What a step does when it runs; when, how long and how often it may run is not part of it.
_RECIPE = ("id", "kind", "action", "env", "env_file", "workdir", "shell", "outputs", "needs_dir")


def digest(plan: Plan) -> str:
    """Return the sha256 of the canonical form, hex; the plan's own `digest` plays no part."""
    found = sha256(FORM.encode())
    found.update(dumps(_plain(plan)).encode())
    for step in plan.steps:
        found.update(b"\n")
        found.update(dumps(_plain(step)).encode())
    return str(found.hexdigest())


def recipe(step: Step) -> str:
    """Return the sha256 of what the step does, hex: while it stays, a finished step need not run again.

    Titles, owners, notes, tags, edges, conditions, timeouts and retries play no part. The environment that the
    plan gives to all its steps is not in it either: see `surroundings`.
    """
    fields = {name: _plain(getattr(step, name)) for name in _RECIPE}
    return str(sha256(dumps(fields).encode()).hexdigest())


def surroundings(plan: Plan) -> str:
    """Return the sha256 of what the plan gives every step to run in: `env`, `env_file` and `inherit_env`."""
    fields = [_plain(plan.env), _plain(plan.env_file), plan.inherit_env]
    return str(sha256(dumps(fields).encode()).hexdigest())


def _plain(value: Any) -> Any:
    """Return a value as JSON data: records as mappings without defaults, keys sorted."""
    if isinstance(value, Record):
        kind = type(value)
        fields = {
            name: _plain(item)
            for name, item in sorted(vars(value).items())
            if name not in _PLACES and item != getattr(kind, name, None)
        }
        return {"": kind.__name__, **fields}
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
