"""Preconditions of Dagu: a step that finds out whether they hold, and a condition that reads what it found."""

from __future__ import annotations

import re

from planrun.app.converting.dagu.keys import Keys
from planrun.app.converting.dagu.variables import check_references
from planrun.app.converting.draft import DraftStep, literal_text, step_path
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import text_of
from planrun.source.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.reading import Reader
    from planrun.source.node import Node

_KNOWN = frozenset(("condition", "command", "expected", "negate", "name", "test"))


def commands_of(node: Node | None, reader: Reader) -> list[str]:
    """Return a command of the shell for each precondition; raises UntranslatableError."""
    if node is None:
        return []
    items = [node] if node.kind == MAPPING else reader.either(node, "`preconditions`")
    return [_command(item, reader) for item in items]


def _command(item: Node, reader: Reader) -> str:
    if item.kind != MAPPING:
        command, expected, negated = text_of(item), "", False
    else:
        keys = Keys(item, "a precondition", reader)
        keys.refuse_unknown(_KNOWN)
        command, expected = keys.text("condition", "command"), keys.text("expected")
        negated = keys.text("negate").lower() == "true"
    text = command_of(command, expected)
    return f"! {text}" if negated else text


def command_of(command: str, expected: str) -> str:
    """Return a command of the shell that passes where a condition of Dagu holds; raises UntranslatableError."""
    check_references(command)
    if expected:
        command = _compared(command, expected)
    elif command.startswith("`") and command.endswith("`"):
        command = command[1:-1]
    return f"{{ {literal_text(command.strip())}\n}}"


def _compared(command: str, expected: str) -> str:
    """Return a command that passes when a text is the expected one, or matches `re:…`."""
    found = f'"{re.sub(chr(34), chr(92) + chr(34), command)}"'
    if not expected.startswith("re:"):
        return f"[ {found} = {_quoted(expected)} ]"
    if re.search(r"\\[^.\-/+*?()|^$\[\]{}]", expected):
        raise UntranslatableError("precondition", f"`{expected}`: a pattern that grep reads otherwise")
    return f"printf '%s\\n' {found} | grep -Eq -e {_quoted(expected[3:])}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def check_step(name: str, commands: list[str], lines: list[str]) -> DraftStep:
    """Return the step that writes whether all commands pass."""
    asked = " &&\n".join(commands)
    script = "\n".join(
        [
            *lines,
            f"if {asked}",
            "then met=true",
            "else met=false",
            "fi",
            'echo "met=$met" >> "$PLANRUN_OUTPUT"',
        ]
    )
    return DraftStep(name, run=f"{script}\n", outputs={"met": "boolean"})


def met(step: DraftStep) -> str:
    """Return the expression that says that the preconditions hold."""
    return f"{step_path(step.id, 'outputs')}.met"
