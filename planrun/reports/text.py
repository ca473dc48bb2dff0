"""The run as plain text, for terminals and mails: the lines of the markdown report without the markup."""

from __future__ import annotations

from planrun.reports import escape, facts, gates, versions
from planrun.reports import facts as units
from planrun.reports.escape import line
from planrun.reports.extras import output_rows, rollback_rows
from planrun.reports.facts import ICONS
from planrun.reports.models import totals_line as model_line
from planrun.reports.policies import any_gate, in_force, risk_totals, totals_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

    from planrun.model.progress import StepState
    from planrun.model.state import RunState


def write_text(state: RunState, rundir: str, out: BinaryIO) -> None:
    """Write the run to a binary file; raises OSError when `out` cannot be written."""
    out.write(f"{facts.heading(state)}\n\n".encode())
    labels = facts.labels(state)
    out.writelines(f"{step_line(step, labels=labels)}\n".encode() for step in facts.listed(state))
    out.write(_summary(state).encode())
    if state.plan.outputs and (outputs := output_rows(state)):
        _write_rows(out, ["", *outputs])
    if facts.is_revised(state):
        _write_rows(out, ["", *versions.rows(state)])
    if any_gate(state):
        _write_rows(out, gates.rows(state))
    for step in facts.listed(state):
        if step.status == "failed":
            out.write(_failure(state, rundir, step).encode())
    if (state.undoing or state.cut_short) and (undone := list(rollback_rows(state))):
        _write_rows(out, ["", "Undone", *[f"  {row}" for row in undone]])


def _write_rows(out: BinaryIO, rows: Iterable[str]) -> None:
    out.write("".join([f"{row}\n" for row in rows]).encode())


def step_line(
    step: StepState, icons: dict[str, str] = ICONS, *, labels: Mapping[str, str] | None = None
) -> str:
    """Return `✓ Step 1: title (12.3s, 1.2K tokens)`; a step without a title shows its id only.

    `labels`: what steps are called that take the place of others.
    """
    title = f": {line(step.step.title)}" if step.step.title else ""
    called, added = facts.named(step, labels or {})
    return f"{icons[step.status]} Step {called}{title} ({added}{facts.details(step)})"


def _summary(state: RunState) -> str:
    counts = ", ".join([f"{name.lower()} {count}" for name, count in facts.counts(state)])
    rows = [
        "\nExecution Summary",
        f"  Status:   {facts.outcome(state)} ({_end(state)})",
        f"  Duration: {units.seconds(facts.elapsed(state))}",
        f"  Steps:    {counts}",
        f"  Run:      {line(state.started.run) if state.started else ''}",
        f"  Plan:     {line(state.plan.file)}, digest {state.plan.digest[:12]}",
        f"  Policy:   {in_force(state)}",
        f"  Risk:     {totals_line(risk_totals(state))}",
    ]
    if state.planning is not None:
        rows.append(f"  Model:    {model_line(state)}")
    return "\n".join(rows) + "\n"


def _end(state: RunState) -> str:
    return f"exit code {state.ended.exit_code}" if state.ended else facts.unended(state)


def _failure(state: RunState, rundir: str, step: StepState) -> str:
    """A failure with its place in the plan, its reason and the end of its log."""
    tolerated = " (tolerated)" if state.tolerance(step.step.id) else ""
    rows = [f"\n{step_line(step, labels=facts.labels(state))}{tolerated}"]
    rows.append(f"  {line(state.plan.file_of(step.step))}:{step.step.line}: {facts.sentence(step)}")
    if step.rule:
        rows.append(f"  denied by {line(step.rule)}")
    last = facts.last(step)
    error = last.ended.error if last and last.ended else None
    if error and facts.classified(error):
        rows.append(f"  error class {line(error.get('class', ''))}, rule {line(error.get('rule', ''))}")
    if last and last.ended:
        rows += [
            f"  check failed: {line(str(check.get('name', '')))}: {line(str(check.get('message', '')))}"
            for check in last.ended.checks
            if not check.get("ok")
        ]
    if last and last.started.log:
        rows += [
            "  | " + row for row in escape.tail(rundir, last.started.log).rstrip("\n").split("\n") if row
        ]
    return "\n".join(rows) + "\n"
