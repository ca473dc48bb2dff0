"""Expressions of just: strings, variables, calls, `+`, `/`, `if`; backticks become variables of the shell."""

from __future__ import annotations

import posixpath
import re
import zlib
from textwrap import dedent

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import (
    NAME,
    SAFE,
    DynamicError,
    Param,
    Piece,
    Read,
    lines_of,
    plain,
    script_of,
    shell_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Findings

    Test = tuple[list[Piece], str, list[Piece]]  # two values and the sign that compares them

    from planrun.plan.yaml.node import Node

_TOKEN = re.compile(
    r'''\s*(?:(?P<raw3>\'\'\'(?:.*?)\'\'\')|(?P<cooked3>"""(?:\\.|.)*?""")|(?P<raw>'[^']*')|(?P<cooked>"(?:\\.|[^"\\])*")'''
    r"""|(?P<back3>```.*?```)|(?P<back>`[^`]*`)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<sign>==|!=|=~|!~|&&|\|\||[+/(),{}]))""",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$", "\n": ""}
MAX_NESTING = 30
KNOWN: Mapping[str, str] = {
    "os": "linux",
    "os_family": "unix",
    "arch": "x86_64",
    "just_executable": "just",
    "just_pid": "",
}
_HERE = frozenset(
    ("justfile_directory", "invocation_directory", "source_directory", "invocation_dir", "justfile_dir")
)
_WORK: Mapping[str, Callable[..., str]] = {
    "uppercase": str.upper,
    "lowercase": str.lower,
    "trim": str.strip,
    "trim_end": str.rstrip,
    "trim_start": str.lstrip,
    "capitalize": str.capitalize,
    "kebabcase": lambda text: re.sub(r"[\s_]+", "-", text.lower()),
    "snakecase": lambda text: re.sub(r"[\s-]+", "_", text.lower()),
    "replace": lambda text, old, new: text.replace(old, new),
    "trim_end_match": lambda text, part: text.removesuffix(part),
    "trim_start_match": lambda text, part: text.removeprefix(part),
    "append": lambda part, words: " ".join(f"{word}{part}" for word in words.split()),
    "prepend": lambda part, words: " ".join(f"{part}{word}" for word in words.split()),
    "file_name": posixpath.basename,
    "file_stem": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "extension": lambda path: posixpath.splitext(path)[1].lstrip("."),
    "parent_directory": posixpath.dirname,
    "without_extension": lambda path: posixpath.splitext(path)[0],
    "join": posixpath.join,
    "clean": posixpath.normpath,
}

# Functions that a command of the shell does, with their arguments as words.
_COMMANDS: Mapping[str, tuple[int, str]] = {
    "path_exists": (1, "[ -e {0} ] && echo true || echo false"),
    "datetime": (1, "date +{0}"),
    "datetime_utc": (1, "date -u +{0}"),
    "num_cpus": (0, "nproc"),
    "which": (1, "command -v {0} || true"),
    "require": (1, "command -v {0}"),
    "sha256": (1, "printf %s {0} | sha256sum | cut -d' ' -f1"),
    "sha256_file": (1, "sha256sum {0} | cut -d' ' -f1"),
    "canonicalize": (1, "realpath -e {0}"),
    "read": (1, "cat {0}"),
    "home_directory": (0, 'printf %s "$HOME"'),
    "uuid": (0, "cat /proc/sys/kernel/random/uuid"),
}


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Return the tokens of an expression: kind and text; raises UntranslatableError."""
    found = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise UntranslatableError("expression", f"`{text.strip()[:80]}` cannot be read")
        kind = str(match.lastgroup)
        found.append((kind, match[kind]))
        at = match.end()
    return found


def _string(kind: str, text: str) -> str:
    body = text[3:-3] if kind.endswith("3") else text[1:-1]
    if kind.endswith("3"):
        body = dedent(body.removeprefix("\n"))
    if kind.startswith("cooked"):
        body = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), body, flags=re.DOTALL)
    return body


class Evaluator:
    """Works out expressions: `texts` are those of the file's variables, `given` what a recipe is given."""

    def __init__(self, plan: DraftPlan, found: Findings, place: Node) -> None:
        self.plan = plan
        self.found = found
        self.place = place
        self.texts: dict[str, str] = {}
        self.given: Mapping[str, list[Piece]] = {}
        self.folder = ""
        self._open: list[str] = []

    def value(self, text: str, given: Mapping[str, list[Piece]] | None = None) -> list[Piece]:
        """Return what an expression results in."""
        before, self.given = self.given, self.given if given is None else given
        try:
            parser = _Parser(self, tokens_of(text))
            found = parser.either()
            parser.end()
            return found
        finally:
            self.given = before

    def filled(self, text: str) -> list[Piece]:
        """Return the text of a recipe with its `{{…}}` filled in."""
        found: list[Piece] = []
        at = 0
        while (start := text.find("{{", at)) >= 0:
            found.append(text[at:start])
            if text.startswith("{{{{", start):
                found.append("{{")
                at = start + 4
                continue
            end = _end(text, start + 2)
            found += self.value(text[start + 2 : end])
            at = end + 2
        found.append(text[at:])
        return [piece for piece in found if piece != ""] or [""]

    def name(self, name: str) -> list[Piece]:
        """Return what a name is."""
        if name in self.given:
            return self.given[name]
        if name not in self.texts:
            constants = {
                "HEX": "0123456789abcdef",
                "NORMAL": "",
                "BOLD": "",
                "RED": "",
                "GREEN": "",
                "YELLOW": "",
                "BLUE": "",
                "CYAN": "",
            }
            if name in constants:
                return [constants[name]]
            raise UntranslatableError("variable", f"there is no variable `{name}`")
        if name in self._open or len(self._open) > MAX_NESTING:
            raise UntranslatableError("variable", f"the variable `{name}` is made of itself")
        self._open.append(name)
        try:
            pieces = self.value(self.texts[name], {})
        finally:
            self._open.pop()
        return self._param(name, pieces)

    def _param(self, name: str, pieces: list[Piece]) -> list[Piece]:
        param = name.replace("-", "_")
        if (
            len(pieces) == 1
            and isinstance(pieces[0], Read)
            and pieces[0].name.startswith("SHELL_")
            and NAME.match(param)
        ):
            own = pieces[0].name
            renamed = [
                f"{param}{line.removeprefix(own)}" if line.startswith(f"{own}=") else line
                for line in pieces[0].lines
            ]
            return [Read(name=param, lines=tuple(renamed))]
        if not all(isinstance(piece, str) for piece in pieces):
            return pieces
        text = "".join(str(piece) for piece in pieces)
        if (
            not SAFE.match(text)
            or not NAME.match(param)
            or self.plan.params.get(param, {}).get("default", text) != text
        ):
            if text:
                message = (
                    f"the variable {name} is written into the plan as its text, and cannot be given to a run"
                )
                self.found.differs("variable", message, self.place)
            return pieces
        self.plan.params.setdefault(param, {"type": "string", "default": text})
        return [Param(name=param, text=text)]

    def shell(self, command: list[Piece]) -> list[Piece]:
        """Return the output of a command, as a variable of the shell."""
        lines = [line for piece in command if isinstance(piece, Read) for line in piece.lines]
        self.found.differs(
            "backtick",
            "a command in backticks runs in each step that reads it, before its recipe",
            self.place,
        )
        script = script_of(command).strip()
        name = _named("SHELL", script)
        return [Read(name=name, lines=(*lines, f'{name}="$({script})" || exit'))]

    def chosen(self, test: Test, yes: list[Piece], no: list[Piece]) -> list[Piece]:
        """Return one of two values by a test of the shell, as a variable."""
        first, sign, second = test
        one, other = f'"{shell_text(first)}"', f'"{shell_text(second)}"'
        if sign in ("=~", "!~"):
            asked = f"printf '%s\\n' {one} | grep -Eq -e {other}"
            self.found.differs("pattern", "a pattern is read by grep -E", self.place)
        else:
            asked = f"[ {one} = {other} ]"
        asked = f"! {asked}" if sign[0] == "!" else asked
        name = _named("IF", asked, shell_text(yes), shell_text(no))
        lines = [
            f"if {asked}; then",
            *lines_of(yes),
            f'{name}="{shell_text(yes)}"',
            "else",
            *lines_of(no),
            f'{name}="{shell_text(no)}"',
            "fi",
        ]
        return [Read(name=name, lines=(*lines_of(first), *lines_of(second), "\n".join(lines)))]

    def call(self, name: str, args: list[list[Piece]]) -> list[Piece]:
        """Return what a function results in."""
        if name in ("env", "env_var", "env_var_or_default"):
            return self._environment(args)
        if name in _HERE:
            return [Read(name="PLANRUN_WORKSPACE")]
        if name in KNOWN and not args:
            if name in ("os", "arch", "os_family"):
                self.found.differs("machine", f"`{name}()` is taken to be {KNOWN[name]}", self.place)
                return [KNOWN[name]]
            if name == "just_executable":
                self.found.differs("just", "`just_executable()` is `just`, which has to be there", self.place)
                return [KNOWN[name]]
            raise DynamicError(f"`{name}()` is known to just alone")
        if (found := self._place(name, args)) is not None:
            return found
        if name == "shell" and args:
            return self.shell(args[0])
        if name == "quote" and args:
            return _quoted(args[0])
        if name == "error":
            raise DynamicError("`error(…)` ends just")
        return self._worked(name, args)

    def _place(self, name: str, args: list[list[Piece]]) -> list[Piece] | None:
        """Return what a function of this machine results in; None for any other function."""
        count, command = _COMMANDS.get(name, (-1, ""))
        if count == len(args):
            words = [f'"{shell_text(each)}"' for each in args]
            script = command.format(*words)
            variable = _named("SHELL", script)
            lines = [line for each in args for line in lines_of(each)]
            return [Read(name=variable, lines=(*lines, f'{variable}="$({script})" || exit'))]
        if name == "justfile" and not args:
            return [Read(name="PLANRUN_WORKSPACE"), f"/{posixpath.basename(self.found.file)}"]
        if name == "absolute_path" and len(args) == 1:
            path = posixpath.normpath(plain(args[0], "`absolute_path`"))
            return [path] if path.startswith("/") else [Read(name="PLANRUN_WORKSPACE"), f"/{path}"]
        return None

    def _worked(self, name: str, args: list[list[Piece]]) -> list[Piece]:
        """Return what a function of texts results in."""
        work = _WORK.get(name)
        if work is None:
            raise UntranslatableError("function", f"the function `{name}`")
        try:
            return [work(*(plain(each, f"`{name}`") for each in args))]
        except TypeError:
            raise UntranslatableError(
                "function", f"the function `{name}` with {len(args)} arguments"
            ) from None

    def _environment(self, args: list[list[Piece]]) -> list[Piece]:
        name = plain(args[0], "the name of a variable") if args else ""
        if not NAME.match(name):
            raise UntranslatableError("function", f"the variable of the environment `{name}`")
        if len(args) == 1:
            return [Read(name=name, lines=(f': "${{{name}?is not set}}"',))]
        otherwise = args[1]
        lines = lines_of(otherwise)
        return [Read(name=name, lines=(*lines, f'{name}="${{{name}-{shell_text(otherwise)}}}"'))]


def _named(kind: str, *texts: str) -> str:
    """Return the name of a variable of the shell: the same for the same texts."""
    return f"{kind}_{zlib.crc32(chr(0).join(texts).encode('utf-8', 'surrogatepass')):08x}"


def _quoted(pieces: list[Piece]) -> list[Piece]:
    if any(not isinstance(piece, str) for piece in pieces):
        return ['"', *pieces, '"']
    text = "".join(str(piece) for piece in pieces)
    return ["'" + text.replace("'", "'\\''") + "'"]


class _Parser:
    """Reads one expression."""

    def __init__(self, own: Evaluator, tokens: list[tuple[str, str]]) -> None:
        self.own = own
        self.tokens = tokens
        self.at = 0

    def look(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, text: str = "") -> tuple[str, str]:
        token = self.look()
        if not token[0] or (text and token[1] != text):
            raise UntranslatableError(
                "expression", f"an expression has `{token[1]}` where `{text or 'a value'}` is expected"
            )
        self.at += 1
        return token

    def end(self) -> None:
        if self.at < len(self.tokens):
            raise UntranslatableError("expression", f"an expression has `{self.look()[1]}` behind its end")

    def either(self) -> list[Piece]:
        found = self.both()
        while self.look() == ("sign", "||"):
            self.take()
            other = self.both()
            found = found if plain(found, "`||`") else other
        return found

    def both(self) -> list[Piece]:
        found = self.sum()
        while self.look() == ("sign", "&&"):
            self.take()
            other = self.sum()
            found = other if plain(found, "`&&`") else [""]
        return found

    def sum(self) -> list[Piece]:
        if self.look() == ("sign", "/"):
            self.take()
            found: list[Piece] = ["/", *self.one()]
        else:
            found = self.one()
        while self.look() in (("sign", "+"), ("sign", "/")):
            sign = self.take()[1]
            found = [*found, *(["/"] if sign == "/" else []), *self.one()]
        return found

    def one(self) -> list[Piece]:
        kind, text = self.take()
        if kind in ("raw", "raw3", "cooked", "cooked3"):
            return [_string(kind, text)]
        if kind in ("back", "back3"):
            body = text.strip("`")
            return self.own.shell(self.own.filled(dedent(body.strip("\n"))))
        if (kind, text) == ("sign", "("):
            found = self.either()
            self.take(")")
            return found
        if kind != "name":
            raise UntranslatableError("expression", f"an expression has `{text}` where a value is expected")
        if text == "if":
            return self.choice()
        if self.look() == ("sign", "("):
            return self.own.call(text, self.arguments())
        return self.own.name(text)

    def arguments(self) -> list[list[Piece]]:
        self.take("(")
        found = []
        while self.look() != ("sign", ")"):
            found.append(self.either())
            if self.look() == ("sign", ","):
                self.take()
        self.take(")")
        return found

    def choice(self) -> list[Piece]:
        first = self.sum()
        sign = self.take()[1]
        second = self.sum()
        if sign not in ("==", "!=", "=~", "!~"):
            raise UntranslatableError("expression", f"`if` compares by `{sign}`")
        if any(isinstance(piece, Read) for piece in (*first, *second)):
            return self.by_shell((first, sign, second))
        one, other = plain(first, "`if`"), plain(second, "`if`")
        holds = (
            (one == other) is (sign == "==")
            if sign in ("==", "!=")
            else bool(re.search(other, one)) is (sign == "=~")
        )
        self.own.found.differs("if", "`if` is worked out now, by the defaults of variables", self.own.place)
        self.take("{")
        yes = self._body(skips=not holds)
        self.take("}")
        self.take("else")
        if self.look() == ("name", "if"):
            self.take()
            no = self.choice() if not holds else self._skip_choice()
        else:
            self.take("{")
            no = self._body(skips=holds)
            self.take("}")
        return yes if holds else no

    def by_shell(self, test: Test) -> list[Piece]:
        """Return the value of an `if` that only a run can decide."""
        self.take("{")
        yes = self.either()
        self.take("}")
        self.take("else")
        if self.look() == ("name", "if"):
            self.take()
            return self.own.chosen(test, yes, self.choice())
        self.take("{")
        no = self.either()
        self.take("}")
        return self.own.chosen(test, yes, no)

    def _body(self, *, skips: bool) -> list[Piece]:
        if not skips:
            return self.either()
        depth = 0
        while depth or self.look() != ("sign", "}"):
            token = self.take()
            depth += (token == ("sign", "{")) - (token == ("sign", "}"))
        return [""]

    def _skip_choice(self) -> list[Piece]:
        while True:
            while self.look() != ("sign", "{"):
                self.take()
            self.take("{")
            self._body(skips=True)
            self.take("}")
            if self.look() != ("name", "else"):
                return [""]
            self.take()
            if self.look() == ("sign", "{"):
                self.take("{")
                self._body(skips=True)
                self.take("}")
                return [""]


def _end(text: str, start: int) -> int:
    """Return where `}}` ends an interpolation; raises UntranslatableError."""
    at = start
    while at < len(text) and not text.startswith("}}", at):
        match = _TOKEN.match(text, at)
        if match is None or (
            match.lastgroup == "sign" and match["sign"] == "}" and text.startswith("}}", match.start("sign"))
        ):
            at = text.find("}}", at)
            break
        at = match.end()
    at = text.find("}}", max(at - 0, start)) if at >= 0 and not text.startswith("}}", at) else at
    if at < 0:
        raise UntranslatableError("shape", f"`{{{{` is not closed: {text[start : start + 60]}")
    return at
