"""Texts with GitHub's expressions as templates of planrun.

The environment of a step: variables as templates, and secrets as what only this step sees.

What stands in a script beside expressions: values handed on through files, and secrets.

`if` of a step or a job: edges for its status functions, and a condition for the rest.
"""

from __future__ import annotations

import re

from planrun.convert.github.grammar import NotAnExpressionError, condition_of, is_always_true
from planrun.convert.github.names import cut_text
from planrun.convert.github.spelling import const, spell, truth
from planrun.convert.reader import UntranslatableError, is_nothing, text_of
from planrun.plan.check.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.convert.draft import DraftStep
    from planrun.convert.github.facts import Job
    from planrun.convert.github.grammar import Piece, Tree
    from planrun.convert.github.names import PlaceNames
    from planrun.plan.yaml.node import Node

_TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable


def cut(text: str) -> list[Piece]:
    """Return the pieces of a text; raises UntranslatableError where one is no expression."""
    return cut_text(text)


def template(text: str, names: PlaceNames) -> str:
    """Return a text with its expressions in planrun's words; raises UntranslatableError."""
    found = ""
    for piece in cut(text):
        if isinstance(piece, str):
            found += piece
            continue
        spelled = spell(piece, names)
        shown = _shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
        found = _joined(found, shown)
    return found


def script(text: str, names: PlaceNames) -> tuple[str, list[str]]:
    """Return a script for a shell with its expressions in planrun's words, and the secrets that it reads.

    A secret becomes a variable of the shell, unless it stands where the shell would not read one.
    """
    pieces = cut(text)
    variables = [secret_text(piece, names) or _variable_of(piece, names) for piece in pieces]
    quotes = open_quotes(pieces) if any(variables) else []
    secrets: list[str] = []
    found, hole = "", -1
    for piece, variable in zip(pieces, variables, strict=True):
        if isinstance(piece, str):
            found += piece
            continue
        hole += 1
        if variable:
            own = secrets_here(piece, names)
            if quotes[hole] not in ("command", "double", "brace", "member", "single"):
                code, what = (
                    ("secret", f"secrets.{own[0]}") if own else ("github-env", f"env.{variable[2:-1]}")
                )
                raise UntranslatableError(code, f"`{what}` stands where the shell reads no variable")
            secrets += own
            found = _joined(found, f"'\"{variable}\"'" if quotes[hole] == "single" else variable)
            continue
        spelled = spell(piece, names)
        if not spelled.is_known:
            message = (
                "a value that is put into a script may hold no characters but letters, digits and ._/@:+=,-"
            )
            names.note("value-in-script", f"{message}; any other fails the step")
        shown = _shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
        found = _joined(found, shown)
    return found, secrets


def secret_of(piece: Piece) -> str:
    """Return the name of the secret that an expression reads and nothing else; "" for any other."""
    if isinstance(piece, str) or piece[0] != "path":
        return ""
    names = piece[1]
    if names[0] == "secrets" and len(names) == 2:
        return str(names[1])
    return _TOKEN if names == ("github", "token") else ""


def secret_here(piece: Piece, names: PlaceNames) -> str:
    """Return the name in planrun of the secret that an expression reads and nothing else; "" for any other."""
    name = secret_of(piece)
    return names.workflow.secret_names.get(name, name)


def secrets_of(piece: Piece) -> list[str]:
    """Return the names of the secrets of which an expression reads the first that is there, and nothing else."""
    if not isinstance(piece, str) and piece[0] == "or":
        first, second = secrets_of(piece[1]), secrets_of(piece[2])
        return [*first, *second] if first and (second or piece[2][0] == "const") else []
    name = secret_of(piece)
    return [name] if name else []


