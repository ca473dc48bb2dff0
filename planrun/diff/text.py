"""Two texts line by line, as a unified diff with little around each change, in bounded time.

A difference as text for people: rows with a sign each, complete however long it becomes.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from planrun.diff import phrases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    # "…" replaces lines that are the same in both; its text states their number.
    LineRow = tuple[Literal["+", "-", " ", "…"], str]

    from planrun.diff.approvals import Approvals
    from planrun.diff.differences import Change, StepChange
    from planrun.diff.report import Report
    from planrun.plan.revisions import Side

    # The kind of a row, which decides its colour, and its text.
    Row = tuple[str, str]

CONTEXT = 2  # lines before and after a change
_LARGEST = 500 * 500  # pairs of lines of one text in which common ones are searched
_ALL = 2_000_000  # likewise, of all texts of one comparison


class Texts:
    """Compares texts; what one comparison may cost is shared by all of them.

    Lines in the middle of a very large change are shown as all removed and all added.
    """

    def __init__(self) -> None:
        self._left = _ALL

    def rows(self, old: str, new: str) -> list[LineRow]:
        """Return the lines that are gone and new, with the lines around them."""
        before, after = old.split("\n"), new.split("\n")
        start = _common(before, after)
        # What is counted from the start is not counted from the end again.
        end = _common(before[start:][::-1], after[start:][::-1])
        gone, added = before[start : len(before) - end], after[start : len(after) - end]
        rows: list[LineRow] = [(" ", line) for line in before[:start]]
        rows += self._middle(gone, added)
        rows += [(" ", line) for line in before[len(before) - end :]]
        return list(_shortened(rows))

    def _middle(self, gone: list[str], added: list[str]) -> Iterator[LineRow]:
        cost = len(gone) * len(added)
        if not gone or not added or cost > min(_LARGEST, self._left):
            yield from [("-", line) for line in gone]
            yield from [("+", line) for line in added]
            return
        self._left -= cost
        for what, i, j, k, m in SequenceMatcher(None, gone, added).get_opcodes():
            if what == "equal":
                yield from [(" ", line) for line in gone[i:j]]
                continue
            yield from [("-", line) for line in gone[i:j]]
            yield from [("+", line) for line in added[k:m]]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the lines that both begin with."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _shortened(rows: list[LineRow]) -> Iterator[LineRow]:
    """Leave out lines that are far from every change; where only one would be, it stays."""
    near: set[int] = set()
    for number, (sign, _line) in enumerate(rows):
        if sign != " ":
            near.update(range(number - CONTEXT, number + CONTEXT + 1))
    left_out = 0
    for number, row in enumerate(rows):
        alone = number - 1 in near and number + 1 in near and not left_out
        if number in near or alone:
            if left_out:
                yield ("…", _counted(left_out))
                left_out = 0
            yield row
        else:
            left_out += 1
    if left_out:
        yield ("…", _counted(left_out))


def _counted(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'} the same"


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
        risk = phrases.plan_risk(report.old.plan, report.new.plan)
        yield "", f"highest risk of the changes: {highest}; of the plan: {risk}"
    yield from [("warning", f"the policy allows more: {reason}") for reason in found.laxer]
    texts = Texts()
    for title, changes in (("Plan", found.plan), ("Policy", found.policy)):
        if changes:
            yield "", ""
            yield "head", title
            for change in changes:
                yield from _change(change, texts, "  ")
    common = phrases.once_for_many(found)
    if common:
        yield "", ""
        yield "head", "The same change in several steps"
        for change, ids in common:
            yield from _change(change, texts, "  ")
            yield "", f"    in {len(ids)} steps: {', '.join(ids)}"
    single = phrases.one_by_one(found, common)
    if single:
        yield "", ""
        yield "head", "Steps"
        for step, own in single:
            yield from _step(step, own, texts)
    if report.scripts:
        yield "", ""
        yield "head", "Scripts"
        yield from [("~", f"  ~ {phrases.script(script)}") for script in report.scripts]
    if report.approvals:
        yield from _approvals(report.approvals)


def _side(side: Side) -> str:
    return f"{side.name} ({side.plan.digest[:12] if side.plan else 'no plan'})"


def _step(step: StepChange, own: list[Change], texts: Texts) -> Iterator[Row]:
    sign, word = _HEADS[step.kind]
    title = f": {step.step.title}" if step.step.title else ""
    was = f" {step.old.id}" if step.kind == "renamed" and step.old else ""
    notes = ", ".join(filter(None, (f"{word}{was}", phrases.place(step))))
    yield sign, f"  {sign} {step.step.id}{title}{f'  ({notes})' if notes else ''}"
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
    suffix = f"  ({note})" if note else ""
    if phrases.hidden(change):
        yield change.sign, f"{change.key}: {phrases.HIDDEN}"
    elif change.path == ("section",) and change.sign == "~":
        yield "~", f"moved from {change.old} to {change.new}"
    elif phrases.is_text(change):
        yield "", f"{change.key}:{suffix}"
        yield from [(sign, f"  {line}") for sign, line in _lines(change, texts)]
    else:
        yield change.sign, f"{change.key}: {_values(change)}{suffix}"


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
        yield "warning", f"  unknown what would be approved: {found.unknown}"
    yield from [("warning", f"  {text}") for text in found.ignored]
    if found.uncovered:
        yield "head", "Not part of the digest"
        yield from [("warning", f"  {text}") for text in found.uncovered]
    if found.lifted:
        yield "head", "No longer asked for or denied"
        yield from [("warning", f"  {gate.step}: {phrases.gate(gate)}") for gate in found.lifted]
