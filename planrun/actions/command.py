"""The kinds `run` and `exec` when their step starts: the shell of a script, and its text or argv with all values."""

from __future__ import annotations

import os

from planrun.actions.render import Recipe, render_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Step

BASH = ("bash", "-euo", "pipefail", "-c")
SH = ("sh", "-eu", "-c")
# The options by which other programs than shells take a program text.
_INLINE = {"node": "-e", "perl": "-e", "ruby": "-e", "pwsh": "-Command", "powershell": "-Command"}
# One argument may be 128 KiB at most (Linux: MAX_ARG_STRLEN); longer scripts go through a file.
MAX_ARGUMENT = 100_000


def shell_on(path: str) -> tuple[str, ...]:
    """Return the shell that scripts get by default where PATH is `path`."""
    has_bash = any(os.access(os.path.join(folder, "bash"), os.X_OK) for folder in path.split(os.pathsep))
    return BASH if has_bash else SH


def shell_words(declared: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv before a script: a bare `bash` or `sh` gets its strict options, others take `-c`."""
    if not declared:
        return default
    if declared == ("bash",):
        return BASH
    if declared == ("sh",):
        return SH
    return (*declared, _INLINE.get(os.path.basename(declared[0]), "-c"))


def recipe(step: Step, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:
    """Return the recipe of a script or program with all values filled in; raises EvaluationError."""
    action = step.action
    if not action.is_script:
        return Recipe(argv=tuple([render_word(word, scope) for word in action.argv]), env={}, workdir="")
    value = action.script
    if isinstance(value, str):
        script = value
    else:
        from planrun.expressions.render import render_script  # loaded for templates only

        script = render_script(value, scope)
    argv = (*shell_words(step.shell, shell), script)
    if shell == BASH and not step.shell:
        return Recipe(argv=argv, env={}, workdir="", script=script, may_omit_shell=True)
    return Recipe(argv=argv, env={}, workdir="", script=script)


def command(step: Step, recipe: Recipe, file: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the argv of the process, and the tool call if the script calls the tool `shell`.

    A script that may be too long for one argument is written to `file`, and `-c` and similar options are dropped.
    """
    name, script = step.action.name, recipe.script
    call = {"name": name, "args": {"command": script}} if name else {}
    if script is None or len(script) <= MAX_ARGUMENT // 4:
        return recipe.argv, call
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(os.fsencode(script))  # invalid UTF-8 stays unchanged
    return (*recipe.argv[:-2], file), call
