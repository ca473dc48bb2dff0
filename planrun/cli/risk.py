r"""`planrun risk`: the class of risk of a command, or of many, without running any of them.

Commands written one a line: `\\`, `\n`, `\t`, `\r`, `\xHH` and `\uHHHH` stand for one character each.
"""

from __future__ import annotations

import sys

import click

from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.errors import InvalidInput
from planrun.risk.classifier import classify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.risk.classifier import Risk


@click.command(short_help="Show the class of risk of a command, and why.")
@click.argument("command", required=False)
@click.option(
    "--lines",
    metavar="FILE",
    help="Classify one escaped command a line, print one class a line; - reads standard input.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def risk(command: str | None, lines: str | None, *, as_json: bool) -> int:
    """Show the class of risk of COMMAND: read-only, low, medium or high. It is not run.

    In FILE a backslash is written \\\\, a line end \\n, a tab \\t, a carriage return \\r, and any other character
    \\xHH or \\uHHHH.

    \b
    Examples:
      planrun risk 'ruff check . && pytest -q'
      planrun risk 'rm -rf *' --json
      planrun risk --lines commands.txt
    """
    if (command is None) == (lines is None):
        raise InvalidInput("give one command, or --lines with a file of them")
    if lines is not None:
        _answer_lines(lines, as_json=as_json)
        return 0
    assessed = classify(command or "")
    if as_json:
        as_data = {
            "level": assessed.level,
            "reason": assessed.reason,
            "effects": list(assessed.effects),
            "understood": assessed.understood,
            "commands": [
                {
                    "words": list(part.words),
                    "cwd": part.cwd,
                    "level": part.level,
                    "reason": part.reason,
                    "effects": list(part.effects),
                }
                for part in assessed.commands
            ],
        }
        say_json(as_data)
    else:
        say(_text(assessed))
    return 0


def _text(assessed: Risk) -> str:
    head = f"{assessed.level}: {printable(assessed.reason)}"
    if len(assessed.commands) < 2:
        return head
    rows = [
        [
            part.level,
            printable(" ".join("…" if word is None else word for word in part.words)),
            printable(part.reason),
        ]
        for part in assessed.commands
    ]
    return f"{head}\n\n" + table(["Class", "Part", "Why"], rows)


def _answer_lines(name: str, *, as_json: bool) -> None:
    """Classify every line of a file; one without a command is high, and stderr names it."""
    answers: list[dict[str, Any]] = []
    try:
        if name == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                data = file.read()
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror}") from None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        try:
            assessed = classify(decoded(line))
            answers.append({"line": number, "level": assessed.level, "reason": assessed.reason})
        except BadEscape as bad:
            write_stderr(f"{printable(name)}:{number}: {printable(str(bad))}\n")
            answers.append({"line": number, "level": "high", "reason": str(bad)})
    if as_json:
        say_json({"lines": answers})
    elif answers:
        say("\n".join(str(answer["level"]) for answer in answers))


_SIGNS = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_DIGITS = {"x": 2, "u": 4}
_HEX = frozenset("0123456789abcdefABCDEF")


class BadEscape(Exception):
    """An invalid escape; the text has its position."""


def decoded(line: str) -> str:
    """Return the command that a line encodes; raises BadEscape."""
    if "\\" not in line:
        return line
    decoded_parts: list[str] = []
    at = 0
    while at < len(line):
        stop = line.find("\\", at)
        if stop < 0:
            decoded_parts.append(line[at:])
            break
        decoded_parts.append(line[at:stop])
        letter = line[stop + 1 : stop + 2]
        if letter in _SIGNS:
            char, at = _SIGNS[letter], stop + 2
        else:
            count = _DIGITS.get(letter, 0)
            digits = line[stop + 2 : stop + 2 + count]
            if not count or len(digits) < count or not _HEX.issuperset(digits):
                raise BadEscape(f"no escape at character {stop + 1}: {line[stop : stop + 2 + count]}")
            char, at = chr(int(digits, 16)), stop + 2 + count
        decoded_parts.append(char)
    return "".join(decoded_parts)
