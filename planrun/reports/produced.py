"""The files that steps made, for the markdown report: each with its size and hash, as the record of the step has it.

Loaded for runs in which a step names files that it makes.
"""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.mdtext import code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState

MAX_OF_STEP = 50  # files of one step that the report lists; the ledger has more
MADE = ("created", "changed", "unchanged", "restored")
_HEAD = "\n## Produced Files\n\n| Step | File | Bytes | SHA-256 | |\n| --- | --- | --- | --- | --- |\n"


def page_section(state: RunState) -> str:
    """Return the table of all files that steps made; empty when there are none."""
    rows = "".join([_of_step(step) for step in facts.told(state)])
    return _HEAD + rows if rows else ""


def _of_step(step: StepState) -> str:
    made = list(_made(step))
    name = code(step.step.id)
    rows = [
        f"| {name} | {code(row['path'])} | {row['bytes']} | {code(row['sha256'])} | {row['op']} |\n"
        for row in made[:MAX_OF_STEP]
        if "path" in row
    ]
    left = sum([row.get("count", 1) for row in made]) - len(rows)
    return "".join(rows) + (f"| {name} | {left} more, see ledger.json | | | |\n" if left else "")


def _made(step: StepState) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the last attempt about what it made, those of a failed attempt included."""
    if not step.step.makes:
        return
    attempt = facts.last(step)
    ended = attempt.ended if attempt else None
    for row in step.restored.files if step.restored else ended.files if ended else ():
        if row["op"] in (*MADE, "more") and "key" not in row:
            yield row
