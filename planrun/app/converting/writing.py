"""A draft as plan text, with everything that was found at its head, and held against the door of any plan."""

from __future__ import annotations

from planrun import __version__
from planrun.errors import InternalError
from planrun.llm.writing import entry_text, plan_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.app.converting.draft import DraftPlan
    from planrun.app.converting.findings import Finding
    from planrun.source.problems import Problem

MAX_TOLD = 200  # findings in the head of a plan; the verb prints all


def text_of(draft: DraftPlan, source: str, findings: Sequence[Finding]) -> str:
    """Return the plan as text; `source` is the file it was converted from."""
    keys: dict[str, Any] = {"version": 1, **draft.keys}
    if draft.params:
        keys["params"] = draft.params
    if draft.secrets:
        keys["secrets"] = draft.secrets
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


def check(text: str, file: str) -> list[Problem]:
    """Return the errors of a plan that was written, as the door of any plan finds them."""
    from planrun.source.load import check_bytes

    return [problem for problem in check_bytes(text.encode(), file).problems if problem.severity == "error"]


def refuse_bug(problems: Sequence[Problem], text: str) -> None:
    """Raise InternalError for a plan that is none: that is a mistake of the converter, and never the reader's."""
    first = problems[0]
    row = text.split("\n")[first.line - 1].strip()
    raise InternalError(
        f"the plan that was made is not valid and is not written: {first.text} [{first.code}], line {first.line}: {row}"
    )
