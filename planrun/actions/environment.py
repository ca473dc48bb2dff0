"""The environment of a step: the inherited variables, and those that the plan adds."""

from __future__ import annotations

import os

from planrun.model.progress import plans_around
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Step, Text
    from planrun.model.sandbox import Confinement
    from planrun.model.state import RunState
    from planrun.ports import Masks

    # Files and variables, each with the names that their templates read.
    Layers = tuple[tuple[tuple[Text, ...], dict[str, Text], dict[str, Any]], ...]

# Variables that look like credentials reach only steps that name them. A word of the name shows it,
# at any place and with any separator (`SYSTEM_ACCESSTOKEN`, `npm_config__authToken`), or the value.
_HINTS = (
    *(
        "TOKEN",
        "SECRET",
        "PASS",
        "PWD",
        "CRED",
        "KEY",
        "AUTH",
        "PAT",
        "JWT",
        "DSN",
        "CONN",
        "COOKIE",
        "BEARER",
    ),
    *("HEADER", "WEBHOOK", "P12", "PFX", "MNEMONIC", "KUBE", "NETRC"),
)
"""Each name of a credential contains one of these: most names have none and are not split into words."""
_WORDS = frozenset(
    {
        "TOKEN",
        "TOKENS",
        "KEY",
        "KEYS",
        "APIKEY",
        "CREDS",
        "CRED",
        "DSN",
        "JWT",
        "PAT",
        "BEARER",
        "COOKIE",
        "HEADERS",
    }
    | {"WEBHOOK", "KEYSTORE", "P12", "PFX", "MNEMONIC", "CONNSTR", "KUBECONFIG", "PASSCODE"}
)
_LAST_WORDS = frozenset(
    {"AUTH", "OAUTH", "PASS", "PWD"}
)  # count only at the end, or before a word for the storage of the value
_HOLDERS = frozenset(
    {"CONFIG", "FILE", "PATH", "JSON", "BASE64", "B64", "DATA", "HEADER", "STRING", "VALUE", "IDENT"}
)
_IN_WORDS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
_ENDS_OF_WORDS = (
    *(
        "APIKEY",
        "ACCESSKEY",
        "PRIVATEKEY",
        "SIGNINGKEY",
        "ENCRYPTIONKEY",
        "DEPLOYKEY",
        "AUTHKEY",
        "ACCOUNTKEY",
    ),
    *("MASTERKEY", "SSHKEY", "SHAREDKEY", "LICENSEKEY", "CONNSTR", "CONNECTIONSTRING"),
)
_PAIRS = frozenset({("CONNECTION", "STRING"), ("CONNECTION", "STRINGS"), ("KUBE", "CONFIG")})
# A name that ends in one of these is no credential: `MAX_TOKENS`, `SECRET_NAME`, `CACHE_KEY`, `TOKEN_TTL`.
_ABOUT = frozenset(
    {
        "NAME",
        "TYPE",
        "TTL",
        "EXPIRY",
        "EXPIRATION",
        "LENGTH",
        "SIZE",
        "LIMIT",
        "POLICY",
        "ENABLED",
        "DISABLED",
    }
    | {
        "COUNT",
        "TIMEOUT",
        "ALGORITHM",
        "VERSION",
        "FORMAT",
        "MODE",
        "CHECKING",
        "USERNAME",
        "PROVIDER",
        "HELPER",
    }
)
_NO_SECRETS = frozenset(
    {"PUBLIC", "PUB", "CACHE", "PRIMARY", "FOREIGN", "PARTITION", "SORT"}
)  # keys that are none
_COUNTED = frozenset({"MAX", "MIN", "NUM", "LIMIT", "BUDGET"})  # tokens of language models
_EXEMPT = frozenset({"PWD", "OLDPWD", "JENKINS_NODE_COOKIE", "JENKINS_SERVER_COOKIE"})
_NAMES = frozenset({"SSHPASS", "PGPASSFILE", "NETRC", "SSH_AUTH_SOCK"})
_PLACES = frozenset({"PGPASSFILE", "NETRC", "KUBECONFIG", "SSH_AUTH_SOCK"})  # paths to credentials
_FOUND: dict[str, bool] = {}  # cache by name: the environments of steps are similar
MODEL_CREDENTIALS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN"),
    *("ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_CUSTOM_HEADERS"),
)
"""Not passed to steps by default while planrun itself may call a model; a path to a token gives access to it."""
# Beginnings of `model.keyshapes`, one of each shape, and assignments inside connection strings.
_HEADS = (
    *(
        "sk-",
        "_live_",
        "_test_",
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    *(
        "glpat-",
        "gldt-",
        "glrt-",
        "glcbt-",
        "glptt-",
        "glft-",
        "glimt-",
        "glagent-",
        "gloas-",
        "glsoat-",
        "xox",
        "xapp-",
    ),
    *(
        "hooks.slack.com",
        "AIza",
        "ya29.",
        "GOCSPX-",
        "hf_",
        "npm_",
        "pypi-",
        "gsk_",
        "xai-",
        "SG.",
        "o_v1_",
        "op_v1_",
    ),
    *("or_v1_", "AGE-SECRET-KEY", "eyJ", "-----BEGIN"),
)
_ASSIGNED = (
    "accountkey=",
    "accesskey=",
    "password=",
    "passwd=",
    "pwd=",
    "secret=",
    "token=",
    "&sig=",
    "?sig=",
)
# Options of this program, and shell start-up files that would run before a reviewed script.
_OURS = ("PLANRUN_",)
_STARTUP = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"})


class RunEnvironment(Record):
    """Where a run happens: absolute folders, the caller's environment as steps see it, the default shell."""

    run: str
    workspace: str
    rundir: str
    env: dict[str, str]
    shell: tuple[str, ...]
    context: dict[str, Any]  # the `run` names of expressions
    secrets: Mapping[str, str] = {}  # values by name; a step gets those that it lists
    absent: Mapping[str, str] = {}  # why the other secrets have no value, by name
    masks: Masks | None = None
    hidden: tuple[str, ...] = ()  # folders in the workspace that no pattern of files means: reports
    scripts: Mapping[
        str, str
    ] = {}  # that were reviewed: sha256 by workspace-relative path; steps run copies of them
    confinement: Confinement | None = None  # None: no step has a sandbox
    trace: Mapping[str, str] = {}  # as it is recorded: id, flags …; empty: steps get no TRACEPARENT


def trace_of(environ: Mapping[str, str], before: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the trace of a run: a new one, that of the caller, or that of the run that is resumed, `before`."""
    if before or environ.get("TRACEPARENT"):
        from planrun.actions.tracing import continued  # few runs are part of a larger trace

        return continued(environ, before)
    return {"id": os.urandom(16).hex()}


def looks_secret(name: str, value: str = "") -> bool:
    """Whether an environment variable is a credential or leads to one, by its name or its value."""
    return bool(credentials_in({name: value}))


def holds_credential(name: str, value: str = "") -> bool:
    """Whether the value itself is a credential, not a path to one."""
    upper = name.upper()
    is_path = value.startswith("/") and upper.endswith(("_FILE", "_PATH"))
    return not is_path and upper not in _PLACES and looks_secret(name, value)


def credentials_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that are credentials or lead to some.

    It searches for the signs in all names and values at once: most occur in none.
    """
    names, values = "\n".join(environ).upper(), "\n".join(environ.values())
    hints = [hint for hint in _HINTS if hint in names]
    heads = [head for head in _HEADS if head in values]
    found = {name for hint in hints for name in environ if hint in name.upper() and _is_named_so(name)}
    found |= {
        name for head in heads for name, value in environ.items() if head in value and _is_shaped_so(value)
    }
    if "://" in values and "@" in values:
        found |= {name for name, value in environ.items() if "://" in value and _has_password(value)}
    lower = values.lower()
    if any([sign in lower for sign in _ASSIGNED]):  # noqa: C419 - half the time
        found |= {name for name, value in environ.items() for sign in _ASSIGNED if sign in value.lower()}
    return tuple([name for name in environ if name in found])


def _is_shaped_so(value: str) -> bool:
    """Whether a value has the format of a known service's credential."""
    from planrun.model.keyshapes import find  # loads `re`, which most environments do not need

    return bool(find(value))


def _is_named_so(name: str) -> bool:
    known = _FOUND.get(name)
    if known is None:
        upper, words = name.upper(), _words(name)
        known = upper in _NAMES or (
            upper not in _EXEMPT
            and words[-1] not in _ABOUT
            and any([_is_word(words, at) for at in range(len(words))])  # noqa: C419 - as above
        )
        _FOUND[name] = known
    return known


def _is_word(words: list[str], at: int) -> bool:
    """Whether the word at an index of a name, with its neighbours, means a credential."""
    word, before = words[at], words[at - 1] if at else ""
    follows = words[at + 1] if at + 1 < len(words) else ""
    if (word in ("KEY", "KEYS") and (before in _NO_SECRETS or follows == "VAULT")) or (
        word == "TOKENS" and not _COUNTED.isdisjoint(words)
    ):
        return False
    if word in _WORDS or (word, follows) in _PAIRS or word.endswith(_ENDS_OF_WORDS):
        return True
    if word in _LAST_WORDS:
        return before != "OLD" and (not follows or follows in _HOLDERS)
    return any([part in word for part in _IN_WORDS]) or (  # noqa: C419 - as above
        "TOKEN" in word.replace("TOKENIZ", "").replace("TOKENIS", "")
    )


def _words(name: str) -> list[str]:
    """Split a name at characters other than letters and digits, and between a small letter and a capital."""
    parts: list[str] = []
    last = "_"
    for letter in name:
        if not letter.isalnum():
            last = "_"
            continue
        if last == "_" or (letter.isupper() and last.islower()):
            parts.append(letter)
        else:
            parts[-1] += letter
        last = letter
    return [part.upper() for part in parts] or [""]


def _has_password(value: str) -> bool:
    """Whether an address in a value has a password, or a user who is as long as a token."""
    for piece in value.split("://")[1:]:
        place = min([at for at in map(piece.find, "/?# \t\n,\"'") if at >= 0], default=len(piece))
        user, sign, _ = piece[:place].rpartition("@")
        _, colon, password = user.partition(":")
        if sign and (password[:1] not in ("", "$", "{", "<", "*") if colon else len(user) >= 20):
            return True
    return False


def caller_environment(
    inherit: str, environ: Mapping[str, str], secrets: tuple[str, ...] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what steps inherit under `inherit` (safe, all or none), and the names that were left out.

    `secrets` are in neither: only steps that list one receive it.
    """
    if secrets:
        environ = {name: value for name, value in environ.items() if name not in secrets}
    if inherit == "none":
        return {"PATH": environ.get("PATH", os.defpath)}, ()
    kept = {name: value for name, value in environ.items() if not name.startswith(_OURS)}
    if inherit == "all":
        return kept, ()
    left_out = tuple(sorted(credentials_in(kept)))
    dropped = {*left_out, *_STARTUP}
    return {name: value for name, value in kept.items() if name not in dropped}, left_out


def withheld(
    environ: Mapping[str, str], inherited: Mapping[str, str], secrets: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of the credentials and declared secrets in `environ` that steps do not all receive."""
    found = {*secrets, *credentials_in(environ)}
    return tuple([name for name in environ if name not in inherited and name in found])


def is_name(name: str) -> bool:
    """Whether a text can name an environment variable: ASCII letters, digits and `_`, no digit first."""
    return name.isascii() and name.isidentifier()


def layers_of(step: Step, state: RunState, scope: dict[str, Any], fixed: Mapping[str, Any]) -> Layers:
    """Return the layers of variables of a step: the plan, the included plans around it, the step itself.

    `scope`: the names that the step reads, `fixed`: those that are the same in the whole run.
    """
    plan = state.plan
    own = (step.env_file, step.env, scope)
    inside = state.steps[step.undoes].step if step.undoes else step
    if not inside.group:
        return ((plan.env_file, plan.env, scope), own)
    return (*plans_around(state, inside, fixed), own)


def readable(layers: Layers) -> dict[str, str]:
    """Return the variables that need no rendering; the others cannot be read through `env.`."""
    return {
        name: value for _, values, _ in layers for name, value in values.items() if isinstance(value, str)
    }
