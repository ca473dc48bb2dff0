"""Texts of recipes in pieces, and scripts of lines that have a shell each, as make, just and go-task run them.

A piece is text that is known now, a parameter of the plan, or what a shell fills in.
"""

from __future__ import annotations

import re

from planrun.convert.draft import literal_text, says_nothing, step_path
from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record
from planrun.plan.check.quoting import open_quotes
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planrun.convert.draft import DraftStep
    from planrun.convert.reader import Findings

SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]+\Z")  # what `run` accepts as a value
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
MAX_TEXT = 100_000  # characters of one expanded text
_HOLE = "\0"
_OUTSIDE = ("command", "double", "brace", "member", "back")
_QUOTED = re.compile(r"'([^'\"$`\\]*)'")
# A simple command whose effect on later ones is that of its process: no list, no substitution, no built-in that changes
# the shell. An ampersand only in `>&`.
_PLAIN = re.compile(r"(?!\w+\+?=)(?:[^;&|()`\n$#\\!<]|\$(?![('\"])|(?<=\S)[#!]|>&|\\[^\n])+\Z")
_OWN = frozenset(
    (
        "! . [[ alias bg break builtin case cd command continue coproc declare dirs do done elif else enable esac eval exec "
        "exit export fc fg fi for function getopts hash if in jobs let local mapfile popd pushd read readonly return select "
        "set shift shopt source suspend then time times trap typeset ulimit umask unalias unset until wait while { }"
    ).split()
)


class Param(Record):
    """A value that the plan fills in: a parameter, whose default is `text`, or the output of a `step`.

    `may_skip`: the step may be skipped, together with those that read it.
    """

    name: str
    text: str = ""
    step: str = ""
    may_skip: bool = False

    @property
    def path(self) -> str:
        """The expression that reads it."""
        path = f"{step_path(self.step, 'outputs')}.{self.name}" if self.step else f"params.{self.name}"
        return f"default({path}, '')" if self.may_skip else path


class Shell(Record):
    """What a shell fills in, in a form for inside and outside of double quotes.

    `reads` is the variable, "" for a command; `lines` set it first. `is_bare`: it must not stand in quotes.
    """

    text: str
    reads: str = ""
    lines: tuple[str, ...] = ()
    is_bare: bool = False


Piece = str | Param | Shell


class Command(Record):
    """One command with a shell of its own; `is_tolerated`: its failure does not count."""

    text: str
    is_tolerated: bool = False


def known(pieces: Sequence[Piece], what: str) -> str:
    """Return a text that is known before a run; raises UntranslatableError."""
    if not all(isinstance(piece, str) for piece in pieces):
        raise UntranslatableError("dynamic", f"{what} is known only when the plan runs")
    return "".join(str(piece) for piece in pieces)


