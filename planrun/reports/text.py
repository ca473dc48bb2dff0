"""The run as plain text, for terminals and mails: the lines of the markdown report without the markup."""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.escape import line, tail
from planrun.reports.facts import ICONS, seconds
from planrun.reports.parts import load, parts_of, rows_of
from planrun.reports.policies import in_force, risk_totals, totals_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Part


def write_text(state: RunState, rundir: str, out: BinaryIO) -> None:
    """Write the run to a binary file; raises OSError when `out` cannot be written."""
    out.write(f"{facts.heading(state)}\n\n".encode())
    labels, parts = facts.labels(state), parts_of(state)
    out.writelines(f"{step_line(step, labels=labels)}\n".encode() for step in facts.listed(state))
    out.write(_summary(state, parts).encode())
    _write_rows(out, rows_of(parts, "text_rows", state))
    for step in facts.listed(state):
        if step.status == "failed":
            out.write(_failure(state, rundir, step).encode())
    if state.settled:
        causes = [f"  {row}" for row in load("causes").rows(state)]
        _write_rows(out, ["", "Not completed", *causes] if causes else ())
    _write_rows(out, rows_of(parts, "text_end", state))


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


def _summary(state: RunState, parts: list[Part]) -> str:
    counts = ", ".join([f"{name.lower()} {count}" for name, count in facts.counts(state)])
    lines = [
        "\nExecution Summary",
        f"  Status:   {facts.outcome(state)} ({_end(state)})",
        f"  Duration: {seconds(facts.elapsed(state))}",
        f"  Steps:    {counts}",
        f"  Run:      {line(state.started.run) if state.started else ''}",
        f"  Plan:     {line(state.plan.file)}, digest {state.plan.digest[:12]}",
        f"  Policy:   {in_force(state)}",
        f"  Risk:     {totals_line(risk_totals(state))}",
    ]
    for part in parts:
        if "summary" in part:
            lines += [f"  {name + ':':<9} {value}" for _, name, value in part["summary"](state)]
    return "\n".join(lines) + "\n"


def _end(state: RunState) -> str:
    return f"exit code {state.ended.exit_code}" if state.ended else facts.unended(state)


def _failure(state: RunState, rundir: str, step: StepState) -> str:
    """A failure with its place in the plan, its reason and the end of its log."""
    tolerated = " (tolerated)" if state.tolerance(step.step.id) else ""
    rows = [f"\n{step_line(step, labels=facts.labels(state))}{tolerated}"]
    closing = load("closing")
    rows.append(f"  {closing.place(state, step)}: {closing.reason(step)}")
    rows += [f"  {check}" for check in closing.failed_checks(step)]
    last = facts.last(step)
    if last and last.started.log:
        rows += ["  | " + row for row in tail(rundir, last.started.log).rstrip("\n").split("\n") if row]
    return "\n".join(rows) + "\n"
