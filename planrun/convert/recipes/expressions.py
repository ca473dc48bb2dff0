"""Expressions of just: strings, variables, operators and functions, worked out as far as they are known before a run."""

from __future__ import annotations

import posixpath
import re
import shlex
from textwrap import dedent

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import MAX_TEXT, NAME, SAFE, Param, Piece, Shell, known, script_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Token = tuple[str, str]

_TOKEN = re.compile(
    r"""[ \t\n]*(?:\#[^\n]*)?[ \t\n]*(?:
    (?P<string>[xf]?(?:'''.*?'''|\"\"\"(?:\\.|.)*?\"\"\"|'[^']*'|"(?:\\.|[^"\\])*"))|(?P<back>```.*?```|`[^`]*`)|
    (?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<number>[0-9]+)|
    (?P<sign>:=|==|!=|=~|!~|&&|\|\||::|[-(){}\[\],+/*=$:?@!<>.]))""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "\n": ""}
_CONSTANTS = {"HEX": "0123456789abcdef", "HEXLOWER": "0123456789abcdef", "HEXUPPER": "0123456789ABCDEF"}
_FOLDERS = frozenset(("justfile_directory", "justfile_dir", "invocation_directory", "invocation_dir",
                      "invocation_directory_native", "source_directory", "source_dir"))  # fmt: skip
_MACHINE = {"os": "linux", "os_family": "unix", "arch": "x86_64"}
MAX_NESTING = 60
MAX_STEPS = 50_000  # values of one file


def _cased(
    join: str, change: Callable[[str], str], first: Callable[[str], str] | None = None
) -> Callable[[str], str]:
    def work(text: str) -> str:
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", text)
        return join.join((first or change)(word) if not at else change(word) for at, word in enumerate(words))

    return work


_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "uppercase": str.upper, "lowercase": str.lower, "trim": str.strip, "trim_start": str.lstrip,
    "trim_end": str.rstrip, "replace": lambda text, old, new: text.replace(old, new),
    "capitalize": lambda text: text[:1].upper() + text[1:].lower(),
    "kebabcase": _cased("-", str.lower), "snakecase": _cased("_", str.lower),
    "shoutysnakecase": _cased("_", str.upper), "shoutykebabcase": _cased("-", str.upper),
    "titlecase": _cased(" ", str.capitalize), "uppercamelcase": _cased("", str.capitalize),
    "lowercamelcase": _cased("", str.capitalize, str.lower),
    "trim_start_match": lambda text, part: text.removeprefix(part),
    "trim_end_match": lambda text, part: text.removesuffix(part),
    "append": lambda part, text: " ".join(f"{word}{part}" for word in text.split()),
    "prepend": lambda part, text: " ".join(f"{part}{word}" for word in text.split()),
    "file_name": posixpath.basename, "parent_directory": posixpath.dirname, "parent_dir": posixpath.dirname,
    "file_stem": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "extension": lambda path: posixpath.splitext(path)[1].removeprefix("."),
    "without_extension": lambda path: posixpath.splitext(path)[0],
    "clean": lambda path: posixpath.normpath(path), "join": posixpath.join, "just_executable": lambda: "just",
}  # fmt: skip


def tokens_of(text: str) -> list[Token]:
    """Return the kinds and texts of what an expression consists of; raises UntranslatableError."""
    found, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            if not text[at:].strip() or text[at:].lstrip().startswith("#"):
                break
            raise UntranslatableError("expression", f"it cannot be read: {text[at : at + 60].strip()}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


def _string(text: str) -> str:
    if text[0] in "xf":
        raise UntranslatableError("expression", f"the string {text[:40]} is filled in by just")
    quotes = text[:3] if text[:3] in ("'''", '"""') else text[0]
    body = text[len(quotes) : -len(quotes)]
    if len(quotes) == 3:
        body = dedent(body.removeprefix("\n"))
    if quotes[0] == '"':
        if re.search(r"(?<!\\)(?:\\\\)*\\[^ntr\"\\\n]", body):
            raise UntranslatableError(
                "expression", f"the string {text[:40]} has an escape that planrun does not know"
            )
        body = re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], body, flags=re.DOTALL)
    return body