def secrets_here(piece: Piece, names: PlaceNames) -> list[str]:
    """Return the same as names of secrets in planrun; those of a choice need not be there."""
    single = secret_here(piece, names)
    if single or isinstance(piece, str) or piece[0] != "or":
        return [single] if single else []
    first, second = secrets_here(piece[1], names), secrets_here(piece[2], names)
    if not first or not (second or piece[2][0] == "const"):
        return []
    names.workflow.plan.maybe.update((*first, *second))
    return [*first, *second]


def secret_text(piece: Piece, names: PlaceNames) -> str:
    """Return what a shell reads for an expression of secrets: `${A}`, or `${A:-${B}}`; "" for any other."""
    own = secrets_here(piece, names)
    if not own or isinstance(piece, str):
        return ""
    last = piece
    while last[0] == "or":
        last = last[2]
    text = str(const(last[1]).value) if last[0] == "const" else ""
    if not re.fullmatch(r"[\w./:@+=,-]*", text):
        raise UntranslatableError("secret", "a secret with a default that is no plain word")
    for name in reversed(own):
        text = f"${{{name}:-{text}}}" if text else f"${{{name}}}"
    return text


def _variable_of(piece: Piece, names: PlaceNames) -> str:
    """Return `${NAME}` of a variable that an earlier part of the same script sets; "" for anything else."""
    if isinstance(piece, str) or piece[0] != "path" or piece[1][0] != "env" or len(piece[1]) != 2:
        return ""
    return f"${{{piece[1][1]}}}" if piece[1][1] in names.job.handed else ""


def _joined(before: str, shown: str) -> str:
    if before.endswith("$") and shown.startswith("${"):
        raise UntranslatableError("expression", "`$` right before `${{ … }}` cannot be written in a plan")
    return before + shown


def _shown(value: object) -> str:
    """Return a value as GitHub puts it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        raise UntranslatableError("expression", "a list or mapping in the middle of a text")
    return str(value)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Variables:
    """What a step gets: `env` as templates, `secrets` by name, and lines of script that put secrets together."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.secrets: list[str] = []
        self.lines: list[str] = []

    def read(self, env: Mapping[str, Node], names: PlaceNames) -> None:
        """Add the variables of a mapping, which may read those of outer levels; raises UntranslatableError."""
        levels = names.env
        at = next((at for at, level in enumerate(levels) if level is env), None)
        names.env = levels if at is None else levels[at + 1 :]
        try:
            self._read(env, names)
        finally:
            names.env = levels

    def _read(self, env: Mapping[str, Node], names: PlaceNames) -> None:
        for name, node in env.items():
            if not _NAME.match(name):
                names.note("env", f"the variable `{name}` is read by expressions only: no shell can have it")
                continue
            text = text_of(node)
            pieces = cut(text)
            found = [secret_text(piece, names) for piece in pieces]
            if not any(found):
                self.env[name] = template(text, names)
            elif len(pieces) == 1 and found[0] == f"${{{name}}}":
                self.secrets.append(name)
            else:
                self._put_together(name, pieces, found, names)

    def _put_together(self, name: str, pieces: Sequence[Piece], found: list[str], names: PlaceNames) -> None:
        parts = []
        for at, (piece, text) in enumerate(zip(pieces, found, strict=True), 1):
            if text:
                self.secrets += secrets_here(piece, names)
                parts.append(text)
            elif isinstance(piece, str):
                parts.append(re.sub(r'(["\\$`])', r"\\\1", piece))
            else:
                spelled = spell(piece, names)
                shown = _shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
                self.env[f"{name}__{at}"] = shown
                parts.append(f"${{{name}__{at}}}")
        self.lines.append(f'export {name}="{"".join(parts)}"')


