"""Why a step of a run has its status, in sentences: what it waits for, what blocks it, which condition is false."""

from __future__ import annotations

from planrun.reports import gates
from planrun.reports.causes import judgement
from planrun.reports.describe import FAILURE_MEANS
from planrun.reports.facts import sentence, status_of
from planrun.reports.policies import KINDS, asked, grounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState


def reasons(state: RunState, step: StepState, *, going: bool) -> Iterator[str]:
    """Yield in sentences why a step has its status."""
    if step.status == "blocked":
        for root in roots(state, step.step):
            yield f"{root.step.id} {how(root)}, and its failure is not tolerated"
    elif step.status in ("pending", "waiting", "paused"):
        yield from _open_reasons(state, step, going=going)
    elif step.status == "running" and not going:
        yield "the run was killed while it ran; `planrun resume` runs it again"
    elif step.status == "skipped" and step.reason == "condition":
        yield f"its condition is false: {step.step.condition_text}"
    elif step.status == "failed":
        yield sentence(step)
        tolerance = state.tolerance(step.step.id)
        if tolerance:
            yield FAILURE_MEANS[tolerance]
    elif step.status in ("completed", "running"):
        yield (
            "its dependencies are satisfied"
            if step.step.edges
            else "it has no dependencies, so it could start at once"
        )
        if step.step.condition is not None:
            yield f"its condition is true: {step.step.condition_text}"
    else:
        yield step.message or step.reason.replace("_", " ") or step.status


def _open_reasons(state: RunState, step: StepState, *, going: bool) -> Iterator[str]:
    gate, opened = step.after or step.gate, step.asked
    if opened is not None:
        question = grounds(opened) if opened.kind == "approval" else asked(opened)
        yield f"it waits for {KINDS.get(opened.kind, 'an answer')}: {question}"
        return
    if gate and gate.answered:
        yield f"it was {gates.answer(gate.answered)}"
        if step.after:  # only the run itself can continue it
            return
    if step.attempts and step.status == "waiting":
        yield f"attempt {step.attempts[-1].n} failed; the next one starts after a pause"
    if step.status == "paused":
        yield f"attempt {step.attempts[-1].n} failed; the next one starts when the run is resumed"
    for edge in step.step.edges:
        other = state.steps[edge.on]
        if not other.ended:
            yield f"it waits for {edge.on}, which is {other.status}"
    if not going:
        stopped = {"paused": "is paused", "waiting": "waits for an answer"}.get(status_of(state), "stopped")
        yield f"the run {stopped}; to continue: planrun resume"


def roots(state: RunState, step: Step) -> list[StepState]:
    """Return the failed and cancelled steps, however far up, because of which a step is blocked; in file order."""
    failed: set[str] = set()
    seen = {step.id}
    stack = [step]
    while stack:
        for edge in stack.pop().edges:
            other = state.steps[edge.on]
            if edge.on in seen or judgement(state, edge) != "blocked":
                continue
            seen.add(edge.on)
            if other.status == "blocked":
                stack.append(other.step)
            else:
                failed.add(edge.on)
    return [other for name, other in state.steps.items() if name in failed]


def how(step: StepState) -> str:
    """Return the end of a step in a few words: `failed (exit 1)`."""
    if step.reason == "exit" and step.exit_code is not None:
        return f"{step.status} (exit {step.exit_code})"
    return f"{step.status} ({step.reason})" if step.reason else step.status