class Evaluator:
    """Works out expressions of one file: `texts` are its variables, `outputs` the commands that some of them run.

    `frozen` are variables whose values decide what the plan is: they are no parameters.
    """

    def __init__(self, frozen: set[str], tell: Callable[[str, str], None]) -> None:
        self.texts: dict[str, list[Token]] = {}
        self.frozen = frozen
        self.tell = tell
        self.params: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.step = "variables"
        self._open: list[str] = []
        self._count = 0

    def known(self, pieces: Sequence[Piece], what: str) -> str:
        """Return a text that has to be known now, parameters by their defaults; raises UntranslatableError."""
        for piece in pieces:
            if isinstance(piece, Param) and piece.name in self.params and not piece.step:
                self.frozen.add(piece.name)
        fixed = [
            piece.text if isinstance(piece, Param) and piece.name in self.params else piece
            for piece in pieces
        ]
        return known(fixed, what)

    def value(self, tokens: list[Token], given: Mapping[str, list[Piece]]) -> list[Piece]:
        """Return what an expression results in; raises UntranslatableError."""
        parser = _Parser(self, tokens, given)
        found = parser.expression()
        parser.end()
        return found

    def values(self, tokens: list[Token], given: Mapping[str, list[Piece]]) -> list[list[Piece]]:
        """Return what expressions side by side result in."""
        parser, found = _Parser(self, tokens, given), []
        while parser.look()[0]:
            found.append(parser.expression())
        return found

    def charge(self, pieces: list[Piece]) -> list[Piece]:
        """Count a value against the limits; raises UntranslatableError."""
        self._count += 1 + len(pieces)
        if self._count > MAX_STEPS or sum(len(each) for each in pieces if isinstance(each, str)) > MAX_TEXT:
            raise UntranslatableError("too-large", "an expression becomes too long")
        return pieces

    def filled(self, text: str, given: Mapping[str, list[Piece]]) -> list[Piece]:
        """Return the text of a recipe with its `{{…}}` filled in."""
        found: list[Piece] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            found.append(text[at:start])
            if text.startswith("{{{{", start):
                found.append("{{")
                at = start + 4
                continue
            end, depth = start + 2, 0
            while True:
                match = _TOKEN.match(text, end)
                if match is None:
                    raise UntranslatableError(
                        "expression", f"`{{{{` is not closed: {text[start : start + 60]}"
                    )
                sign, end = match["sign"], match.end()
                if sign == "}" and not depth and text.startswith("}}", end - 1):
                    break
                depth += (sign == "{") - (sign == "}")
            end -= 1
            found += self.value(tokens_of(text[start + 2 : end]), given)
            at = end + 2
        found.append(text[at:])
        return self.charge([piece for piece in found if piece != ""] or [""])

    def name(self, name: str) -> list[Piece]:
        """Return a variable of the file."""
        if name in _CONSTANTS and name not in self.texts:
            return [_CONSTANTS[name]]
        if name not in self.texts:
            raise UntranslatableError("variable", f"there is no variable `{name}`")
        if name in self._open or len(self._open) > MAX_NESTING:
            raise UntranslatableError("variable", f"the variable `{name}` is made of itself")
        self._open.append(name)
        try:
            pieces = self.value(self.texts[name], {})
        finally:
            self._open.pop()
        fits = len(pieces) == 1 and isinstance(pieces[0], str) and SAFE.match(pieces[0]) and NAME.match(name)
        if fits and name not in self.frozen:
            self.params[name] = str(pieces[0])
            return [Param(name=name, text=str(pieces[0]))]
        return pieces

    def command(self, command: list[Piece]) -> list[Piece]:
        """Return the output of a command that a variable runs: a step runs it once, before all recipes."""
        if not self._open:
            raise UntranslatableError("backtick", "a command in backticks outside of a variable")
        base = name = re.sub(r"\W", "_", self._open[-1])
        script, number = script_of(command).strip(), 2
        while self.outputs.get(name, script) != script:
            name, number = f"{base}_{number}", number + 1
        self.outputs[name] = script
        return [Param(name=name, step=self.step)]

    def call(self, name: str, args: list[list[Piece]]) -> list[Piece]:
        """Return what a function results in; raises UntranslatableError."""
        if name in ("env", "env_var", "env_var_or_default") and args:
            variable = self.known(args[0], "the name of a variable")
            otherwise = self.known(args[1], f"the default of `{variable}`") if len(args) > 1 else ""
            if not NAME.match(variable) or not re.fullmatch(r"[\w./@:+=,% -]*", otherwise):
                raise UntranslatableError("function", f"the variable of the environment `{variable}`")
            return [Shell(text=f"${{{variable}{f'-{otherwise}' if len(args) > 1 else '?'}}}", reads=variable)]
        if name in _FOLDERS and not args:
            return [Shell(text="${PLANRUN_WORKSPACE}")]
        if name in _MACHINE and not args:
            self.tell("machine", f"`{name}()` is taken to be {_MACHINE[name]}")
            return [_MACHINE[name]]
        if name == "shell" and len(args) == 1:
            return self.command(args[0])
        if name == "quote" and len(args) == 1:
            if len(args[0]) == 1 and isinstance(args[0][0], Param):
                return [Shell(text=f"${{{{ {args[0][0].path} | sh }}}}", is_bare=True)]
            return ["'" + self.known(args[0], "`quote`").replace("'", "'\\''") + "'"]
        work = _FUNCTIONS.get(name)
        if work is None:
            raise UntranslatableError("function", f"`{name}()` is known to just alone")
        try:
            return [work(*(self.known(each, f"`{name}`") for each in args))]
        except TypeError:
            raise UntranslatableError("function", f"`{name}()` with {len(args)} arguments") from None


