"""Texts of a workflow in planrun's words: templates, scripts, environments and conditions.

What stands in a script beside expressions: secrets, and values that it hands on through GitHub's files.
"""

from __future__ import annotations

import re

from planrun.convert.expressions import NotAnExpressionError, parse, spell, truth
from planrun.convert.github.words import GITHUB, cut, shown
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.check.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.convert.expressions import Tree
    from planrun.convert.github.names import PlaceNames
    from planrun.convert.github.words import Piece
    from planrun.plan.yaml.node import Node

_TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


def template(text: str, names: PlaceNames) -> str:
    """Return a text with its expressions in planrun's words; raises UntranslatableError."""
    return "".join(_filled(cut(text), names))


def _filled(pieces: Sequence[Piece], names: PlaceNames, variables: Sequence[str] = ()) -> list[str]:
    """Return pieces of a text in planrun's words; `variables`: what stands for each, "" for its expression."""
    found: list[str] = []
    for at, piece in enumerate(pieces):
        text = piece if isinstance(piece, str) else variables[at] if variables else ""
        if not text and not isinstance(piece, str):
            spelled = spell(piece, names)
            text = shown(spelled.value) if spelled.is_known else f"${{{{ {spelled.text} }}}}"
            if variables and not spelled.is_known:
                message = "a value that is put into a script may hold no characters but letters, digits and ._/@:+=,-"
                names.note("value-in-script", f"{message}; any other fails the step")
        if found and found[-1].endswith("$") and text.startswith("${") and not isinstance(piece, str):
            raise UntranslatableError("expression", "`$` right before `${{ … }}` cannot be written in a plan")
        found.append(text)
    return found


def script(text: str, names: PlaceNames) -> tuple[str, list[str]]:
    """Return a script for a shell with its expressions in planrun's words, and the secrets that it reads.

    A secret becomes a variable of the shell, unless it stands where the shell would not read one.
    """
    pieces = cut(text)
    variables = [secret_text(piece, names) for piece in pieces]
    secrets = [name for piece in pieces for name in secrets_of(piece, names)]
    quotes = open_quotes(pieces) if any(variables) else []
    holes = [at for at, piece in enumerate(pieces) if not isinstance(piece, str)]
    for at, quote in zip(holes, quotes, strict=False):
        if variables[at] and quote not in ("command", "double", "brace", "member", "single"):
            what = secrets_of(pieces[at], names)[0]
            raise UntranslatableError("secret", f"`secrets.{what}` stands where the shell reads no variable")
        if variables[at] and quote == "single":
            variables[at] = f"'\"{variables[at]}\"'"
    return "".join(_filled(pieces, names, variables)), secrets


def secret_of(piece: Piece) -> str:
    """Return the name of the secret that an expression reads and nothing else; "" for any other."""
    if isinstance(piece, str) or piece[0] != "path":
        return ""
    names = piece[1]
    if names[0] == "secrets" and len(names) == 2:
        return str(names[1])
    return _TOKEN if names == ("github", "token") else ""


def secrets_of(piece: Piece, names: PlaceNames | None = None) -> list[str]:
    """Return the names of the secrets of which an expression reads the first that is there, and nothing else.

    With `names` they are those in planrun, and those of a choice need not be there.
    """
    if isinstance(piece, str) or piece[0] != "or":
        name = secret_of(piece)
        return [names.workflow.secret_names.get(name, name) if names is not None else name] if name else []
    first, second = secrets_of(piece[1], names), secrets_of(piece[2], names)
    if not first or not (second or piece[2][0] == "const"):
        return []
    if names is not None:
        names.workflow.plan.maybe.update((*first, *second))
    return [*first, *second]


def secret_text(piece: Piece, names: PlaceNames) -> str:
    """Return what a shell reads for an expression of secrets: `${A}`, or `${A:-${B}}`; "" for any other."""
    own = secrets_of(piece, names)
    if not own or isinstance(piece, str):
        return ""
    last = piece
    while last[0] == "or":
        last = last[2]
    text = shown(last[1]) if last[0] == "const" else ""
    if not re.fullmatch(r"[\w./:@+=,-]*", text):
        raise UntranslatableError("secret", "a secret with a default that is no plain word")
    for name in reversed(own):
        text = f"${{{name}:-{text}}}" if text else f"${{{name}}}"
    return text


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
            for name, node in env.items():
                if not _NAME.match(name):
                    message = f"the variable `{name}` is read by expressions only: no shell can have it"
                    names.note("env", message)
                    continue
                pieces = cut(text_of(node))
                found = [secret_text(piece, names) for piece in pieces]
                self.secrets += [each for piece in pieces for each in secrets_of(piece, names)]
                if not any(found):
                    self.env[name] = template(text_of(node), names)
                elif found != [f"${{{name}}}"]:
                    self._put_together(name, pieces, found, names)
        finally:
            names.env = levels

    def _put_together(self, name: str, pieces: Sequence[Piece], found: list[str], names: PlaceNames) -> None:
        parts = []
        for at, (piece, text) in enumerate(zip(pieces, found, strict=True), 1):
            if isinstance(piece, str):
                parts.append(re.sub(r'(["\\$`])', r"\\\1", piece))
            elif text:
                parts.append(text)
            else:
                self.env[f"{name}__{at}"] = _filled([piece], names)[0]
                parts.append(f"${{{name}__{at}}}")
        self.lines.append(f'export {name}="{"".join(parts)}"')


