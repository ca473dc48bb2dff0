"""The environment of a step: what it may see of the caller's, and what the plan adds."""

from __future__ import annotations

import os
from stat import S_ISREG  # os has loaded it already

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Step, Text
    from planrun.model.state import RunState

    # Files and variables, each with the names that their templates read.
    Layers = tuple[tuple[tuple[Text, ...], dict[str, Text], dict[str, Any]], ...]

# What looks like a credential stays with planrun unless a step asks for it by name.
_ENDINGS = (
    *("_TOKEN", "_KEY", "_PAT", "_CREDENTIALS", "_DSN", "_APIKEY"),
    *("_AUTH", "_AUTH_CONFIG", "_JWT", "_PASS", "_PWD"),
)
_PARTS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PRIVATE_KEY")
_STARTS = ("AWS_", "ACTIONS_", "ANTHROPIC_", "OPENAI_", "AZURE_CLIENT_", "GOOGLE_APPLICATION_")
MODEL_CREDENTIALS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN"),
    *("ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_CUSTOM_HEADERS"),
)
"""What no step gets unasked while planrun itself may ask a model; a path to a token is as good as the token."""
_NAMES = frozenset({"TOKEN", "KEY", "APIKEY", "API_KEY"})
_PLACES = frozenset({"PGPASSFILE", "NETRC", "KUBECONFIG", "SSH_AUTH_SOCK"})  # where credentials are to be had
# Options of this program, and shell start-up files that would run before a reviewed script.
_OURS = ("PLANRUN_",)
_MAX_ENV_FILE = 1 << 20  # bytes
_STARTUP = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})


def looks_secret(name: str) -> bool:
    """Whether an environment variable is named like a credential."""
    upper = name.upper()
    return upper in _PLACES or upper.startswith(_STARTS) or holds_credential(upper)


def holds_credential(name: str) -> bool:
    """Whether the name says that the value itself is a credential; names of a mere family do not."""
    upper = name.upper()
    return upper in _NAMES or upper.endswith(_ENDINGS) or any(part in upper for part in _PARTS)


def caller_environment(
    inherit: str, environ: Mapping[str, str], secrets: tuple[str, ...] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what steps inherit under `inherit` (safe, all or none), and the names that were left out.

    `secrets` are in neither: only a step that lists one gets it.
    """
    if secrets:
        environ = {name: value for name, value in environ.items() if name not in secrets}
    if inherit == "none":
        return {"PATH": environ.get("PATH", os.defpath)}, ()
    kept = {name: value for name, value in environ.items() if not name.startswith(_OURS)}
    if inherit == "all":
        return kept, ()
    left_out = tuple(sorted(name for name in kept if looks_secret(name)))
    dropped = {*left_out, *_STARTUP}
    return {name: value for name, value in kept.items() if name not in dropped}, left_out


def withheld(
    environ: Mapping[str, str], inherited: Mapping[str, str], secrets: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of the credentials and declared secrets in `environ` that not every step gets."""
    return tuple(
        [name for name in environ if name not in inherited and (name in secrets or looks_secret(name))]
    )


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables of a dotenv text: `NAME=value` lines, `export`, comments and quotes allowed.

    Values are data: nothing in them is expanded. Raises ValueError naming the line.
    """
    found: dict[str, str] = {}
    # Not splitlines(): a value may hold other characters that Python takes for line ends.
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not is_name(name):
            raise ValueError(f"line {number} is not NAME=value")
        found[name] = _unquote(value.strip(" \t"), number)
    return found


def is_name(name: str) -> bool:
    """Whether a text can name an environment variable: ASCII letters, digits and `_`, no digit first."""
    return name.isascii() and name.isidentifier()


def read_env_file(path: str) -> str:
    """Return the text of an env file.

    Raises OSError when it cannot be opened, ValueError when it is no regular file (a pipe would keep us waiting),
    larger than 1 MiB or not UTF-8.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        data = file.read(_MAX_ENV_FILE + 1)
    if len(data) > _MAX_ENV_FILE:
        raise ValueError("larger than 1 MiB")
    if b"\0" in data:
        raise ValueError("it contains a NUL character")
    return data.decode()


def _unquote(value: str, number: int) -> str:
    r"""Return what a value stands for; `\n`, `\"` and `\\` mean something between double quotes only."""
    quote = value[:1]
    if quote not in ("'", '"'):
        return value.split(" #", 1)[0].rstrip()
    end = 1
    while end < len(value) and value[end] != quote:
        end += 2 if quote == '"' and value[end] == "\\" else 1
    rest = value[end + 1 :].strip()
    if end >= len(value):
        raise ValueError(f"line {number} has an unclosed quote")
    if rest and not rest.startswith("#"):
        raise ValueError(f"line {number} goes on after its closing quote")
    inner = value[1:end]
    return _unescape(inner) if quote == '"' else inner


def _unescape(text: str) -> str:
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace('\\"', '"') for part in parts)


def layers_of(step: Step, state: RunState, scope: dict[str, Any], fixed: Mapping[str, Any]) -> Layers:
    """Return what sets variables for a step: the plan, plans around it that are used, the step itself.

    `scope`: the names that the step reads, `fixed`: those that are the same in the whole run.
    """
    plan = state.plan
    own = (step.env_file, step.env, scope)
    inside = state.steps[step.undoes].step if step.undoes else step
    if not inside.group:
        return ((plan.env_file, plan.env, scope), own)
    from planrun.model.scopes import plans_around  # few plans have groups

    return (*plans_around(state, inside, fixed), own)


def readable(layers: Layers) -> dict[str, str]:
    """Return the variables that need no rendering; the others cannot be read through `env.`."""
    return {
        name: value for _, values, _ in layers for name, value in values.items() if isinstance(value, str)
    }
