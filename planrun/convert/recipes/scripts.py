"""Texts of recipes in pieces, and scripts of lines that have a shell each, as make, just and go-task run them.

A piece is text that is known now, a value that the plan fills in, or what a shell fills in.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise

from planrun.convert.draft import literal_text, says_nothing
from planrun.convert.reader import UntranslatableError
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.check.quoting import open_quotes
from planrun.plan.yaml.file import read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]+\Z")  # what `run` accepts as a value
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
DEFAULT = re.compile(r"[\w./@:+=,% -]*\Z")  # what can stand in `${NAME-…}`
POSIX = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
INTERPRETERS = re.compile(r"(?:python[\d.]*|node|perl|ruby)\Z")
_HOLE = "\0"
_OUTSIDE = ("command", "double", "brace", "member", "back")
_SIMPLE_LINE = re.compile(  # of a file of variables
    r"""\s*(?:\#.*)?|\s*(?:export\s+)?\w+=(?:[^\s'"$`\\#]*|'[^'$]*'|"[^"$\\`]*")\s*(?:\s\#.*)?"""
)
# A simple command whose effect on later ones is that of its process: no list, no substitution, no built-in that changes
# the shell. An ampersand only in `>&`.
_PLAIN = re.compile(r"(?!\w+\+?=)(?:[^;&|()`\n$#\\!<]|\$(?![('\"])|(?<=\S)[#!]|>&|\\[^\n])+\Z")
_OWN = frozenset((
    "!", ".", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "coproc", "declare",
    "dirs", "do", "done", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "in", "jobs", "let", "local", "mapfile", "popd", "pushd", "read",
    "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend", "then", "time", "times", "trap",
    "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "{", "}",
))  # fmt: skip


class Value(Record):
    """What the plan fills in: the value of an expression."""

    expression: str


class ShellText(Record):
    """What a shell fills in, in a form for inside and outside of double quotes; `is_bare`: only outside.

    `reads` is its variable, "" for none; `given` the expression that a step gets as this variable.
    """

    text: str
    reads: str = ""
    given: str = ""
    is_bare: bool = False

    @property
    def expression(self) -> str:
        """The expression of its value, "" where only a shell works it out."""
        return self.given if self.text == f"${{{self.reads}}}" else ""


Piece = str | Value | ShellText


def env_files(found: Findings, names: Sequence[str], place: Node) -> list[str]:
    """Return the files of variables that are there; raises UntranslatableError where planrun reads one otherwise."""
    kept = []
    for name in names:
        path = os.path.join(os.path.dirname(found.file), os.path.expanduser(name))
        if "$" in name or not os.path.isfile(path):
            message = f"the file {name} is not there: where it is to be read, add it to `env_file`"
            found.todo("dotenv", message, place)
            continue
        try:
            lines = read_source(path, "file").decode("utf-8", "replace").splitlines()
        except InvalidInput as error:
            raise UntranslatableError("dotenv", str(error)) from None
        if not all(map(_SIMPLE_LINE.fullmatch, lines)):
            raise UntranslatableError(
                "dotenv", f"{name} has lines that planrun reads otherwise than its tool"
            )
        kept.append(name)
    if kept:
        message = (
            "a file of variables has to be there when the plan runs, and wins over the caller's environment"
        )
        found.differs("dotenv", message, place)
    return kept


def merged(pieces: Sequence[Piece], found: Findings) -> list[Piece]:
    """Return pieces with texts side by side joined; raises InvalidInput when all expansions make too much."""
    kept: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and kept and isinstance(kept[-1], str):
            kept[-1] += piece
        elif piece != "":
            kept.append(piece)
    found.spend(50 + sum(len(piece) if isinstance(piece, str) else 100 for piece in kept))
    return kept or [""]


def known(pieces: Sequence[Piece], what: str) -> str:
    """Return a text that is known before a run; raises UntranslatableError."""
    if not all(isinstance(piece, str) for piece in pieces):
        raise UntranslatableError("dynamic", f"{what} is known only when the plan runs")
    return "".join(map(str, pieces))


