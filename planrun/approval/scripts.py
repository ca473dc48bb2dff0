"""Read the scripts that a plan names, once: regular files of the workspace; pipes and devices cannot block it."""

from __future__ import annotations

import os
from itertools import pairwise

from planrun.actions.command import BASH
from planrun.actions.render import Recipe, is_literal, render_action
from planrun.actions.scripts import mentioned
from planrun.approval.notified import step_of
from planrun.errors import EvaluationError, InvalidInput
from planrun.model.record import Record
from planrun.plan.yaml.file import NotRegular, read_script
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step

_WRITERS = frozenset((">", "tee", "-o", "--output", "-O"))
_MOST = 64 << 20  # bytes of all scripts of a plan
_TEXT = 8192  # the first bytes; a text has no NUL among them


class Scripts(Record):
    """Scripts by workspace-relative path with their sha256, and the facts of `planrun.approval.digest.Reviewed`."""

    known: dict[str, str]
    uncovered: dict[str, str]
    contents: dict[str, bytes]
    later: tuple[str, ...]


class _Uncovered(Exception):
    """A file that is not kept; the text says why."""


def collect(plan: Plan, params: Mapping[str, Any], workspace: str) -> Scripts:
    """Read what a plan names; raises InvalidInput."""
    root = os.path.realpath(workspace)
    scripts: dict[str, str] = {}
    uncovered: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    later: list[str] = []
    asked: set[str] = set()
    total = 0
    uncovered.update(dict.fromkeys(_made(plan), "a step of the plan writes it"))
    steps = [each for written in plan.reviewed() for each in (written, *written.attached_steps)]
    for step in (*steps, *[step_of(target) for target in plan.notify if target.argv]):
        named = _named(step, params, workspace, later)
        asked.update(named)
        for path in (*named, *step.mentions):
            if path in scripts or path in uncovered or (path not in named and not _is_program(root, path)):
                continue
            try:
                data = _read(root, path, step, plan)
            except _Uncovered as error:
                uncovered[path] = str(error)
                continue
            total += len(data)
            if total > _MOST:
                raise InvalidInput(f"the scripts of {plan.file} have more than {_MOST >> 20} MiB together")
            scripts[path] = digest = str(sha256(data).hexdigest())
            contents[digest] = data
    uncovered = {path: why for path, why in uncovered.items() if path in asked}
    return Scripts(known=scripts, uncovered=uncovered, contents=contents, later=tuple(later))


def _made(plan: Plan) -> set[str]:
    """Return the files that the plan writes from its own text: their content was reviewed with the plan."""
    result: set[str] = set()
    for step in plan.reviewed():
        if not step.action.is_script or not isinstance(step.action.script, str):
            continue
        words = step.action.script.replace(">", " > ").split()
        folder = step.workdir if isinstance(step.workdir, str) else ""
        for before, word in pairwise(words):
            if before in _WRITERS:
                result.add(os.path.normpath(os.path.join(folder, word.strip("\"';&|()"))))
    return result


def _named(step: Step, params: Mapping[str, Any], workspace: str, later: list[str]) -> tuple[str, ...]:
    """Return the paths that a step names, as far as they are known before the run; adds it to `later` otherwise."""
    if not step.action.is_command:
        return ()
    names = step.scripts
    if is_literal(step):
        return names
    try:
        recipe: Recipe = render_action(step, {"params": params}, BASH)
    except EvaluationError:  # it reads outputs, or the environment
        later.append(step.id)
        return names
    return (*names, *(found.path for found in mentioned(step, recipe, workspace)))


def _is_program(root: str, path: str) -> bool:
    """Whether a word of a text that cannot be parsed is an executable file of the workspace."""
    real = os.path.realpath(os.path.join(root, path))
    return real.startswith(root.rstrip("/") + "/") and os.path.isfile(real) and os.access(real, os.X_OK)


def _read(root: str, path: str, step: Step, plan: Plan) -> bytes:
    """Return the bytes of a script; raises _Uncovered, InvalidInput."""
    where = f'{plan.file_of(step)}:{step.line}: step "{step.id}" runs {path}'
    real = os.path.realpath(os.path.join(root, path))
    if not real.startswith(root.rstrip("/") + "/"):
        raise InvalidInput(f"{where}, which leads out of the workspace by a symbolic link")
    try:
        data = read_script(real)
    except FileNotFoundError:
        raise _Uncovered("it does not exist when the run begins") from None
    except NotRegular as what:
        raise InvalidInput(f"{where}, which is {what}; a script is a regular file") from None
    except (OSError, ValueError) as error:
        raise _Uncovered(getattr(error, "strerror", None) or str(error)) from None
    if b"\0" in data[:_TEXT]:
        raise _Uncovered("it is a program and no text")
    return data
