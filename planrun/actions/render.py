"""A step's recipe with every value filled in: the command to run, and its fingerprint."""

from __future__ import annotations

import os

from planrun.actions import kind_of
from planrun.errors import EvaluationError
from planrun.model.plan import unmarked
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.environment import Layers
    from planrun.model.plan import Step, Text

# The name of the workspace in a scope: `expressions.tree.ROOT_KEY`, which simple runs do not import.
ROOT = "<root>"


class Recipe(Record):
    """The command of one attempt; `script` is the shell script in argv, so that a long one can be moved to a file."""

    argv: tuple[str, ...]
    env: dict[str, str]  # additions of the plan to the caller's
    workdir: str
    script: str | None = None
    may_omit_shell: bool = False  # argv is the default shell bash and the script
    call: dict[str, Any] = {}  # noqa: RUF012 - never written; of a tool: its name, and args

    def fingerprint(self, command: str = "argv") -> str:
        """The fingerprint of the action, in parts of 128 bits: `argv:…`, then `env:…` and `workdir:…` if any.

        A step that runs reviewed scripts has one more, see `steps.copies`.
        """
        parts = f"{command}:{brief(self.argv)}"
        if self.env:
            parts += f" env:{brief(sorted(self.env.items()))}"
        return f"{parts} workdir:{brief(self.workdir)}" if self.workdir else parts


def parts_of(fingerprint: str) -> dict[str, str]:
    """Return the parts of a fingerprint by name."""
    return {name: digest for name, _, digest in (part.partition(":") for part in fingerprint.split())}


def brief(value: object) -> str:
    """Half of a sha256 in hex: long enough against collisions."""
    return str(sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest())[:32]


def is_literal(step: Step) -> bool:
    """Whether the scripts of a step contain no values to fill in."""
    if not step.action.is_command:
        return True
    return not isinstance(step.workdir, tuple) and all(isinstance(word, str) for word in step.action.words())


def render_step(step: Step, layers: Layers, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:
    """Fill in every value of a step that is a process; raises EvaluationError."""
    recipe = render_action(step, scope, shell)
    env = added_environment(layers)
    return recipe.but(env=env) if env else recipe


def render_action(step: Step, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:
    """Fill in the command and folder of a step, without its environment; raises EvaluationError."""
    if not step.action.starts_process:
        raise EvaluationError("the step has nothing to execute")
    recipe: Recipe = kind_of(step.kind).recipe(step, scope, shell)
    return recipe if step.workdir is None else recipe.but(workdir=render_word(step.workdir, scope))


def added_environment(layers: Layers) -> dict[str, str]:
    """Return the variables that the plan adds: its env files, its env, then the step's; later ones win.

    `layers`: files and variables, each with the names that their templates read.
    """
    env: dict[str, str] = {}
    for files, values, scope in layers:
        for file in files:
            path, is_optional = unmarked(file)
            env.update(_env_file(render_word(path, scope), scope, env, is_optional=is_optional))
        for name, value in values.items():
            env[name] = render_word(value, scope)
    return env


def render_word(value: Text, scope: dict[str, Any]) -> str:
    """Render one word for the operating system, where a NUL ends texts."""
    if isinstance(value, str):
        text = value
    else:
        from planrun.expressions.render import render_text  # loaded for templates only

        text = render_text(value, scope)
    if "\0" in text:
        raise EvaluationError("a value contains a NUL character")
    return text


def _env_file(
    name: str, scope: dict[str, Any], before: dict[str, str], *, is_optional: bool
) -> dict[str, str]:
    """Return the variables of a file; its placeholders find those that stand `before` it, and the caller's."""
    from planrun.actions.dotenv import parse_env_file, read_env_file  # few steps have files

    path = os.path.join(str(scope[ROOT]), name)
    try:
        return parse_env_file(read_env_file(path), {**scope["env"], **before})
    except OSError as error:
        if is_optional and isinstance(error, FileNotFoundError):
            return {}
        raise EvaluationError(f"env_file {name}: {error.strerror}") from None
    except ValueError as error:
        raise EvaluationError(f"env_file {name}: {error}") from None
