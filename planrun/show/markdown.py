"""A plan as markdown for its approvers: what it does, its maximum duration, its risks, what it destroys.

It is meant for the summary of a CI job and for comments: all text of the plan is escaped or in code spans.
"""

from __future__ import annotations

from planrun.approval.rules import LEVELS
from planrun.reports.describe import edge, longest_path, worst
from planrun.reports.escape import code, fitting, inline, line, size
from planrun.values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.approval.preview import DigestPreview, PolicyPreview, StepPreview
    from planrun.model.plan import Plan, Step

BUDGET = 900 * 1024  # bytes; GitHub shows nothing of a step summary above 1 MiB
ICONS = {"read-only": "⚪", "low": "🟢", "medium": "🟡", "high": "🔴"}
_DESTROYS = "💥"
_ANSWERS = {"ask": "✋", "deny": "⛔"}
_STOPPED = 100_000  # bytes for steps that are denied or need an approval
_TABLE = "\n| | Step | Action | Depends on | At most | Risk |\n| --- | --- | --- | --- | ---: | --- |\n"


def markdown(plan: Plan, digests: DigestPreview, ahead: PolicyPreview) -> str:
    """Return the plan as markdown: headline, totals, the stopped steps, a row for each step; at most BUDGET bytes."""
    steps = [*ahead.steps(), *ahead.undoing()]
    known = plan.but(steps=tuple([one.step for one in steps]))
    head = "".join([*_head(known, digests), f"- policy: {inline(ahead.policy, 1000)}\n", *_stopped(steps)])
    rows = [
        _row(one.step, written.action.written())
        for one, written in zip(steps, plan.everything(), strict=True)
    ]
    rest = "\n{} more steps are not shown; `planrun show` lists all of them.\n"
    return head + _TABLE + fitting(rows, BUDGET - size(head) - 500, rest)


def _head(plan: Plan, digests: DigestPreview) -> Iterator[str]:
    yield f"### 📋 {inline(plan.title or plan.name)}\n\n"
    for text in (plan.description, plan.goal and f"Goal: {plan.goal}"):
        if text:
            yield f"{inline(text, 1000)}\n\n"
    missing = f" without the required {code(', '.join(digests.missing))}" if digests.missing else ""
    yield f"- {code(line(plan.file))}, digest {code(plan.digest[:12])}{missing}\n"
    yield f"- {' · '.join(_totals(plan))}\n"
    destructive = [step.id for step in plan.steps if "destroys" in step.effects]
    if destructive:
        more = f" and {len(destructive) - 20} more" if len(destructive) > 20 else ""
        yield f"- {_DESTROYS} {len(destructive)} destructive: {', '.join(map(code, destructive[:20]))}{more}\n"
    if plan.secrets:
        yield f"- 🔑 secrets: {', '.join([_secret(name, plan) for name in plan.secrets])}\n"


def _totals(plan: Plan) -> Iterator[str]:
    count = sum(step.kind != "group" and step.section != "rollback" for step in plan.steps)
    yield f"{count} step{'' if count == 1 else 's'}"
    path, seconds = longest_path(plan)
    limit = plan.limits.deadline
    if path:
        bound = min(seconds, limit) if limit else seconds
        yield f"⏱ at most {duration(round(bound))}" + (" (deadline)" if limit and limit < seconds else "")
    counts = {
        level: sum(step.risk == level and step.kind != "group" for step in plan.steps)
        for level in reversed(LEVELS[1:])
    }
    yield ", ".join([f"{ICONS[level]} {count} {level}" for level, count in counts.items() if count])


def _stopped(steps: list[StepPreview]) -> Iterator[str]:
    """The steps that are denied, or need an approval or an answer, and why."""
    rows = []
    for one in steps:
        answer = one.decision.answer
        if answer != "allow":
            verdict = "is denied" if answer == "deny" else "needs an approval"
            rows.append(
                f"- {_ANSWERS[answer]} {code(one.step.id)} {verdict}: {inline(one.decision.reason, 500)}\n"
            )
        elif one.step.action.asks:
            rows.append(f"- {_ANSWERS['ask']} {code(one.step.id)} asks a question\n")
    if rows:
        yield f"\n**Needs an approval or an answer, or is denied**\n\n{fitting(rows, _STOPPED, '- and {} more')}"


def _secret(name: str, plan: Plan) -> str:
    readers = [step.id for step in plan.steps if name in step.secrets]
    listed = ", ".join(readers[:10]) + (f" and {len(readers) - 10} more" if len(readers) > 10 else "")
    return f"{code(name)} ({inline(listed) or 'no step lists it'})"


def _row(step: Step, deed: str) -> str:
    name = code(step.id) + (f" {inline(step.title, 100)}" if step.title else "")
    cells = (
        ICONS[step.risk] + (_DESTROYS if "destroys" in step.effects else ""),
        name + (f" ({step.section})" if step.section != "steps" else ""),
        _deed(step, deed),
        inline(", ".join(map(edge, step.edges)), 200) or "-",
        duration(round(worst(step))) if step.action.timed else "-",
        inline(f"{step.risk}: {step.risk_reason}" if step.risk_reason else step.risk, 200),
    )
    return f"| {' | '.join(cells)} |\n"


def _more(rows: int) -> str:
    return f" … {rows} more line{'' if rows == 1 else 's'}" if rows else ""


def _deed(step: Step, deed: str) -> str:
    """Return the first line of what a step does, and whether there is more, or a condition."""
    rows = deed.strip().split("\n")
    if step.kind == "abstract":
        text = "no action yet"
    elif step.action.summary:
        text = step.action.summary
    else:
        text = code(rows[0], 80) + (_more(len(rows) - 1))
    return text + (f", if {code(step.condition_text, 80)}" if step.condition is not None else "")