class _Parser:
    """Reads one expression."""

    def __init__(self, own: Evaluator, tokens: list[Token], given: Mapping[str, list[Piece]]) -> None:
        self.own = own
        self.tokens = tokens
        self.given = given
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

    def end(self) -> None:
        if self.look()[0]:
            raise UntranslatableError("expression", f"it has `{self.look()[1]}` behind an expression")

    def expression(self) -> list[Piece]:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise UntranslatableError("too-large", "an expression is nested too deeply")
        found = self._sum()
        if self.look()[1] in ("||", "&&"):
            raise UntranslatableError("expression", f"the operator `{self.look()[1]}`")
        self.depth -= 1
        return self.own.charge(found)

    def _sum(self) -> list[Piece]:
        found: list[Piece] = [] if self.look() == ("sign", "/") else self._one()
        while self.look() in (("sign", "+"), ("sign", "/")):
            slash = ["/"] if self.take()[1] == "/" else []
            found = self.own.charge([*found, *slash, *self._one()])
        text = (
            "".join(str(piece) for piece in found) if all(isinstance(piece, str) for piece in found) else None
        )
        return found if text is None else [text]

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
        if kind != "name":
            raise UntranslatableError("expression", f"it has `{text}` where a value is expected")
        if text == "if":
            return self._choice()
        if self.look() == ("sign", "("):
            self.take("(")
            args = []
            while self.look() != ("sign", ")"):
                args.append(self.expression())
                if self.look() == ("sign", ","):
                    self.take()
            self.take(")")
            return self.own.call(text, args)
        return self.given[text] if text in self.given else self.own.name(text)

    def _choice(self) -> list[Piece]:
        first = self._sum()
        sign = self.take()[1]
        second = self._sum()
        one, other = (self.own.known(each, "what `if` compares") for each in (first, second))
        if sign not in ("==", "!="):
            raise UntranslatableError("expression", f"`if` compares by `{sign}`")
        holds = (one == other) is (sign == "==")
        yes = self._body(taken=holds)
        self.take("else")
        if self.look() != ("name", "if"):
            no = self._body(taken=not holds)
        elif holds:
            while self.look() == ("name", "if"):
                self.take()
                while self.look()[0] and self.look() != ("sign", "{"):
                    self.take()
                self._body(taken=False)
                self.take("else")
            no = self._body(taken=False)
        else:
            self.take()
            no = self._choice()
        return yes if holds else no

    def _body(self, *, taken: bool) -> list[Piece]:
        """Return the value of a branch; the other one is not worked out."""
        self.take("{")
        found: list[Piece] = self.expression() if taken else [""]
        depth = 0
        while not taken and (depth or self.look() != ("sign", "}")):
            token = self.take()
            depth += (token == ("sign", "{")) - (token == ("sign", "}"))
        self.take("}")
        return found
