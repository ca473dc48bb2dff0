"""A step's recipe with every value filled in: what is about to run, and the fingerprint of it."""

from __future__ import annotations

import os

from planrun.actions.environment import parse_env_file, read_env_file
from planrun.errors import EvaluationError
from planrun.model.plan import Exec, Run, Tool
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.environment import Layers
    from planrun.model.plan import Step, Text

BASH = ("bash", "-euo", "pipefail", "-c")
SH = ("sh", "-eu", "-c")
# How the programs that are no shells take a program text.
_INLINE = {"node": "-e", "perl": "-e", "ruby": "-e", "pwsh": "-Command", "powershell": "-Command"}
# One argument may be 128 KiB at most (Linux: MAX_ARG_STRLEN); longer scripts go through a file.
MAX_ARGUMENT = 100_000
# The name of the workspace in a scope: `expressions.tree.ROOT_KEY`, which plain runs do not import.
ROOT = "<root>"


def shell_on(path: str) -> tuple[str, ...]:
    """Return the shell that scripts get by default where PATH is `path`."""
    has_bash = any(os.access(os.path.join(folder, "bash"), os.X_OK) for folder in path.split(os.pathsep))
    return BASH if has_bash else SH


class Recipe(Record):
    """What one attempt runs; `script` is what stands in argv for a shell, so that a long one can be moved."""

    argv: tuple[str, ...]
    env: dict[str, str]  # what the plan adds to the caller's
    workdir: str
    script: str | None = None
    call: dict[str, Any] = {}  # noqa: RUF012 - never written; of a tool: its name, and args

    def fingerprint(self, command: str = "argv") -> str:
        """What decides what the step does, in parts of 128 bits: `argv:…`, then `env:…` and `workdir:…` if any.

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
    """Half of a sha256 in hex: nobody finds two values for it."""
    return str(sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest())[:32]


def shell_words(declared: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv before a script: a bare `bash` or `sh` gets its strict options, others take `-c`."""
    if not declared:
        return default
    if declared == ("bash",):
        return BASH
    if declared == ("sh",):
        return SH
    return (*declared, _INLINE.get(os.path.basename(declared[0]), "-c"))


def is_literal(step: Step) -> bool:
    """Whether the text of a step says all about its scripts: no value is filled in."""
    action = step.action
    if isinstance(action, Run):
        return isinstance(action.script, str) and not isinstance(step.workdir, tuple)
    if isinstance(action, Exec):
        return all(isinstance(word, str) for word in action.argv) and not isinstance(step.workdir, tuple)
    return True


def render_step(step: Step, layers: Layers, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:
    """Fill in every value of a step that is a process; raises EvaluationError."""
    return render_action(step, scope, shell).but(env=added_environment(layers))


def render_action(step: Step, scope: dict[str, Any], shell: tuple[str, ...] = BASH) -> Recipe:
    """Fill in what a step does and where, without its environment; raises EvaluationError."""
    action = step.action
    script = None
    fields: dict[str, Any] = {}
    if isinstance(action, Run):
        script = _script(action.script, scope)
        argv: tuple[str, ...] = (*shell_words(step.shell, shell), script)
    elif isinstance(action, Exec):
        argv = tuple([_argument(word, scope) for word in action.argv])
    elif isinstance(action, Tool):
        from planrun.actions.tools import called, words_of  # few plans call tools

        fields["call"] = called(action, scope)
        argv = words_of(action, fields["call"])
    else:
        raise EvaluationError("the step has nothing to execute")
    workdir = "" if step.workdir is None else _argument(step.workdir, scope)
    return Recipe(argv=argv, env={}, workdir=workdir, script=script, **fields)


def added_environment(layers: Layers) -> dict[str, str]:
    """Return what the plan adds: its env files, its env, then the step's; later ones win.

    `layers`: files and variables, each with the names that their templates read.
    """
    env: dict[str, str] = {}
    for files, values, scope in layers:
        for file in files:
            env.update(_env_file(_argument(file, scope), scope))
        for name, value in values.items():
            env[name] = _argument(value, scope)
    return env


def _script(value: Text, scope: dict[str, Any]) -> str:
    if isinstance(value, str):
        return value
    from planrun.expressions.render import render_script  # only templates pay for it

    return render_script(value, scope)


def _argument(value: Text, scope: dict[str, Any]) -> str:
    """Render one word for the operating system, which ends texts at a NUL."""
    if isinstance(value, str):
        text = value
    else:
        from planrun.expressions.render import render_text  # only templates pay for it

        text = render_text(value, scope)
    if "\0" in text:
        raise EvaluationError("a value contains a NUL character")
    return text


def _env_file(name: str, scope: dict[str, Any]) -> dict[str, str]:
    path = os.path.join(str(scope[ROOT]), name)
    try:
        return parse_env_file(read_env_file(path))
    except OSError as error:
        raise EvaluationError(f"env_file {name}: {error.strerror}") from None
    except ValueError as error:
        raise EvaluationError(f"env_file {name}: {error}") from None