_SHELLS = frozenset(("bash", "sh", "dash", "ash", "ksh", "zsh"))
_SET_OUTPUT = re.compile(
    r"""\becho\s+(["']?)::set-output name=([A-Za-z_][\w-]*)::([^\n"'|;&]*?)\1[ \t]*$""", re.MULTILINE
)
# `echo "name=value" >> "$GITHUB_OUTPUT"`, and the block form `echo "name<<EOF"`.
_NAMED = re.compile(
    r"""(?:(?:echo|printf)\s+(?:-[a-zA-Z]+\s+|--\s+|'%s\\n'\s+)*["']?|\bsetOutput\(\s*["'`])"""
    r"""([A-Za-z_][A-Za-z0-9_-]*)(?:=|<<|["'`],)"""
)
# One command that writes variables to GITHUB_ENV: a text, a block in braces, or a heredoc.
_FILE = r"""["']?\$\{?GITHUB_ENV\b\}?["']?"""
_CALL = r"\$\((?:[^()]|\([^()]*\))*\)"
_TEXT = rf"""(?:"(?:\\.|{_CALL}|\$(?!\()|[^"\\$])*"|'[^']*'|{_CALL}|`[^`]*`|\\.|\$(?!\()|[^\n;&|"'`>\\$])"""
_HANDED = re.compile(
    rf"""\b(?:echo|printf)\s+(?:-[a-zA-Z]+\s+|'%s\\n'\s+)*(?P<text>{_TEXT}{{1,500}}?)\s*"""
    rf"""(?:>>|\|\s*tee\s+(?:-a|--append)\b)\s*{_FILE}"""
    rf"""|(?:^|(?<=[\s;&|(]))\{{\s(?P<block>(?:(?!\n\s*\}}|;\s*\}}).)*?)[\n;]\s*\}}\s*>>\s*{_FILE}"""
    rf"""|\bcat\s+(?:>>\s*{_FILE}\s*)?<<-?\s*["']?(?P<end>\w+)["']?(?:\s*>>\s*{_FILE})?[ \t]*\n"""
    rf"""(?P<lines>.*?)\n\s*(?P=end)\b""",
    re.DOTALL,
)
_BACKGROUND = re.compile(
    r"""(?:^|[^&<>|\\'"])&[ \t]*(?=$|\n|\)|\#)|\s&\s|--daemoni[sz]e\b(?!\s+no)|--daemon\b"""
    r"""|\bnohup\b|\bsetsid\b|\bpg_ctl\b.*\bstart\b""",
    re.MULTILINE,
)
_PRELUDES = {
    "GITHUB_OUTPUT": 'export GITHUB_OUTPUT="$PLANRUN_OUTPUT"',
    "GITHUB_ENV": 'export GITHUB_ENV="$PLANRUN_OUTPUT"',
    "GITHUB_STEP_SUMMARY": 'export GITHUB_STEP_SUMMARY="${GITHUB_STEP_SUMMARY:-/dev/null}"',
    "FOLDERS": 'export PATH="$FOLDERS$PATH"',
}
_PATH_OUTPUT = """\
[ ! -f "$GITHUB_PATH" ] || while IFS= read -r line; do folders=$line:$folders; done < "$GITHUB_PATH"
echo "github_path=$folders" >> "$PLANRUN_OUTPUT"
"""
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
    """Return a script that writes to a file what it told GitHub by `echo "::set-output name=a::b"`.

    Raises UntranslatableError for what later steps would see of it on GitHub, and do not see here.
    """
    script = _SET_OUTPUT.sub(
        lambda match: f'echo {match[1]}{match[2]}={match[3]}{match[1]} >> "$GITHUB_OUTPUT"', script
    )
    if "::add-path::" in script:
        raise UntranslatableError("github-path", "later steps do not see what this script adds to the PATH")
    if "::set-output" in script:
        raise UntranslatableError("set-output", "`::set-output` is not read here; write to $GITHUB_OUTPUT")
    if "::set-env" in script or "::save-state" in script or "GITHUB_STATE" in script:
        raise UntranslatableError("github-state", "nothing reads what this script saves for later")
    return script


