"""Values of Taskfiles and the templates in them: variables, defaults, and quotes for a shell.

A value is a text, number, truth, list or mapping of Python, or a `Text` that only a run knows in full.
"""

from __future__ import annotations

import re
import shlex

from planrun.convert.reader import UntranslatableError, data_of, text_of
from planrun.convert.recipes.scripts import DEFAULT, NAME, Piece, ShellText, Value, merged
from planrun.model.record import Record
from planrun.plan.yaml.node import SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.convert.reader import Findings, Reader

    Token = tuple[str, str]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(?P<number>-?\d+(?!\w))|(?P<comment>/\*.*?\*/)
    |(?P<field>\.[A-Za-z_]\w*(?:\.\w+)*)|(?P<word>[A-Za-z_]\w*)|(?P<sign>\||-?\}\}))""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: Mapping[str, Any] = {"true": True, "false": False, "OS": "linux", "ARCH": "amd64", "exeExt": ""}
_OF_TASK = frozenset((
    "CHECKSUM", "TIMESTAMP", "EXIT_CODE", "CLI_FORCE", "CLI_SILENT", "CLI_VERBOSE", "CLI_ARGS_LIST",
    "TASK_VERSION", "TASK_EXE", "TASK", "ALIAS", "MATCH", "ITEM", "KEY", "TASKFILE", "ROOT_TASKFILE",
))  # fmt: skip
MAX_PARTS = 2_000  # pieces of one text


class Text(Record):
    """A text of which only a run knows some pieces."""

    pieces: tuple[Piece, ...]


def fixed(value: Any) -> Any:
    """Return a value that has to be known now; raises UntranslatableError."""
    if isinstance(value, Text):
        raise UntranslatableError("template", "a part of a template is known only when the plan runs")
    return value


def shown(value: Any) -> str:
    """Return a value as Go prints it; raises UntranslatableError for what only a run knows, lists and mappings."""
    if isinstance(fixed(value), list | dict):
        raise UntranslatableError("template", "a list or a mapping is printed")
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def pieces_of(value: Any) -> list[Piece]:
    """Return a value as pieces of a text."""
    return list(value.pieces) if isinstance(value, Text) else [shown(value)]


def filled(text: str, lookup: Callable[[str], Any], found: Findings) -> Any:
    """Return a text with its templates filled in; raises UntranslatableError for what planrun does not know."""
    pieces: list[Piece] = []
    at, trims = 0, False
    while (start := text.find("{{", at)) >= 0:
        before = text[at:start].lstrip() if trims else text[at:start]
        at = start + 2
        if text.startswith("-", at) and text[at + 1 : at + 2].isspace():
            before, at = before.rstrip(), at + 1
        tokens: list[Token] = []
        while not tokens or tokens[-1][1] not in ("}}", "-}}"):
            match = _TOKEN.match(text, at)
            if match is None or len(pieces) > MAX_PARTS:
                raise UntranslatableError("template", f"go-task alone knows `{text[start : start + 60]}`")
            tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        trims = tokens.pop()[1] == "-}}"
        tokens = [token for token in tokens if token[0] != "comment"]
        pieces += [before, *(pieces_of(_value(tokens, lookup)) if tokens else [])]
    pieces = merged([*pieces, text[at:].lstrip() if trims else text[at:]], found)
    return pieces[0] if isinstance(pieces[0], str) and len(pieces) == 1 else Text(pieces=tuple(pieces))


def _value(tokens: list[Token], lookup: Callable[[str], Any]) -> Any:
    """Return the value of what stands between braces; raises UntranslatableError."""
    value: Any = None
    piped: list[Any] = []
    while tokens:
        end = tokens.index(("sign", "|")) if ("sign", "|") in tokens else len(tokens)
        command, tokens = tokens[:end], tokens[end + 1 :]
        words = [text for kind, text in command[:1] if kind == "word" and text not in _CONSTANTS]
        args = [_operand(kind, text, lookup) for kind, text in command[len(words) :]]
        if words:
            value = _call(words[0], [*args, *piped])
        elif len(args) == 1 and not piped:
            value = args[0]
        else:
            raise UntranslatableError("template", "values side by side, or a pipe into no function")
        piped = [value]
    return value


def _operand(kind: str, text: str, lookup: Callable[[str], Any]) -> Any:
    if kind == "text":
        escapes = {"n": "\n", "t": "\t", "r": "\r"}
        return (
            text[1:-1]
            if text[0] == "`"
            else re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text[1:-1])
        )
    if kind == "number":
        return int(text)
    if kind == "word" and text in _CONSTANTS:
        return _CONSTANTS[text]
    if kind != "field":
        raise UntranslatableError("template", f"`{text}` is known to go-task alone")
    name, *fields = text[1:].split(".")
    value = lookup(name)
    for field in fields:
        if not isinstance(value, dict):
            raise UntranslatableError("template", f"`{text}` is no mapping")
        value = value.get(field, "")
    return value


