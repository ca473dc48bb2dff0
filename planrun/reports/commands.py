"""The command of a step as the plan has it, shown when it starts; only runs with --verbose load this."""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.escape import line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.progress import StepState

_MOST = 10  # lines of a script
_ROW = 300  # characters of a line


def commands_of(step: StepState) -> list[str]:
    """Return clean lines for a console: `test $ pytest -q`, and a line below for each more of its script."""
    if not step.step.action.is_command:
        return []
    rows = [row for row in plain(step.step.action.written()).strip("\n").split("\n") if row.strip()]
    label = facts.name(step)
    found = [
        f"{label if not at else ' ' * len(label)} $ {line(row, _ROW)}" for at, row in enumerate(rows[:_MOST])
    ]
    more = len(rows) - _MOST
    return found + ([f"{' ' * len(label)} … {more} more line{'s' if more > 1 else ''}"] if more > 0 else [])
