"""A draft as plan text, with everything that was found at its head, and held against the door of any plan."""

from __future__ import annotations

from planrun import __version__
from planrun.llm.writing import entry_text, plan_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.app.converting.draft import DraftPlan, DraftStep
    from planrun.app.converting.findings import Finding, Findings
    from planrun.source.node import Node
    from planrun.source.problems import Problem

MAX_TOLD = 200  # findings in the head of a plan; the verb prints all
_LIMITS = frozenset(("E003", "E012", "E021", "E241", "E280"))


def text_of(draft: DraftPlan, source: str, findings: Sequence[Finding]) -> str:
    """Return the plan as text; `source` is the file it was converted from."""
    keys: dict[str, Any] = {"version": 1, **draft.keys}
    if draft.params:
        keys["params"] = draft.params
    if draft.secrets:
        keys["secrets"] = [
            {"name": name, "required": False} if name in draft.optional else name for name in draft.secrets
        ]
    steps = [f"{entry_text(step.as_keys(), 2, step.notes)}" for step in draft.steps]
    text = plan_text(list(_heading(source, findings)), keys, steps)
    if draft.cleanup:
        cleanup = [entry_text(step.as_keys(), 2, step.notes) for step in draft.cleanup]
        text += "\nfinally:\n" + "\n".join(cleanup)
    return text


def _heading(source: str, findings: Sequence[Finding]) -> Iterator[str]:
    name = source.rpartition("/")[2]
    yield f"Converted from {name} by planrun {__version__}. Read it before you run it."
    if not findings:
        yield "Nothing was found that means something else."
        return
    yield "What means something else than there, what is left to do, and what was given up:"
    for finding in findings[:MAX_TOLD]:
        yield f"  {name}:{finding.line}:{finding.col}: {finding.text}"
    if len(findings) > MAX_TOLD:
        yield f"  and {len(findings) - MAX_TOLD} more"


def valid_text(draft: DraftPlan, found: Findings, root: Node) -> str:
    """Return the plan as text that `validate` accepts; "" where something is refused and not accepted.

    A step that the loader rejects is a finding, and without an action when that is accepted.
    """
    steps = [*draft.steps, *draft.cleanup]
    given_up: set[str] = set()
    while True:
        text = text_of(draft, found.file, found.listed)
        wrong = [problem for problem in _problems(text) if problem.severity == "error"]
        if not wrong:
            return text
        rows = text.split("\n")
        for problem in wrong:
            step = _step_at(rows, problem.line, steps)
            if step is None or step.id in given_up:
                found.refuse(
                    "too-large" if problem.code in _LIMITS else "shape", f"as a plan: {problem.text}", root
                )
                return ""
        for step, message in _of_steps(rows, wrong, steps):
            given_up.add(step.id)
            note = found.refuse(
                "not-valid", f"the step {step.id} as a plan's: {message}", step.node or root, step.id
            )
            if step.condition:
                step.notes.append(f"todo: its condition was: {step.condition}")
                step.condition = ""
            step.make_abstract(note)
        if found.is_refused:
            return ""


def _of_steps(
    rows: Sequence[str], problems: Sequence[Problem], steps: Sequence[DraftStep]
) -> Iterator[tuple[DraftStep, str]]:
    """Yield each step that has a problem, with the text of its first one."""
    seen: set[str] = set()
    for problem in problems:
        step = _step_at(rows, problem.line, steps)
        if step is not None and step.id not in seen:
            seen.add(step.id)
            yield step, problem.text


def _step_at(rows: Sequence[str], line: int, steps: Sequence[DraftStep]) -> DraftStep | None:
    """Return the step in whose text a line stands; None above all steps."""
    start = rows.index("steps:") if "steps:" in rows else len(rows)
    count = sum(1 for row in rows[start:line] if row.startswith("  - id: "))
    return steps[count - 1] if 0 < count <= len(steps) else None


def _problems(text: str) -> Sequence[Problem]:
    from planrun.source.load import check_bytes

    return check_bytes(text.encode(), "plan.yml").problems