def _call(name: str, args: list[Any]) -> Any:
    """Return what a function results in; raises UntranslatableError."""
    if name in ("shellQuote", "q") and len(args) == 1:
        piece = pieces_of(args[0])[0]
        if isinstance(args[0], Text) and len(args[0].pieces) == 1 and isinstance(piece, Value):
            return Text(pieces=(ShellText(text=f"${{{{ {piece.expression} | sh }}}}", is_bare=True),))
        return shlex.quote(shown(args[0]))
    if name != "default" or len(args) != 2:
        raise UntranslatableError("template", f"the function `{name}` is known to go-task alone")
    other, value = args
    if not isinstance(value, Text):
        return value or other
    piece = value.pieces[0]
    if len(value.pieces) == 1 and isinstance(piece, ShellText) and piece.text == f"${{{piece.reads}}}":
        text = "".join(
            each.text if isinstance(each, ShellText) else each if isinstance(each, str) else "\n"
            for each in pieces_of(other)
        )
        if DEFAULT.match(re.sub(r"\$\{[^{}]*\}", "", text)):
            return Text(pieces=(piece.but(text=f"${{{piece.reads}:-{text}}}"),))
    raise UntranslatableError("template", "the default of a value that only a run knows")


class File:
    """One Taskfile: its root, and what its includer gives it."""

    def __init__(
        self, root: Node, reader: Reader, outer: File | None, prefix: str = "", folder: str = ""
    ) -> None:
        self.root, self.reader, self.outer, self.prefix, self.folder = root, reader, outer, prefix, folder
        self.given: dict[str, Node] = {}
        self.is_internal = False
        self.top: File = outer.top if outer is not None else self
        self.unsure: str = outer.unsure if outer is not None else ""
        self.outputs: dict[int, str] = {}  # of commands, by the nodes of their variables, as expressions
        self.params: dict[str, Any] = outer.params if outer is not None else {}

    def members(self, name: str) -> dict[str, Node]:
        """Return the members of a mapping at the top of the file."""
        return self.reader.mapping(self.root.get(name), f"`{name}`")

    def scope(self) -> Scope:
        """Return the variables of the file, and of those that include it."""
        outer = [(self.given, self.outer), *self.outer.scope().layers] if self.outer is not None else []
        layers = [(self.members("vars"), self), *outer]
        if self.given:  # what the includer gives wins over the file's own
            layers[:2] = [layers[1], layers[0]]
        return Scope(self, layers, {})

    def fixed(self, text: str) -> str:
        """Return a text that has to be known now, filled in; raises UntranslatableError."""
        return shown(self.scope().fill(text))


class Scope:
    """The variables that a text sees: `own` are values, `layers` variables of files, the nearest first."""

    def __init__(
        self, file: File, layers: list[tuple[dict[str, Node], File]], own: Mapping[str, Any]
    ) -> None:
        self.file, self.layers, self.own = file, layers, dict(own)

    def with_values(self, values: Mapping[str, Any]) -> Scope:
        """Return a scope that sees more."""
        return Scope(self.file, self.layers, {**self.own, **values})

    def fill(self, text: str) -> Any:
        """Return a text with its templates filled in; raises UntranslatableError."""
        return filled(text, self.lookup, self.file.reader.found) if "{{" in text else text

    def lookup(self, name: str) -> Any:
        """Return a variable; one that is set nowhere is a variable of the environment."""
        if name in self.own:
            return self.own[name]
        for at, (variables, file) in enumerate(self.layers):
            if name in variables:  # it sees those that stand before it
                earlier = dict(list(variables.items())[: list(variables).index(name)])
                outer = Scope(self.file, [(earlier, file), *self.layers[at + 1 :]], {})
                return outer.value(name, variables[name], file)
        env = self.file.top.members("env").get(name)
        if env is not None and env.kind == SCALAR:
            return self.fill(text_of(env))
        if name in ("ROOT_DIR", "USER_WORKING_DIR", "TASKFILE_DIR", "TASK_DIR"):
            inner = f"/{self.file.folder}" if name.startswith("TASK") and self.file.folder else ""
            return Text(pieces=(ShellText(text=f"${{PLANRUN_WORKSPACE}}{inner}"),))
        if name == "CLI_ARGS":
            self.file.params["CLI_ARGS"] = {"type": "array", "items": {"type": "string"}, "default": []}
            return Text(pieces=(ShellText(text="${{ params.CLI_ARGS | sh }}", is_bare=True),))
        if not NAME.match(name) or name in _OF_TASK:
            raise UntranslatableError("template", f"`.{name}` is known to go-task alone")
        return Text(pieces=(ShellText(text=f"${{{name}}}", reads=name),))

    def value(self, name: str, node: Node, file: File) -> Any:
        """Return what a variable is set to; raises UntranslatableError."""
        if node.kind == SEQUENCE:
            return [self.value(name, each, file) for each in node.value]
        if node.kind == SCALAR:
            value = data_of(node)
            return self.fill(value) if isinstance(value, str) else "" if value is None else value
        if id(node) not in file.outputs:
            raise UntranslatableError("vars", f"go-task alone knows the variable {name}")
        return Text(pieces=(ShellText(text=f"${{{name}}}", reads=name, given=file.outputs[id(node)]),))
