"""A difference as text for people: rows with a sign each, complete however long it becomes."""

from __future__ import annotations

from planrun.app.comparing import phrases
from planrun.app.comparing.texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.comparing.approvals import Approvals
    from planrun.app.comparing.records import Change, Difference, StepChange
    from planrun.app.comparing.report import Report
    from planrun.app.revisions import Side

    # What a row is, which decides about its colour, and its text.
    Row = tuple[str, str]

_HEADS = {
    "added": ("+", "is new"),
    "removed": ("-", "is gone"),
    "renamed": ("=", "was"),
    "changed": ("~", ""),
}


def rows(report: Report) -> Iterator[Row]:
    """Yield the rows of a report: kind (`+`, `-`, `~`, `=`, `head`, `warning` or empty) and text."""
    found = report.difference
    yield "head", f"{_side(report.old)} → {_side(report.new)}"
    yield "", phrases.summary(report)
    if highest := phrases.highest_changed(found):
        yield "", f"highest risk of what changed: {highest}; of the plan: {_plan_risk(report)}"
    yield from [("warning", f"the policy allows more: {reason}") for reason in found.laxer]
    texts = Texts()
    for title, changes in (("Plan", found.plan), ("Policy", found.policy)):
        if changes:
            yield "", ""
            yield "head", title
            for change in changes:
                yield from _change(change, texts, "  ")
    yield from _of_steps(found, texts)
    if report.scripts:
        yield "", ""
        yield "head", "Scripts"
        yield from [("~", f"  ~ {phrases.script(script)}") for script in report.scripts]
    if report.approvals:
        yield from _approvals(report.approvals)


def _of_steps(found: Difference, texts: Texts) -> Iterator[Row]:
    common = phrases.once_for_many(found)
    if common:
        yield "", ""
        yield "head", "The same in several steps"
        for change, ids in common:
            yield from _change(change, texts, "  ")
            yield "", f"    in {len(ids)} steps: {', '.join(ids)}"
    told = phrases.one_by_one(found, common)
    if told:
        yield "", ""
        yield "head", "Steps"
        for step, own in told:
            yield from _step(step, own, texts)


def _side(side: Side) -> str:
    return f"{side.name} ({side.plan.digest[:12] if side.plan else 'no plan'})"


def _plan_risk(report: Report) -> str:
    return phrases.plan_risk(report.old.plan, report.new.plan)


def _step(step: StepChange, own: list[Change], texts: Texts) -> Iterator[Row]:
    sign, word = _HEADS[step.kind]
    title = f": {step.step.title}" if step.step.title else ""
    was = f" {step.old.id}" if step.kind == "renamed" and step.old else ""
    told = ", ".join(filter(None, (f"{word}{was}", phrases.place(step))))
    yield sign, f"  {sign} {step.step.id}{title}{f'  ({told})' if told else ''}"
    if risk := phrases.risk(step):
        yield "warning" if step.riskier else "", f"      risk: {risk}"
    for change in own:
        yield from _change(change, texts, "      ")


def _change(change: Change, texts: Texts, indent: str) -> Iterator[Row]:
    for sign, line in change_rows(change, texts):
        yield sign.strip(), f"{indent}{sign} {line}" if sign else f"{indent}{line}"


def change_rows(change: Change, texts: Texts) -> Iterator[Row]:
    """Yield the rows of one change: sign (`+`, `-`, `~`; in a text a blank or `…`; empty for a headline) and text."""
    note = phrases.note(change)
    told = f"  ({note})" if note else ""
    if phrases.hidden(change):
        yield change.sign, f"{change.key}: {phrases.HIDDEN}"
    elif change.path == ("section",) and change.sign == "~":
        yield "~", f"moved from {change.old} to {change.new}"
    elif phrases.is_text(change):
        yield "", f"{change.key}:{told}"
        yield from [(sign, f"  {line}") for sign, line in _lines(change, texts)]
    else:
        yield change.sign, f"{change.key}: {_values(change)}{told}"


def _values(change: Change) -> str:
    if change.sign == "~":
        return f"{phrases.value(change.old)} → {phrases.value(change.new)}"
    return phrases.value(change.new if change.sign == "+" else change.old)


def _lines(change: Change, texts: Texts) -> Iterator[Row]:
    old, new = (phrases.text_of(side) for side in (change.old, change.new))
    if change.sign != "~":
        yield from [(change.sign, line) for line in (old or new).rstrip("\n").split("\n")]
        return
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    yield from texts.rows(old, new)


def _approvals(found: Approvals) -> Iterator[Row]:
    yield "", ""
    yield "", f"Policy in force: {found.policy}"
    if found.needed or found.whole:
        yield "head", "Approvals needed"
    if found.whole:
        yield "warning", "  the plan as a whole, before anything starts"
    for gate in found.needed:
        yield "-" if gate.answer == "deny" else "warning", f"  {gate.step}: {phrases.gate(gate)}"
    if found.command:
        yield "", f"  $ {found.command}"
        if found.digest:
            yield "", f"  approves {found.digest[:12]}: {phrases.approves(found)}"
    if found.unknown:
        yield "warning", f"  what would be approved is not known: {found.unknown}"
    yield from [("warning", f"  {text}") for text in found.ignored]
    if found.lifted:
        yield "head", "Asked for or denied until now, and not any more"
        yield from [("warning", f"  {gate.step}: {phrases.gate(gate)}") for gate in found.lifted]
