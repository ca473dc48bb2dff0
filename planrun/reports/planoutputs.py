"""The outputs of the plan in reports and on the console; ledger.json has the values whole.

Loaded for runs whose plan has any.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.reports.clean import line
from planrun.reports.mdtext import code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.state import RunState

MAX_SHOWN = 1000  # characters of a value
_HEAD = "\n## Outputs\n\n| Output | Value |\n| --- | --- |\n"


def page_section(state: RunState) -> str:
    """Return the markdown table of the outputs; empty when there are none."""
    rows = "".join([f"| {code(name)} | {code(text)} |\n" for name, text in _shown(state).items()])
    return _HEAD + rows if rows else ""


def text_rows(state: RunState) -> list[str]:
    """Return a heading and a line for each output; nothing when there are none."""
    found = _shown(state)
    return ["Outputs", *[f"  {name} = {text}" for name, text in found.items()]] if found else []


def properties(state: RunState) -> dict[str, str]:
    """Return the outputs as properties of a JUnit file."""
    return {f"planrun.output.{name}": text for name, text in _shown(state).items()}


def _shown(state: RunState) -> dict[str, str]:
    """Return each value as text of one line."""
    return {name: _cut(value) for name, value in (state.ended.outputs if state.ended else {}).items()}


def _cut(value: Any) -> str:
    text = line(value) if isinstance(value, str) else dumps(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
