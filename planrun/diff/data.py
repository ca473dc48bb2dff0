"""A difference as JSON data: what `diff --json` prints."""

from __future__ import annotations

from planrun.diff import phrases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.diff.approvals import Approvals, Gate
    from planrun.diff.differences import Change, StepChange
    from planrun.diff.report import Report
    from planrun.model.plan import Step
    from planrun.plan.revisions import Side

_CHANGE = {"+": "added", "-": "removed", "~": "changed"}


def as_data(report: Report) -> dict[str, Any]:
    """Return a report as JSON data; values as the plan language writes them, hidden ones as null."""
    found = report.difference
    return {
        "same": not report.differs,
        "summary": phrases.summary(report),
        "old": _side(report.old),
        "new": _side(report.new),
        "counts": phrases.counts(found),
        "risk": {
            "old": _risk_of(report.old) or None,
            "new": _risk_of(report.new) or None,
            "highest_changed": phrases.highest_changed(found) or None,
        },
        "plan": _changes(found.plan),
        "policy": {"changes": _changes(found.policy), "allows_more": list(found.laxer)},
        "steps": [_step(step) for step in found.steps],
        "scripts": [{**vars(script), "steps": list(script.steps)} for script in report.scripts],
        "approvals": _approvals(report.approvals) if report.approvals else None,
    }


def _approvals(found: Approvals) -> dict[str, Any]:
    return {
        "policy": found.policy,
        "whole_plan": found.whole,
        "needed": [_gate(gate) for gate in found.needed],
        "lifted": [_gate(gate) for gate in found.lifted],
        "command": found.command or None,
        "digest": found.digest or None,
        "missing_params": list(found.missing),
        "asked": list(found.asked),
        "unknown": found.unknown or None,
        "ignored": list(found.ignored),
        "uncovered": list(found.uncovered),
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {**vars(gate), "before": gate.before or None, "approved": gate.approved or None}


def _side(side: Side) -> dict[str, Any]:
    plan = side.plan
    return {
        "name": side.name,
        "commit": side.commit or None,
        "exists": plan is not None,
        "plan": plan.name if plan else None,
        "digest": plan.digest if plan else None,
        "steps": len(plan.steps) if plan else 0,
    }


def _risk_of(side: Side) -> str:
    return phrases.highest(side.plan.steps) if side.plan else ""


def _changes(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [_change(change) for change in changes]


def _change(change: Change) -> dict[str, Any]:
    hidden = phrases.hidden(change)
    return {
        "key": change.key,
        "path": list(change.path),
        "change": _CHANGE[change.sign],
        "old": None if hidden else change.old,
        "new": None if hidden else change.new,
        "hidden": hidden,
        "note": phrases.note(change),
    }


def _step(step: StepChange) -> dict[str, Any]:
    return {
        "id": step.step.id,
        "change": step.kind,
        "was": step.old.id if step.old else None,
        "title": step.step.title,
        "section": step.step.section,
        "after": step.after,
        "risk": {"old": _risk(step.old), "new": _risk(step.new), "changed": step.riskier},
        "changes": _changes(step.changes),
    }


def _risk(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {"class": step.risk, "reason": step.risk_reason, "effects": list(step.effects)}
