"""The graph of a plan as a Mermaid flowchart, where it is small enough to be drawn and read."""

from __future__ import annotations

from planrun.model.groups import drawn
from planrun.reports.escape import line
from planrun.reports.facts import ICONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.state import RunState

# GitHub's Mermaid stops at 50,000 characters and 500 edges; people stop earlier.
MAX_NODES = 100
MAX_EDGES = 400
MAX_CHARS = 40_000
_LABEL_CHARS = 60
_SAFE = frozenset(" .,-+=/()")
_STYLES = {
    "completed": "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#1f2328",
    "blocked": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "cancelled": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "skipped": "fill:#f6f8fa,stroke:#818b98,color:#59636e",
}


def flowchart(state: RunState) -> str:
    """Return the flowchart, one statement a line; empty when there are no edges or too much to draw."""
    if len(state.steps) > MAX_NODES:
        return ""
    edges = drawn(state.plan.steps)
    if not edges or len(edges) > MAX_EDGES:
        return ""
    numbers = {name: f"s{number}" for number, name in enumerate(state.steps, 1)}
    rows = ["flowchart LR"]
    for name, step in state.steps.items():
        style = f":::{step.status}" if step.status in _STYLES else ""
        rows.append(f'  {numbers[name]}["{ICONS.get(step.status, "")} {label(step.step.label)}"]{style}')
    for before, after, kind in edges:
        arrow = "-->" if kind == "ok" else f"-. {kind} .->"
        rows.append(f"  {numbers[before]} {arrow} {numbers[after]}")
    used = {step.status for step in state.steps.values()}
    rows += [f"  classDef {status} {style}" for status, style in _STYLES.items() if status in used]
    text = "\n".join(rows) + "\n"
    return text if len(text) <= MAX_CHARS else ""


def label(text: str) -> str:
    """Return text for a quoted label: letters, digits and little else as they are, the rest as `#code;`."""
    shown = line(text, _LABEL_CHARS)
    return "".join([char if char.isalnum() or char in _SAFE else f"#{ord(char)};" for char in shown])
