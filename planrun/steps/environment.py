"""The environment of a step: what it may see of the caller's, and what the plan adds."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What looks like a credential stays with planrun unless a step asks for it by name.
_ENDINGS = ("_TOKEN", "_KEY", "_PAT", "_CREDENTIALS", "_DSN", "_APIKEY")
_PARTS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PRIVATE_KEY")
_STARTS = ("AWS_", "ACTIONS_", "ANTHROPIC_", "OPENAI_", "AZURE_CLIENT_", "GOOGLE_APPLICATION_")
_NAMES = frozenset(
    {"TOKEN", "KEY", "APIKEY", "API_KEY", "PGPASSFILE", "NETRC", "KUBECONFIG", "SSH_AUTH_SOCK"}
)
# Options of this program, and shell start-up files that would run before a reviewed script.
_OURS = ("PLANRUN_",)
_STARTUP = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})


def looks_secret(name: str) -> bool:
    """Whether an environment variable is named like a credential."""
    upper = name.upper()
    return (
        upper in _NAMES
        or upper.endswith(_ENDINGS)
        or upper.startswith(_STARTS)
        or any(part in upper for part in _PARTS)
    )


def caller_environment(inherit: str, environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what steps inherit under `inherit` (safe, all or none), and the names that were left out."""
    if inherit == "none":
        return {"PATH": environ.get("PATH", os.defpath)}, ()
    kept = {name: value for name, value in environ.items() if not name.startswith(_OURS)}
    if inherit == "all":
        return kept, ()
    left_out = tuple(sorted(name for name in kept if looks_secret(name)))
    dropped = {*left_out, *_STARTUP}
    return {name: value for name, value in kept.items() if name not in dropped}, left_out


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables of a dotenv text: `NAME=value` lines, `export`, comments and quotes allowed.

    Values are data: nothing in them is expanded. Raises ValueError naming the line.
    """
    found: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not is_name(name):
            raise ValueError(f"line {number} is not NAME=value")
        found[name] = _unquote(value.strip(), number)
    return found


def is_name(name: str) -> bool:
    """Whether a text can name an environment variable: ASCII letters, digits and `_`, no digit first."""
    return name.isascii() and name.isidentifier()


def _unquote(value: str, number: int) -> str:
    quote = value[:1]
    if quote not in ("'", '"'):
        return value.split(" #", 1)[0].rstrip()
    end = value.find(quote, 1)
    if end < 0:
        raise ValueError(f"line {number} has an unclosed quote")
    inner = value[1:end]
    return inner.replace("\\n", "\n") if quote == '"' else inner