def script_of(pieces: Sequence[Piece], env: dict[str, str]) -> str:
    """Return a text as a script; `env` gets the variables that it is given. Raises UntranslatableError."""
    holes = [piece for piece in pieces if isinstance(piece, ShellText)]
    text = "".join(_HOLE if isinstance(piece, ShellText) else _in_plan(piece) for piece in pieces)
    if any(
        isinstance(piece, str) and piece.endswith("$")
        for piece, after in pairwise(pieces)
        if isinstance(after, Value)
    ):
        raise UntranslatableError("dollar", "`$` right before a value cannot be written in a plan")
    for name in {piece.reads for piece in holes if piece.reads}:
        if re.search(rf"(?<![\w$]){name}\+?=|\b(?:for|read|unset|local)\b[^;\n]*\b{name}\b", text):
            raise UntranslatableError(
                "variable", f"a command sets `{name}`, which is filled in before it runs"
            )
    frames = _frames(text)
    if frames[-1] not in ("command", "comment"):
        raise UntranslatableError("quotes", "the quotes of a command are not closed")
    if "single" in frames:  # 'a \0 b' is "a \0 b" where nothing in it means something in double quotes
        text = re.sub(
            r"'([^'\"$`\\]*)'", lambda match: f'"{match[1]}"' if _HOLE in match[1] else match[0], text
        )
        frames = _frames(text)
    found, *parts = text.split(_HOLE)
    for piece, frame, part in zip(holes, frames, parts, strict=False):
        if frame in (_OUTSIDE[:1] if piece.is_bare else _OUTSIDE):
            found += piece.text + part
            if piece.given:
                env[piece.reads] = f"${{{{ {piece.given} }}}}"
        elif piece.expression:
            found += f"${{{{ {piece.expression} }}}}{part}"
        else:
            raise UntranslatableError("quotes", f"`{piece.text}` stands where a shell fills nothing in")
    return found


def _frames(text: str) -> list[str]:
    """Return in which quotes each hole of a text and its end stand."""
    return open_quotes([part for each in text.split(_HOLE) for part in (each, None)])


def _in_plan(piece: str | Value) -> str:
    return literal_text(piece) if isinstance(piece, str) else f"${{{{ {piece.expression} }}}}"


def template_of(pieces: Sequence[Piece], what: str) -> str:
    """Return a text as a template of the plan; raises UntranslatableError where only a shell knows a part."""
    found = ""
    for piece in pieces:
        if isinstance(piece, ShellText) and not piece.expression:
            raise UntranslatableError("dynamic", f"{what} is known only to a shell")
        found += _in_plan(Value(expression=piece.expression) if isinstance(piece, ShellText) else piece)
    return found


def is_plain(line: str) -> bool:
    """Say whether a line is a simple command that leaves nothing behind in its shell."""
    text = re.sub(r"\$\{\{ .*? \}\}", "x", line.strip())
    return bool(_PLAIN.match(text)) and text.split(maxsplit=1)[0] not in _OWN


def joined(commands: Sequence[tuple[str, bool]], *, strict: bool, first: Sequence[str] = ()) -> str:
    """Return a script in which each command has a shell of its own and the first failure ends all.

    A command has its text, and whether its failure is tolerated. `strict`: the shell of the plan has `-e`, and so has
    that of each command. `first` are lines before all. Raises UntranslatableError.
    """
    texts = [(text.strip("\n"), tolerated) for text, tolerated in commands if not says_nothing(text)]
    if len(texts) == 1 and not texts[0][1]:
        return "\n".join([*first, texts[0][0]]) + "\n"
    lines = [*first, *([] if strict or len(texts) < 2 else ["set -e"])]
    for text, tolerated in texts:
        plain = is_plain(text)
        several = not strict and re.search(r"[;\n`]|\$\(|(?<!&)&(?!&)", text)
        body = f"set +e{chr(10) if '#' in text else ';'} {text.strip()}" if several else text
        if tolerated and strict and not plain:
            lines += ["set +e", _bracketed(f"set -e\n{text}"), "set -e"]
        elif tolerated:  # an unset variable may end the shell
            if re.search(r"\bset\s", text):
                raise UntranslatableError("set", "`set` in a command whose failure does not count")
            lines.append(f"{text.strip() if plain and '$' not in text else _bracketed(body)} || true")
        else:
            lines.append(text.strip() if plain else _bracketed(body))
    return "\n".join(lines) + "\n"


def _bracketed(text: str) -> str:
    if "\n" in text or "#" in text or text.endswith("\\"):
        return f"(\n{text}\n)"
    return f"( {text.strip()} )"


def shell_of(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the words of a shell for a plan, and whether it has `-e`; raises UntranslatableError for no shell."""
    kept = [re.sub(r"^(-[a-z]*)c([a-z]*)$", r"\1\2", word) for word in words]
    kept = [word for word in kept if word != "-"]
    if not kept or kept[0].rpartition("/")[2] not in POSIX or any(re.search(r"[$`]", word) for word in kept):
        raise UntranslatableError("shell", f"the shell `{' '.join(words)}`")
    if len(kept) == 1 and "/" not in kept[0]:
        kept.append("+e")  # without options it would get those of planrun
    return kept, any(re.fullmatch(r"-[a-z]*e[a-z]*|errexit", word) for word in kept[1:])
