"""The kind `tool` when its step starts: the arguments with all values, and the argv of the process."""

from __future__ import annotations

import os

from planrun import entry
from planrun.actions.command import command as command_of_script
from planrun.actions.command import recipe as recipe_of_script
from planrun.actions.render import Recipe
from planrun.errors import EvaluationError
from planrun.expressions.render import render, render_text
from planrun.model.jsontext import dumps
from planrun.model.tools import CATALOGUE, faults, place
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.job import Job, Outcome
    from planrun.model.plan import Step
    from planrun.model.tools import Fragment
    from planrun.plan.kinds.tool import Tool
    from planrun.ports import Masks

# By its path: with -I Python could not find the calling planrun otherwise. -S: it needs no installed packages.
_OPTIONS = ("-I", "-S")
# One argument may be 128 KiB at most (Linux: MAX_ARG_STRLEN), and a character up to four bytes.
_LONGEST = 25_000
_FROM_FILE = "--from"
_SHOWN = 200  # characters of one text in records
_LISTED = 20  # items of one list in records


def recipe(step: Step, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:
    """Return a call with all values filled in; its argv is the same wherever planrun is installed.

    Raises EvaluationError.
    """
    if step.action.is_script:
        return recipe_of_script(step, scope, shell)
    action: Tool = step.action  # type: ignore[assignment]
    # Raises EvaluationError for what cannot be filled in, and for arguments that the tool does not accept
    spec = CATALOGUE[action.name]
    args = {name: _filled(value, spec.params.get(name, {}), scope) for name, value in action.args.items()}
    for fault in faults(spec, args):
        where = f"`{place(fault.path)}` " if fault.path else ""
        raise EvaluationError(f"{spec.name}: {where}{fault.message}")
    call = {"name": spec.name, "args": args}
    argv = ("tool", action.name, str(action.version), dumps(call["args"]))
    return Recipe(argv=argv, env={}, workdir="", call=call)


def command(step: Step, recipe: Recipe, file: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the argv of the process of a call, and the call."""
    if step.action.is_script:
        return command_of_script(step, recipe, file)
    return process_of(recipe.call, file), recipe.call


def process_of(call: dict[str, Any], file: str) -> tuple[str, ...]:
    """Return the argv of the process for a call; long arguments are written to `file`, bound by their hash."""
    args = dumps(call["args"])
    begin = entry.command("planrun.tools.calling", call["name"], flags=_OPTIONS)
    if len(args) <= _LONGEST:
        return (*begin, args)
    data = args.encode()
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)
    return (*begin, _FROM_FILE, file, str(sha256(data).hexdigest()))


def record_of(job: Job, outcome: Outcome, masks: Masks | None) -> dict[str, Any]:
    """Return the record of a call: its id, the tool, its arguments with long texts shortened, and its result."""
    call = job.call
    args = (
        masks.mask_value(call["args"]) if masks else call["args"]
    )  # a shortened secret would not be recognized
    return {
        "id": f"{job.step}.{job.attempt}",
        "name": call["name"],
        "args": shortened(args),
        "ok": outcome.status == "completed",
        "duration": round(outcome.duration, 4),
    }


def shortened(value: Any) -> Any:
    """Return data with long texts and lists cut, and a note of the omitted length."""
    if isinstance(value, dict):
        return {name: shortened(part) for name, part in value.items()}
    if isinstance(value, list):
        more = [f"… {len(value) - _LISTED} more"] if len(value) > _LISTED else []
        return [*map(shortened, value[:_LISTED]), *more]
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]}… {len(value) - _SHOWN} more characters"
    return value


def _filled(value: Any, schema: Fragment, scope: dict[str, Any]) -> Any:
    """Return data with its templates filled in: a single interpolation keeps its type, unless the tool expects text."""
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return {name: _filled(part, parts.get(name, {}), scope) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, schema.get("items", {}), scope) for part in value]
    if not isinstance(value, tuple):
        return value
    found = (render_text if schema.get("type") == "string" else render)(value, scope)
    return list(found) if isinstance(found, tuple) else found