def written_outputs(script: str) -> tuple[str, list[str], set[str]]:
    """Return a script whose outputs have names that a plan has, their names, and those that had dashes.

    Raises UntranslatableError for a name that a plan cannot have.
    """
    if "GITHUB_OUTPUT" not in script:
        return script, [], set()
    names = set(_NAMED.findall(script))
    dashed = {name for name in names if "-" in name and name.replace("-", "_") not in names}

    def rename(match: re.Match[str]) -> str:
        start, end = match.start(1) - match.start(), match.end(1) - match.start()
        return f"{match[0][:start]}{match[1].replace('-', '_')}{match[0][end:]}"

    script = _NAMED.sub(lambda match: rename(match) if match[1] in dashed else match[0], script)
    found = list(dict.fromkeys(_NAMED.findall(script)))
    unfit = [name for name in found if not _NAME.match(name)]
    if unfit:
        raise UntranslatableError("output-name", f"an output of a plan cannot be called `{unfit[0]}`")
    return script, found, dashed


def handed_variables(script: str) -> list[str]:
    """Return the names of variables that a script hands on by GITHUB_ENV; raises UntranslatableError.

    Each place that names the file has to be a command whose text shows them; what it writes besides fails the step.
    """
    names: list[str] = []
    count = 0
    for match in _HANDED.finditer(script):
        if "GITHUB_ENV" not in match[0]:
            continue
        here = _NAMED.findall(match["block"] or "") + re.findall(
            r"^\s*(\w+)=", match["lines"] or "", re.MULTILINE
        )
        here += re.findall(r"""\A["']?([A-Za-z_]\w*)(?:=|<<)""", match["text"] or "")
        count += match[0].count("GITHUB_ENV") if here else 0
        names += here
    if count != len(re.findall(r"\bGITHUB_ENV\b", script)) or not all(map(_NAME.match, names)):
        raise UntranslatableError(
            "github-env", "the names of the variables that it hands on are not in its text"
        )
    if "GITHUB_OUTPUT" in script and set(names) & set(_NAMED.findall(_HANDED.sub("", script))):
        raise UntranslatableError("github-env", "a variable and an output of one name, which may differ")
    return list(dict.fromkeys(names))


def starts_server(script: str) -> bool:
    """Say whether a script seems to leave a process in the background when it ends."""
    text = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    return bool(_BACKGROUND.search(text)) and not re.search(r"^\s*wait\b", text, re.MULTILINE)


def is_shell(shell: str) -> bool:
    """Say whether the first word of `shell` is a POSIX shell."""
    return shell.split(" ", maxsplit=1)[0].rpartition("/")[2] in _SHELLS if shell else True


def with_preludes(script: str, shell: str, wanted: Sequence[str]) -> str:
    """Return a script behind the lines that it needs; raises UntranslatableError where none can be given."""
    if not wanted:
        return script
    if is_shell(shell):
        lines = [_PRELUDES.get(name, name) for name in dict.fromkeys(wanted) if name != "GITHUB_PATH"]
        if "GITHUB_PATH" in wanted:
            script = f"(\n{script.rstrip(chr(10))}\n)\nfolders=\n{_PATH_OUTPUT}"
        return "\n".join([*lines, script])
    program = re.sub(r"[\d.]+\Z", "", shell.split(" ", maxsplit=1)[0].rpartition("/")[2])
    if program in _OTHER_PRELUDES and set(wanted) == {"GITHUB_OUTPUT"}:
        return f"{_OTHER_PRELUDES[program]}\n{script}"
    raise UntranslatableError("shell", f"`{shell}` is no shell that could be told where values are handed on")


class Condition:
    """The result of an `if`: an expression, "" for none, and whether it asks how what came before ended."""

    def __init__(self, text: str = "", *, asks: bool = False) -> None:
        self.text = "" if text == "true" else text
        self.asks = asks


def condition(node: Node | None, names: PlaceNames) -> Condition:
    """Return the result of an `if`, whose braces may be left out; raises UntranslatableError.

    With text beside the braces it is a text that is not empty, which GitHub takes for true.
    """
    text = text_of(node).strip()
    if not text:
        return Condition()
    try:
        pieces = cut(text) if "${{" in text else [parse(text, GITHUB)]
        if len(pieces) > 1:
            names.note("always-true", "`if` has text beside `${{ … }}`, which GitHub takes for true")
            return Condition()
        names.asked = False
        (only,) = [each for each in pieces if not isinstance(each, str)]
        kept = [part for part in _joined_by_and(only) if part != ("call", "success", ())]
        tree: Tree = kept[0] if kept else ("const", True)
        for part in kept[1:]:
            tree = ("and", tree, part)
        return Condition(truth(tree, names).text, asks=names.asked)
    except NotAnExpressionError as error:
        raise UntranslatableError("condition", f"`if`: {error}") from None
    except UntranslatableError as why:
        raise UntranslatableError("condition", f"`if`: {why.message}") from None


def _joined_by_and(tree: Tree) -> list[Tree]:
    return [*_joined_by_and(tree[1]), *_joined_by_and(tree[2])] if tree[0] == "and" else [tree]