SHELLS = frozenset(("bash", "sh", "dash", "ash", "ksh", "zsh"))
SET_OUTPUT = re.compile(
    r"""\becho\s+(["']?)::set-output name=([A-Za-z_][\w-]*)::([^\n"'|;&]*?)\1[ \t]*$""", re.MULTILINE
)
# `echo "name=value" >> "$GITHUB_OUTPUT"`, and the block form `echo "name<<EOF"`.
_NAMED = re.compile(
    r"""(?:(?:echo|printf)\s+(?:-[a-zA-Z]+\s+|--\s+|'%s\\n'\s+)*["']?|\bsetOutput\(\s*["'`])"""
    r"""([A-Za-z_][A-Za-z0-9_-]*)(?:=|<<|["'`],)"""
)
_HANDED = re.compile(
    r"""^(?:echo|printf)\s+(?:-[a-zA-Z]+\s+)*["']?([A-Za-z_][A-Za-z0-9_]*)=[^\n;&|]*?>>\s*["']?\$\{?GITHUB_ENV\b\}?["']?\s*(?:#.*)?$""",
    re.MULTILINE,
)
_HANDED_ANYWHERE = re.compile(
    r"""\b(?:echo|printf)\s+(?:-[a-zA-Z]+\s+)*["']?([A-Za-z_][A-Za-z0-9_]*)="""
    r"""[^\n;&|]*?(?:>>|\|\s*tee\s+(?:-a|--append))\s*["']?\$\{?GITHUB_ENV\b\}?["']?"""
)
_SCRIPTS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
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
# The same, for a step whose variables and folders of the PATH other steps need, too.
HAND_ON_KEPT = HAND_ON.replace(
    "  rm -f",
    """\
  for file in "$GITHUB_ENV" "$GITHUB_PATH"; do [ ! -f "$file" ] || cat "$file" >> "$file.all"; done
  rm -f""",
)
HANDED_OUTPUTS = """\
kept_env=$(cat "$GITHUB_ENV.all" 2> /dev/null || true)
kept_path=$(cat "$GITHUB_PATH.all" 2> /dev/null || true)
printf 'github_env<<PLANRUN_HANDED_END\\n%s\\nPLANRUN_HANDED_END\\n' "$kept_env" >> "$PLANRUN_OUTPUT"
printf 'github_path<<PLANRUN_HANDED_END\\n%s\\nPLANRUN_HANDED_END\\n' "$kept_path" >> "$PLANRUN_OUTPUT"
"""
HANDED_READ = """\
printf '%s\\n' "$HANDED_ENV" > "$GITHUB_ENV"
printf '%s\\n' "$HANDED_PATH" | sed '/^$/d' > "$GITHUB_PATH"
hand_on"""
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
# The same for programs that are no shells.
_OTHER_PRELUDES = {
    "python": 'import os; os.environ["GITHUB_OUTPUT"] = os.environ["PLANRUN_OUTPUT"]',
    "pwsh": "$env:GITHUB_OUTPUT = $env:PLANRUN_OUTPUT",
    "powershell": "$env:GITHUB_OUTPUT = $env:PLANRUN_OUTPUT",
    "node": "process.env.GITHUB_OUTPUT = process.env.PLANRUN_OUTPUT",
    "Rscript": 'Sys.setenv(GITHUB_OUTPUT = Sys.getenv("PLANRUN_OUTPUT"))',
    "nu": "$env.GITHUB_OUTPUT = $env.PLANRUN_OUTPUT",
}


def without_set_output(script: str) -> str:
    """Return a script that writes to a file what it told GitHub by `echo "::set-output name=a::b"`."""

    def write(match: re.Match[str]) -> str:
        mark = match[1]
        return f'echo {mark}{match[2]}={match[3]}{mark} >> "$GITHUB_OUTPUT"'

    return SET_OUTPUT.sub(write, script) if "::set-output" in script else script


def renamed_outputs(script: str) -> tuple[str, set[str]]:
    """Return a script that writes outputs with dashes in their names under names that a plan has, and those names."""
    if "GITHUB_OUTPUT" not in script:
        return script, set()
    names = set(_NAMED.findall(script))
    dashed = {name for name in names if "-" in name and name.replace("-", "_") not in names}
    if not dashed:
        return script, set()

    def rename(match: re.Match[str]) -> str:
        start, end = match.start(1) - match.start(), match.end(1) - match.start()
        return f"{match[0][:start]}{match[1].replace('-', '_')}{match[0][end:]}"

    return _NAMED.sub(lambda match: rename(match) if match[1] in dashed else match[0], script), dashed