def lines_of(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return the lines of a shell that the pieces need first."""
    return tuple(dict.fromkeys(line for piece in pieces if isinstance(piece, Shell) for line in piece.lines))


def script_of(pieces: Sequence[Piece]) -> str:
    """Return a text as a script; raises UntranslatableError where a shell would not fill a piece in."""
    holes = [
        _in_shell(piece)
        for piece in pieces
        if not isinstance(piece, str) and (isinstance(piece, Shell) or piece.step)
    ]
    text = "".join(
        _HOLE if isinstance(piece, Shell) or (isinstance(piece, Param) and piece.step) else _plan_text(piece)
        for piece in pieces
    )
    if re.search(r"(?<!\$)\$\$\{\{ (params|steps|default)", text):
        raise UntranslatableError("dollar", "`$` right before a value cannot be written in a plan")
    frames = open_quotes([part for each in text.split(_HOLE) for part in (each, None)])
    if frames[-1] not in ("command", "comment"):
        raise UntranslatableError("quotes", "the quotes of a command are not closed")
    if "single" in frames:  # 'a \0 b' is "a \0 b" where nothing in it means something in double quotes
        text = _QUOTED.sub(lambda match: f'"{match[1]}"' if _HOLE in match[1] else match[0], text)
        frames = open_quotes([part for each in text.split(_HOLE) for part in (each, None)])
    for piece in holes:
        name = re.escape(piece.reads)
        if name and re.search(rf"(?<![\w$]){name}\+?=|\b(?:for|read|unset|local)\b[^;\n]*\b{name}\b", text):
            raise UntranslatableError(
                "variable", f"a command sets `{piece.reads}`, which is filled in before it runs"
            )
    parts = text.split(_HOLE)
    found = parts[0]
    for piece, frame, part in zip(holes, frames, parts[1:], strict=False):
        if frame not in (_OUTSIDE[:1] if piece.is_bare else _OUTSIDE):
            raise UntranslatableError(
                "quotes", f"`{piece.text}` stands in quotes in which a shell fills nothing in"
            )
        found += piece.text + part
    return found


def _in_shell(piece: Param | Shell) -> Shell:
    """Return the variable in which a step gets an output of another one."""
    return Shell(text=f"${{{piece.name}}}", reads=piece.name) if isinstance(piece, Param) else piece


def give(step: DraftStep, outputs: Iterable[Param]) -> None:
    """Give a step the outputs of others that its script reads as variables."""
    script = str(step.keys.get("run", ""))
    for each in outputs:
        if f"${{{each.name}}}" in script and each.step != step.id:
            step.keys.setdefault("env", {}).setdefault(each.name, f"${{{{ {each.path} }}}}")


def _plan_text(piece: Piece) -> str:
    if isinstance(piece, Param):
        return f"${{{{ {piece.path} }}}}"
    return literal_text(piece) if isinstance(piece, str) else ""


def quoted_text(pieces: Sequence[Piece]) -> str:
    """Return a text for double quotes of a shell."""
    return "".join(
        re.sub(r'(["\\`$])', r"\\\1", literal_text(piece))
        if isinstance(piece, str)
        else piece.text
        if isinstance(piece, Shell)
        else _plan_text(piece)
        for piece in pieces
    )


def template_of(pieces: Sequence[Piece], what: str) -> str:
    """Return a text as a template of the plan; raises UntranslatableError where only a shell knows a part."""
    if any(isinstance(piece, Shell) for piece in pieces):
        raise UntranslatableError("dynamic", f"{what} is known only to a shell")
    return "".join(_plan_text(piece) for piece in pieces)


def is_plain(line: str) -> bool:
    """Say whether a line is a simple command that leaves nothing behind in its shell."""
    text = re.sub(r"\$\{\{ .*? \}\}", "x", line.strip())
    words = text.split(maxsplit=1)
    return bool(_PLAIN.match(text)) and words[0] not in _OWN


def joined(commands: Sequence[Command], *, strict: bool, first: Sequence[str] = ()) -> str:
    """Return a script in which each command has a shell of its own and the first failure ends all.

    `strict`: the shell of the plan has `-e`, and so has that of each command. `first` are lines before all.
    """
    commands = [each for each in commands if not says_nothing(each.text)]
    lines = list(first)
    if len(commands) == 1 and not commands[0].is_tolerated:
        return "\n".join([*lines, commands[0].text.strip("\n")]) + "\n"
    plain = [is_plain(each.text) for each in commands]
    if not strict and all(plain) and len(commands) > 1:
        lines.append("set -e")
    ends = strict or (all(plain) and len(commands) > 1)  # whether the script ends at a failure by itself
    for at, each in enumerate(commands):
        text = each.text.strip("\n")
        body = text.strip() if plain[at] else _bracketed(text)
        if each.is_tolerated and strict and not plain[at]:
            lines += ["set +e", _bracketed(f"set -e\n{text}"), "set -e"]
        elif each.is_tolerated:
            lines.append(f"{body} || true")
        else:
            lines.append(body if ends or at == len(commands) - 1 else f"{body} || exit")
    return "\n".join(lines) + "\n"


def _bracketed(text: str) -> str:
    if "\n" in text or "#" in text or text.endswith("\\"):
        return f"(\n{text}\n)"
    return f"( {text.strip()} )"


def move(source: Findings, target: Findings) -> None:
    """Report all findings of one conversion in another, which goes on."""
    for each in source.listed:
        place = Node(SCALAR, "", each.line, each.col)
        found = target if each.file == target.file else target.of(each.file)
        if each.kind == "differs":
            found.differs(each.code, each.message, place)
        else:
            (found.refuse if each.kind == "refused" else found.todo)(
                each.code, each.message, place, each.step
            )
