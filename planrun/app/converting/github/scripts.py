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
    r"""^(?:echo|printf)\s+(?:-[a-zA-Z]+\s+)*["']?([A-Za-z_][A-Za-z0-9_]*)=[^\n]*?>>\s*["']?\$\{?GITHUB_ENV\b\}?["']?\s*(?:#.*)?$""",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
PRELUDES = {
    "GITHUB_OUTPUT": 'export GITHUB_OUTPUT="$PLANRUN_OUTPUT"',
    "GITHUB_ENV": 'export GITHUB_ENV="$PLANRUN_OUTPUT"',
    "GITHUB_STEP_SUMMARY": 'export GITHUB_STEP_SUMMARY="${GITHUB_STEP_SUMMARY:-/dev/null}"',
}
HAND_ON = """\
hand_on() {  # as GitHub does: the parts below see what was written to $GITHUB_ENV and $GITHUB_PATH
  [ ! -f "$GITHUB_ENV" ] || while IFS= read -r line; do
    name=${line%%[=<]*}
    case ${line#"$name"} in
      =*) value=${line#*=} ;;
      '<<'*) end=${line#*<<} value= mark=
        while IFS= read -r line && [ "$line" != "$end" ]; do value=$value$mark$line mark='
'; done ;;
      *) continue ;;
    esac
    export "$name=$value"
  done < "$GITHUB_ENV"
  [ ! -f "$GITHUB_PATH" ] || while IFS= read -r line; do export "PATH=$line:$PATH"; done < "$GITHUB_PATH"
  rm -f "$GITHUB_ENV" "$GITHUB_PATH"
}"""
PATH_OUTPUT = """\
[ ! -f "$GITHUB_PATH" ] || while IFS= read -r line; do folders=$line:$folders; done < "$GITHUB_PATH"
echo "github_path=$folders" >> "$PLANRUN_OUTPUT"
"""
# What `set` says beyond `-e` where a shell is started with more; parts of one script may differ in it.
SHELL_OPTIONS = {"bash --noprofile --norc -eo pipefail": "set -o pipefail"}
_BACKGROUND = re.compile(
    r"""(?:^|[^&<>|\\'"])&[ \t]*(?=$|\n|\)|\#)|\s&\s|--daemoni[sz]e\b(?!\s+no)|--daemon\b"""
    r"""|\bnohup\b|\bsetsid\b|\bpg_ctl\b.*\bstart\b""",
    re.MULTILINE,
)
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


def exported_names(script: str) -> list[str] | None:
    """Return the names of variables that a script always hands on by GITHUB_ENV; None where the text shows not all."""
    found = _HANDED.findall(script)
    if len(found) != len(re.findall(r"\bGITHUB_ENV\b", script)) or re.search(r"\b(?:exit|return)\b", script):
        return None
    return list(dict.fromkeys(found))


def possible_names(script: str) -> list[str]:
    """Return the names of variables that a script seems to hand on."""
    return list(dict.fromkeys(_NAMED.findall(script)))


def starts_server(script: str) -> bool:
    """Say whether a script seems to leave a process in the background when it ends."""
    lines = [line for line in script.split("\n") if not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    return bool(_BACKGROUND.search(text)) and not re.search(r"^\s*wait\b", text, re.MULTILINE)


def check_commands(script: str) -> None:
    """Raise UntranslatableError for what later steps would see of a script on GitHub, and do not see here."""
    if "::add-path::" in script:
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
        lines = [PRELUDES.get(name, name) for name in wanted if name != "GITHUB_PATH"]
        if "GITHUB_PATH" in wanted:
            script = f"(\n{script.rstrip(chr(10))}\n)\nfolders=\n{PATH_OUTPUT}"
        return "\n".join([*lines, script])
    if shell.startswith("python") and set(wanted) == {"GITHUB_OUTPUT"}:
        return f"{PYTHON_PRELUDE}\n{script}"
    raise UntranslatableError("shell", f"`{shell}` is no shell that could be told where values are handed on")