def written_outputs(script: str) -> list[str]:
    """Return the names of outputs that a script writes, as far as its text shows."""
    if "GITHUB_OUTPUT" not in script:
        return []
    found = dict.fromkeys(_NAMED.findall(script))
    unfit = [name for name in found if not _SCRIPTS_NAME.match(name)]
    if unfit:
        raise UntranslatableError("output-name", f"an output of a plan cannot be called `{unfit[0]}`")
    return list(found)


def exported_names(script: str) -> list[str] | None:
    """Return the names of variables that a script always hands on by GITHUB_ENV; None where the text shows not all."""
    found = _HANDED.findall(script)
    if len(found) != len(re.findall(r"\bGITHUB_ENV\b", script)) or re.search(r"\b(?:exit|return)\b", script):
        return None
    return list(dict.fromkeys(found))


def sometimes_exported(script: str) -> list[str] | None:
    """Return the names of variables that a script may hand on by GITHUB_ENV; None where the text shows not all."""
    found = _HANDED_ANYWHERE.findall(script)
    return list(dict.fromkeys(found)) if len(found) == len(re.findall(r"\bGITHUB_ENV\b", script)) else None


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
    if "::set-output" in SET_OUTPUT.sub("", script):
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
    program = re.sub(r"[\d.]+\Z", "", shell.split(" ", maxsplit=1)[0].rpartition("/")[2])
    if program in _OTHER_PRELUDES and set(wanted) == {"GITHUB_OUTPUT"}:
        return f"{_OTHER_PRELUDES[program]}\n{script}"
    raise UntranslatableError("shell", f"`{shell}` is no shell that could be told where values are handed on")


class Condition:
    """The result of an `if`: an expression, "" for none, and whether it asks how what came before ended."""

    def __init__(self, text: str = "", *, asks: bool = False) -> None:
        self.text = text
        self.asks = asks


def condition(node: Node | None, names: PlaceNames) -> Condition:
    """Return the result of an `if`; raises UntranslatableError."""
    if node is None or is_nothing(node):
        return Condition()
    try:
        tree = condition_of(text_of(node))
        if is_always_true(text_of(node)):
            names.note("always-true", "`if` has text beside `${{ … }}`, which GitHub takes for true")
    except NotAnExpressionError as error:
        raise UntranslatableError("condition", f"`if`: {error}") from None
    parts = _conditions_joined(tree)
    kept = [part for part in parts if part != ("call", "success", ())]
    if not kept:
        return Condition()
    for left in kept[1:]:
        kept = [("and", kept[0], left), *kept[2:]]
    names.asked = False
    try:
        found = truth(kept[0], names)
    except UntranslatableError as why:
        raise UntranslatableError("condition", f"`if`: {why.message}") from None
    return Condition(found.text, asks=names.asked)


def _conditions_joined(tree: Tree) -> list[Tree]:
    if tree[0] == "and":
        return [*_conditions_joined(tree[1]), *_conditions_joined(tree[2])]
    return [tree]


def apply_condition(step: DraftStep, node: Node | None, names: PlaceNames, job: Job) -> None:
    """Give a step the condition of its `if`; where that cannot be said the step loses its action."""
    try:
        found = condition(node, names)
    except UntranslatableError as why:
        assert node is not None  # only an `if` that is there is refused
        step.leave(names.workflow.found, why.code, why.message, step.node or node)
        found = Condition()
    step.condition = found.text
    if found.asks:
        job.asking.add(step.id)
    elif (not found.text or found.text == "true") and step.id not in job.tolerated:
        job.plain.add(step.id)
