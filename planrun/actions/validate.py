"""The kind `validate`: checks without a process, with an immediate outcome that names each check."""

from __future__ import annotations

import os
import time

from planrun.actions.render import Recipe, added_environment
from planrun.errors import EvaluationError, InvalidInput
from planrun.expressions.evaluate import evaluate
from planrun.expressions.render import render_text
from planrun.model.job import Outcome, Prepared
from planrun.plan.compile.canonical import plain
from planrun.plan.kinds.validate import Validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.actions.context import StepContext
    from planrun.model.plan import Check, Step
    from planrun.model.state import RunState
    from planrun.ports import Masks


def prepare(steps: StepContext, step: Step, state: RunState, scope: dict[str, Any]) -> Prepared:
    """Run the checks of a step; raises EvaluationError when its environment cannot be rendered."""
    action: Validate = step.action  # type: ignore[assignment]
    began = time.monotonic()
    place, added = steps.place, added_environment(steps.layers(step, state, scope))
    env = {**place.env, **added, **steps.secrets(step)}
    results = run_checks(action.checks, CheckScope(place.workspace, env, scope, place.masks))
    failed = [result for result in results if not result["ok"]]
    message = "; ".join(f"{result['name']}: {result['message']}" for result in failed)
    outcome = Outcome(
        status="failed" if failed else "completed",
        reason="verify" if failed else "ran",
        duration=time.monotonic() - began,
        message=message,
        checks=results,
    )
    return Prepared(fingerprint=_fingerprint(steps, step, added), outcome=outcome)


def fingerprint(steps: StepContext, step: Step, state: RunState, scope: dict[str, Any]) -> str:
    """Return the fingerprint of the checks of a step; raises EvaluationError."""
    return _fingerprint(steps, step, added_environment(steps.layers(step, state, scope)))


def _fingerprint(steps: StepContext, step: Step, env: dict[str, str]) -> str:
    """Return the fingerprint of such a step; it ignores the layout of its checks."""
    recipe = Recipe(argv=(repr(plain(step.action)),), env=env, workdir="")
    return steps.redacted(step, recipe).fingerprint("checks")


class CheckScope:
    """The inputs of checks: the workspace, the environment of the step, and the values of its expressions."""

    __slots__ = ("env", "folder", "masks", "values")

    def __init__(
        self, folder: str, env: Mapping[str, str], values: dict[str, Any], masks: Masks | None = None
    ) -> None:
        self.folder = folder
        self.env = env
        self.values = values
        self.masks = masks


def run_checks(checks: tuple[Check, ...], where: CheckScope) -> tuple[dict[str, Any], ...]:
    """Return one `{name, ok, message}` per check, in order; a check that cannot run is not ok."""
    results = []
    for check in checks:
        try:
            message = _CHECKS[check.kind](check.value, where)
        except EvaluationError as error:
            message = str(error)
        results.append({"name": f"{check.kind}: {check.source}", "ok": not message, "message": message})
    return tuple(results)


def _texts(value: Any, where: CheckScope) -> list[str]:
    return [render_text(text, where.values) for text in value]


def _files_exist(value: Any, where: CheckScope) -> str:
    missing = [name for name in _texts(value, where) if not os.path.exists(os.path.join(where.folder, name))]
    return f"missing: {', '.join(missing)}" if missing else ""


def _writable(value: Any, where: CheckScope) -> str:
    names = _texts(value, where)
    refused = [name for name in names if not os.access(os.path.join(where.folder, name), os.W_OK)]
    return f"not writable: {', '.join(refused)}" if refused else ""


def _commands_on_path(value: Any, where: CheckScope) -> str:
    import shutil  # loaded for plans with such a check only

    path = where.env.get("PATH", os.defpath)
    missing = [name for name in _texts(value, where) if shutil.which(name, path=path) is None]
    return f"not on PATH: {', '.join(missing)}" if missing else ""


def _env_set(value: Any, where: CheckScope) -> str:
    missing = [name for name in _texts(value, where) if not where.env.get(name)]
    return f"not set: {', '.join(missing)}" if missing else ""


def _json_schema(value: Any, where: CheckScope) -> str:
    from jsonschema import Draft202012Validator, exceptions, validators

    file = render_text(value["file"], where.values)
    schema = value["schema"]
    instance, problem = _load(file, where)
    if problem:
        return problem
    if not isinstance(schema, dict):
        schema, problem = _load(render_text(schema, where.values), where)
        if problem:
            return problem
    try:
        chosen = validators.validator_for(schema, default=Draft202012Validator)
        chosen.check_schema(schema)
    except exceptions.SchemaError as error:
        return f"the schema itself is not valid: {error.message}"
    found = sorted(chosen(schema).iter_errors(instance), key=lambda error: list(map(str, error.path)))
    if not found:
        return ""
    place = "/".join(map(str, found[0].path)) or "the document"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{file}: {place}: {found[0].message}{more}"


def _load(name: str, where: CheckScope) -> tuple[Any, str]:
    """Return the data in a JSON or YAML file, or its error."""
    path = os.path.join(where.folder, name)
    if name.endswith((".yml", ".yaml")):
        return _load_yaml(path, name, where.masks)
    import json

    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file), ""
    except OSError as error:
        return None, f"{name}: {error.strerror}"
    except (ValueError, RecursionError) as error:
        return None, f"{name}: not JSON: {error}"


def _load_yaml(path: str, name: str, masks: Masks | None) -> tuple[Any, str]:
    from planrun.plan.schema.forms import to_data
    from planrun.plan.yaml.document import parse
    from planrun.plan.yaml.file import read_source

    try:
        data = read_source(path)
        node, problems = parse(data, name)
        if problems and masks and masks.mask_value(data) != data:
            from planrun.plan.problems import (
                CODES,  # the messages quote the file, truncated anywhere
            )

            problems = [problem.but(message=CODES[problem.code]) for problem in problems]
    except InvalidInput as error:
        return None, str(error)
    if problems or node is None:
        first = problems[0] if problems else None
        return None, f"{name}:{first.line}:{first.col}: {first.message}" if first else f"{name}: empty"
    return to_data(node), ""


def _that(value: Any, where: CheckScope) -> str:
    result = evaluate(value, where.values)
    if result is True:
        return ""
    return "it is false" if result is False else "it is not a boolean"


def _dependencies_completed(value: Any, where: CheckScope) -> str:
    steps = where.values["steps"]
    found = [(name, steps[name]["status"]) for name in value]
    others = [f"{name} is {status}" for name, status in found if status != "completed"]
    return f"not completed: {', '.join(others)}" if others else ""


_CHECKS = {
    "files_exist": _files_exist,
    "writable": _writable,
    "commands_on_path": _commands_on_path,
    "env_set": _env_set,
    "json_schema": _json_schema,
    "that": _that,
    "dependencies_completed": _dependencies_completed,
}
