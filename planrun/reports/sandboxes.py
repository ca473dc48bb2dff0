"""What reports say of sandboxes: what confined each step, and loudly that a machine has none."""

from __future__ import annotations

from planrun.model.sandbox import described
from planrun.reports import facts
from planrun.reports.escape import inline, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Part


def sandbox_of(step: StepState) -> dict[str, Any]:
    """Return the sandbox of the last attempt of a step as it was recorded; empty for none."""
    return step.attempts[-1].started.sandbox if step.attempts else {}


def _warnings(state: RunState) -> Iterator[str]:
    found = facts.option(state, "sandbox")
    if isinstance(found, dict) and found.get("backend") == "none":
        yield f"steps run WITHOUT a sandbox, since `require` is false: {line(str(found.get('missing', '')))}"


def _rows(state: RunState) -> Iterator[str]:
    confined = [step for step in facts.listed(state) if sandbox_of(step)]
    if confined:
        yield ""
        yield "Sandboxes"
        yield from [f"  {line(step.step.id)}: {line(described(sandbox_of(step)))}" for step in confined]


def _page(state: RunState) -> Iterator[str]:
    confined = [step for step in facts.listed(state) if sandbox_of(step)]
    if confined:
        rows = "".join(
            [f"| {inline(step.step.id)} | {inline(described(sandbox_of(step)))} |\n" for step in confined]
        )
        yield f"\n## Sandboxes\n\n| Step | Sandbox |\n| --- | --- |\n{rows}"


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    confined = [step for step in state.steps.values() if sandbox_of(step)]
    ledger["sandboxes"] = {step.step.id: sandbox_of(step) for step in confined}


SANDBOXES: Part = {"warnings": _warnings, "text_end": _rows, "page_end": _page, "fill_ledger": _fill}
