"""What reports say of sandboxes: what confined each step, and loudly that a machine has none."""

from __future__ import annotations

from planrun.model.sandbox import described
from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.sections import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Part
    from planrun.reports.sections import Section


def sandbox_of(step: StepState) -> dict[str, Any]:
    """Return the sandbox of the last attempt of a step as it was recorded; empty for none."""
    return step.attempts[-1].started.sandbox if step.attempts else {}


def _warnings(state: RunState) -> Iterator[str]:
    found = facts.option(state, "sandbox")
    if isinstance(found, dict) and found.get("backend") == "none":
        yield f"steps run WITHOUT a sandbox, since `require` is false: {line(str(found.get('missing', '')))}"


def _sections(state: RunState) -> Iterator[Section]:
    confined = [step for step in facts.listed(state) if sandbox_of(step)]
    if confined:
        rows = [(step.step.id, described(sandbox_of(step))) for step in confined]
        yield table("Sandboxes", (("Step", "step"), ("Sandbox", "text")), rows)


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    confined = [step for step in state.steps.values() if sandbox_of(step)]
    ledger["sandboxes"] = {step.step.id: sandbox_of(step) for step in confined}


SANDBOXES: Part = {"warnings": _warnings, "sections": _sections, "fill_ledger": _fill}
