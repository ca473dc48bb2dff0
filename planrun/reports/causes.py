"""Why steps did not run, grouped: the failed step that blocked them, the condition that was false."""

from __future__ import annotations

from planrun.model.lifecycle import judge
from planrun.reports import facts
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.plan import Edge
    from planrun.model.progress import StepState
    from planrun.model.state import RunState


_ROOTS = 3  # that are named


def judgement(state: RunState, edge: Edge) -> str:
    """Return what an edge makes of its step: satisfied, blocked, tolerated, upstream, or open before the end."""
    other = state.steps[edge.on]
    if not other.ended:
        return "open"
    return judge(edge.kind, other.status, other.reason, state.tolerance(edge.on))


def rows(state: RunState) -> Iterator[str]:
    """Yield a clean line for each cause with its steps: `Blocked by test: publish, notify`."""
    causes: dict[tuple[str, str], list[str]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for step in state.counted():
        if step.step.section != "rollback" and (cause := _cause(state, step, known)):
            after = f" (after {facts.seconds(facts.duration(step))})" if cause[0] == "Cancelled" else ""
            causes.setdefault(cause, []).append(facts.name(step) + after)
    for kind in ("Blocked", "Skipped", "Cancelled", "Not started", "Not selected"):
        for (of, why), names in causes.items():
            if of == kind:
                yield _row(kind, why, names)


def _row(kind: str, why: str, names: list[str]) -> str:
    if kind == "Blocked":
        return f"Blocked{f' by {line(why)}' if why else ''}: {facts.names(names)}"
    if kind == "Not selected":  # the user named the others
        return f"Not selected: {len(names)} step{'' if len(names) == 1 else 's'}"
    return f"{kind}: {facts.names(names)}{f' ({why})' if why else ''}"


def _cause(state: RunState, step: StepState, known: dict[str, tuple[str, ...]]) -> tuple[str, str] | None:
    """Return of what kind the cause is, and the cause; None for a step that ran to its end or is to come."""
    if step.status == "blocked":
        roots = _roots(state, step.step.id, known)
        more = " and others" if len(roots) > _ROOTS else ""
        return "Blocked", ", ".join(roots[:_ROOTS]) + more
    if step.reason == "not_selected":
        return "Not selected", ""
    if step.status == "skipped":
        return "Skipped", _why_skipped(step)
    if step.status == "cancelled":
        return ("Cancelled", "") if step.tries else ("Not started", "")
    return None


def _why_skipped(step: StepState) -> str:
    if step.reason == "condition":
        return f"condition false: {line(step.step.condition_text, 200)}"
    return facts.sentence(step)


def _roots(state: RunState, name: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return a few of the steps, however far up, that failed or were cancelled and so block a step.

    `known`: what was found for other steps, so that each is looked at once.
    """
    stack, begun = [name], set()
    while stack:
        each = stack[-1]
        step = state.steps[each]
        if each in known:
            stack.pop()
        elif step.status != "blocked":
            known[each] = (each,)
        else:
            above = [edge.on for edge in step.step.edges if judgement(state, edge) == "blocked"]
            above = above or [step.step.group][: bool(step.step.group)]
            missing = [other for other in above if other not in known and other not in begun]
            begun.add(each)
            if missing:
                stack += missing
            else:
                found = [root for other in above for root in known.get(other, ())]
                known[each] = tuple(dict.fromkeys(found))[: _ROOTS + 1]
    return known[name]
