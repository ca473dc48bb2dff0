"""What stands in a script beside expressions: values handed on through files, and secrets."""

from __future__ import annotations

import re

from planrun.app.converting.findings import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = frozenset(("bash", "sh", "dash", "ash", "ksh", "zsh"))
# `echo "name=value" >> "$GITHUB_OUTPUT"`, and the block form `echo "name<<EOF"`.
_NAMED = re.compile(
    r"""(?:echo|printf)\s+(?:-[a-zA-Z]+\s+|--\s+|'%s\\n'\s+)*["']?([A-Za-z_][A-Za-z0-9_-]*)(?:=|<<)"""
)
_HANDED = re.compile(
    r"""^\s*(?:echo|printf)\s+(?:-[a-zA-Z]+\s+)*["']?([A-Za-z_][A-Za-z0-9_]*)=[^\n]*?>>\s*["']?\$\{?GITHUB_ENV\b\}?["']?\s*(?:#.*)?$""",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
PRELUDES = {
    "GITHUB_OUTPUT": 'export GITHUB_OUTPUT="$PLANRUN_OUTPUT"',
    "GITHUB_ENV": 'export GITHUB_ENV="$PLANRUN_OUTPUT"',
    "GITHUB_STEP_SUMMARY": 'export GITHUB_STEP_SUMMARY="${GITHUB_STEP_SUMMARY:-/dev/null}"',
}
PYTHON_PRELUDE = 'import os; os.environ["GITHUB_OUTPUT"] = os.environ["PLANRUN_OUTPUT"]'


def written_outputs(script: str) -> list[str]:
    """Return the names of outputs that a script says it writes, as far as its text tells."""
    if "GITHUB_OUTPUT" not in script:
        return []
    found = dict.fromkeys(_NAMED.findall(script))
    unfit = [name for name in found if not _NAME.match(name)]
    if unfit:
        raise UntranslatableError("output-name", f"an output of a plan cannot be called `{unfit[0]}`")
    return list(found)


def exported_names(script: str) -> list[str]:
    """Return the names of variables that a script hands on to later steps by GITHUB_ENV.

    Raises UntranslatableError where the text does not tell them all.
    """
    mentions = len(re.findall(r"\bGITHUB_ENV\b", script))
    if not mentions:
        return []
    found = _HANDED.findall(script)
    if len(found) != mentions:
        raise UntranslatableError(
            "github-env", "what this script writes to $GITHUB_ENV cannot be told from its text"
        )
    return list(dict.fromkeys(found))


def check_commands(script: str) -> None:
    """Raise UntranslatableError for what later steps would see of a script on GitHub, and do not see here."""
    if re.search(r"\bGITHUB_PATH\b|::add-path::", script):
        raise UntranslatableError("github-path", "later steps do not see what this script adds to the PATH")
    if "::set-output" in script:
        raise UntranslatableError("set-output", "`::set-output` is not read here; write to $GITHUB_OUTPUT")
    if "::set-env" in script or "::save-state" in script or "GITHUB_STATE" in script:
        raise UntranslatableError("github-state", "nothing reads what this script saves for later")


def is_shell(shell: str) -> bool:
    """Say whether the first word of `shell` is a POSIX shell."""
    return shell.split(" ", maxsplit=1)[0].rpartition("/")[2] in SHELLS if shell else True


def with_preludes(script: str, shell: str, wanted: Sequence[str]) -> str:
    """Return a script behind the lines that it needs; raises UntranslatableError where none can be given."""
    if not wanted:
        return script
    if is_shell(shell):
        lines = [PRELUDES.get(name, name) for name in wanted]
        return "\n".join([*lines, script])
    if shell.startswith("python") and set(wanted) == {"GITHUB_OUTPUT"}:
        return f"{PYTHON_PRELUDE}\n{script}"
    raise UntranslatableError("shell", f"`{shell}` is no shell that could be told where values are handed on")
