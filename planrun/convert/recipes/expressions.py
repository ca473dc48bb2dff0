"""Expressions of just: strings, variables, operators and a few functions, as far as they are known before a run."""

from __future__ import annotations

import re
from textwrap import dedent

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import DEFAULT, NAME, Piece, ShellText, Value, known, merged, script_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.reader import Findings

    Token = tuple[str, str]
    Given = Mapping[str, list[Piece]]

_TOKEN = re.compile(
    r"""[ \t\n]*(?:\#[^\n]*)?[ \t\n]*(?:
    (?P<string>[xf]?(?:'''.*?'''|\"\"\"(?:\\.|.)*?\"\"\"|'[^']*'|"(?:\\.|[^"\\])*"))|(?P<back>```.*?```|`[^`]*`)|
    (?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<number>[0-9]+)|
    (?P<sign>:=|==|!=|=~|!~|&&|\|\||::|[-(){}\[\],+/*=$:?@!<>.]))""",
    re.DOTALL | re.VERBOSE,
)
_FOLDERS = (
    "justfile_directory", "justfile_dir", "invocation_directory", "invocation_dir", "source_directory",
    "source_dir",
)  # fmt: skip
MAX_NESTING = 60


def tokens_of(text: str) -> list[Token]:
    """Return the kinds and texts of what an expression consists of; raises UntranslatableError."""
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None and text[at:].lstrip().startswith("#"):
            break
        if match is None:
            raise UntranslatableError("expression", f"it cannot be read: {text[at : at + 60].strip()}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


def _string(text: str) -> str:
    quotes = text[:3] if text[:3] in ("'''", '"""') else text[0]
    body = text[len(quotes) : -len(quotes)]
    if text[0] in "xf" or (quotes[0] == '"' and re.search(r"(?<!\\)(?:\\\\)*\\[^ntr\"\\\n]", body)):
        raise UntranslatableError("expression", f"just fills in the string {text[:40]}")
    body = dedent(body.removeprefix("\n")) if len(quotes) == 3 else body
    escapes = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
    return (
        re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), body, flags=re.DOTALL)
        if quotes[0] == '"'
        else body
    )


class Evaluator:
    """Works out expressions of one file: `texts` are its variables, `outputs` the commands that some of them run."""

    def __init__(self, found: Findings) -> None:
        self.texts: dict[str, list[Token]] = {}
        self.found = found
        self.outputs: dict[str, str] = {}
        self._open: list[str] = []

    def value(self, tokens: list[Token], given: Given) -> list[Piece]:
        """Return what an expression results in; raises UntranslatableError."""
        found = self.values(tokens, given)
        if len(found) != 1:
            raise UntranslatableError("expression", "it is not one expression")
        return found[0]

    def values(self, tokens: list[Token], given: Given) -> list[list[Piece]]:
        """Return what expressions side by side result in."""
        parser, found = _Parser(self, tokens, given), []
        while parser.look()[0]:
            found.append(parser.expression())
        return found

    def filled(self, text: str, given: Given) -> list[Piece]:
        """Return the text of a recipe with its `{{…}}` filled in."""
        found: list[Piece] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            found.append(text[at:start])
            if text.startswith("{{{{", start):
                found.append("{{")
                at = start + 4
                continue
            end, depth, sign = start + 2, 0, ""
            while sign != "}" or depth >= 0 or text[end : end + 1] != "}":
                match = _TOKEN.match(text, end)
                if match is None:
                    raise UntranslatableError(
                        "expression", f"`{{{{` is not closed: {text[start : start + 60]}"
                    )
                sign, end = match["sign"], match.end()
                depth += (sign == "{") - (sign == "}")
            found += self.value(tokens_of(text[start + 2 : end - 1]), given)
            at = end + 1
        return merged([*found, text[at:]], self.found)

    def name(self, name: str) -> list[Piece]:
        """Return a variable of the file; raises UntranslatableError."""
        if name not in self.texts or name in self._open or len(self._open) > MAX_NESTING:
            raise UntranslatableError("variable", f"there is no variable `{name}`, or it is made of itself")
        self._open.append(name)
        try:
            return self.value(self.texts[name], {})
        finally:
            self._open.pop()

    def command(self, command: list[Piece]) -> list[Piece]:
        """Return the output of a command that a variable runs: a step runs it once, before all recipes."""
        if not self._open:
            raise UntranslatableError("backtick", "a command in backticks outside of a variable")
        base = name = re.sub(r"\W", "_", self._open[-1])
        script, number = script_of(command, {}).strip(), 2
        while self.outputs.get(name, script) != script:
            name, number = f"{base}_{number}", number + 1
        self.outputs[name] = script
        return [ShellText(text=f"${{{name}}}", reads=name, given=f"steps.variables.outputs.{name}")]

    def call(self, name: str, args: list[list[Piece]]) -> list[Piece]:
        """Return what a function results in; raises UntranslatableError."""
        if name in ("env", "env_var", "env_var_or_default") and args:
            variable, *otherwise = (known(each, "a variable of the environment") for each in args)
            if not NAME.match(variable) or not DEFAULT.match("".join(otherwise)):
                raise UntranslatableError("function", f"the variable of the environment `{variable}`")
            return [
                ShellText(text=f"${{{variable}{f'-{otherwise[0]}' if otherwise else '?'}}}", reads=variable)
            ]
        if name in _FOLDERS and not args:
            return [ShellText(text="${PLANRUN_WORKSPACE}")]
        if name == "just_executable" and not args:
            return ["just"]
        if name == "quote" and len(args) == 1:
            piece = args[0][0]
            if len(args[0]) == 1 and isinstance(piece, Value):
                return [ShellText(text=f"${{{{ {piece.expression} | sh }}}}", is_bare=True)]
            return ["'" + known(args[0], "what is quoted").replace("'", "'\\''") + "'"]
        raise UntranslatableError("function", f"`{name}()` is known to just alone")


class _Parser:
    """Reads one expression after the other."""

    def __init__(self, own: Evaluator, tokens: list[Token], given: Given) -> None:
        self.own, self.tokens, self.given = own, tokens, given
        self.at = self.depth = 0

    def look(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, text: str = "") -> Token:
        token = self.look()
        if not token[0] or (text and token[1] != text):
            raise UntranslatableError(
                "expression", f"it has `{token[1]}` where `{text or 'a value'}` is expected"
            )
        self.at += 1
        return token

    def expression(self) -> list[Piece]:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise UntranslatableError("too-large", "an expression is nested too deeply")
        found: list[Piece] = [] if self.look() == ("sign", "/") else self._one()
        while self.look() in (("sign", "+"), ("sign", "/")):
            slash = ["/"] if self.take()[1] == "/" else []
            found = merged([*found, *slash, *self._one()], self.own.found)
        self.depth -= 1
        return found

    def _one(self) -> list[Piece]:
        kind, text = self.take()
        if kind == "string":
            return [_string(text)]
        if kind == "back":
            return self.own.command(self.own.filled(dedent(text.strip("`").strip("\n")), self.given))
        if (kind, text) == ("sign", "("):
            found = self.expression()
            self.take(")")
            return found
        if kind != "name" or text == "if":
            raise UntranslatableError("expression", f"it has `{text}` where a value is expected")
        if self.look() != ("sign", "("):
            return self.given[text] if text in self.given else self.own.name(text)
        self.take()
        args = []
        while self.look() != ("sign", ")"):
            args.append(self.expression())
            if self.look() == ("sign", ","):
                self.take()
        self.take(")")
        return self.own.call(text, args)
