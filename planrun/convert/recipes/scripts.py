"""Texts of recipes in pieces: what is known now, what a parameter gives, and what only a shell knows.

A script of lines that have a shell each, as make and just run them.
"""

from __future__ import annotations

import re

from planrun.convert.draft import literal_text, says_nothing
from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record
from planrun.plan.check.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]+\Z")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


class Param(Record):
    """A value that a parameter of the plan gives; `text` is its default."""

    name: str
    text: str = ""


class Read(Record):
    """A variable of the shell; `lines` set it first."""

    name: str
    lines: tuple[str, ...] = ()


Piece = str | Param | Read


class DynamicError(UntranslatableError):
    """A text is wanted now that only a run knows."""

    def __init__(self, what: str) -> None:
        super().__init__("dynamic", what)


def plain(pieces: Sequence[Piece], what: str) -> str:
    """Return a text that is known now, parameters by their defaults; raises DynamicError."""
    found = ""
    for piece in pieces:
        if isinstance(piece, Read):
            raise DynamicError(f"{what} depends on `{piece.name}`, which only a shell knows")
        found += piece.text if isinstance(piece, Param) else piece
    return found


def lines_of(pieces: Sequence[Piece]) -> list[str]:
    """Return the lines of a shell that the pieces need first."""
    return list(dict.fromkeys(line for piece in pieces if isinstance(piece, Read) for line in piece.lines))


def script_of(pieces: Sequence[Piece]) -> str:
    """Return a text as a script: variables where a shell reads them, parameters as templates."""
    marks = [None if isinstance(piece, Read) else _text(piece) for piece in pieces]
    frames: Iterator[str] = iter(open_quotes(marks) if None in marks else [])
    found = ""
    for piece, mark in zip(pieces, marks, strict=True):
        if not isinstance(piece, Read):
            text = mark or ""
            if found.endswith("$") and text.startswith("${{"):
                raise UntranslatableError("dollar", "`$` right before a value cannot be written in a plan")
            found += text
            continue
        frame = next(frames)
        if frame == "single":
            found += f"'\"${{{piece.name}}}\"'"
        elif frame in ("command", "double", "brace", "member", "back", "comment"):
            found += f"${{{piece.name}}}"
        else:
            raise DynamicError(f"`{piece.name}`, which only a shell knows, stands {frame}")
    return found


def _text(piece: Piece) -> str:
    if isinstance(piece, Param):
        return f"${{{{ params.{piece.name} }}}}"
    return literal_text(piece) if isinstance(piece, str) else ""


def shell_text(pieces: Sequence[Piece]) -> str:
    """Return a text for double quotes of a shell."""
    found = ""
    for piece in pieces:
        if isinstance(piece, Read):
            found += f"${{{piece.name}}}"
        else:
            text = _text(piece)
            found += text if isinstance(piece, Param) else re.sub(r'(["\\`$])', r"\\\1", text)
    return found


class Command(Record):
    """One line of a recipe: its script, and whether its failure counts."""

    text: str
    is_tolerated: bool = False


def joined(first: Sequence[str], commands: Sequence[Command], *, errexit: bool) -> str:
    """Return the script of a recipe: each line in a shell of its own, and the first failure ends it."""
    commands = [command for command in commands if not says_nothing(command.text)]
    lines = list(first)
    if len(commands) == 1 and not commands[0].is_tolerated:
        return "\n".join([*lines, commands[0].text]) + "\n"
    for command in commands:
        body = f"(\n{command.text}\n)"
        if errexit:
            lines += ["set +e", f"(\nset -e\n{command.text}\n)", "set -e"] if command.is_tolerated else [body]
        else:
            lines.append(f"{body} || {'true' if command.is_tolerated else 'exit'}")
    return "\n".join(lines) + "\n"
