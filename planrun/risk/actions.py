"""The class of a whole action: its command, the shell that reads it, and the variables that the plan sets for it."""

from __future__ import annotations

from planrun.risk.classify import Risk, classify, classify_argv, ground_of, with_effects
from planrun.risk.environment import harm
from planrun.risk.levels import HIGH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.risk.classify import Setting

_SHELLS = frozenset(("bash", "sh", "dash"))
# Options of a shell that leave the meaning of a text as it is.
_OPTIONS = frozenset("eufxvpno")
_LONG = frozenset(("--noprofile", "--norc", "--posix"))
_MODES = frozenset(("pipefail", "errexit", "nounset", "xtrace", "noglob", "verbose", "inherit_errexit"))


def of_script(script: str, shell: Sequence[str], env: Mapping[str, str | None], setting: Setting) -> Risk:
    """Return the class of a script for a shell; see `of_argv`. `shell` is the argv before the script, `-c` included."""
    if shell and not reads_bash(shell):
        return with_effects(_high(f"inline code of {shell[0]}, which is not looked into"), script)
    return of_environment(env, setting) or classify(script, setting)


def of_argv(argv: tuple[str, ...], env: Mapping[str, str | None], setting: Setting) -> Risk:
    """Return the class of a program with its arguments.

    `env` are the variables that are set for it, None for a value that is not known yet.
    """
    return of_environment(env, setting) or classify_argv(argv, setting)


def reads_bash(shell: Sequence[str]) -> bool:
    """Say whether an argv starts bash, or a shell that means the same by the texts that are understood."""
    name, *options = shell
    if name.rpartition("/")[2] not in _SHELLS or (
        name.startswith("/") and (not name.startswith(("/bin/", "/usr/")) or ".." in name.split("/"))
    ):
        return False
    if "/" in name and not name.startswith("/"):
        return False
    takes_mode = False
    for option in options:
        if takes_mode:
            if option not in _MODES:
                return False
            takes_mode = False
        elif option in _LONG:
            continue
        elif option[:1] in ("-", "+") and _OPTIONS.union("c").issuperset(option[1:]):
            takes_mode = "o" in option
        else:
            return False
    return not takes_mode


def of_environment(env: Mapping[str, str | None], setting: Setting) -> Risk | None:
    """Return the class of an environment; None when nothing stands against it."""
    ground = ground_of(setting)
    for name, value in env.items():
        reason = harm(name, value or "", ground.cwd, ground)
        if reason or (value is None and harm(name, "/", ground.cwd, ground)):
            return _high(f"its environment sets {reason or name}")
    return None


def _high(reason: str) -> Risk:
    return Risk(level=HIGH, reason=reason, effects=("unknown",), understood=False)
