"""A difference as markdown for one comment that is kept up to date, or a step summary: what matters first, and bounded.

A comment of GitHub has fewer than 65,536 characters. What does not fit is counted, not shown. All that comes from a
plan stands in code spans, in fenced blocks, or escaped.
"""

from __future__ import annotations

from planrun.diff import phrases
from planrun.diff.text import Texts, change_rows
from planrun.model.hidden import escaped
from planrun.reports.escape import code, fence, fitting, inline, line, plain, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planrun.diff.approvals import Approvals, Gate
    from planrun.diff.differences import Change, StepChange
    from planrun.diff.report import Report
    from planrun.plan.revisions import Side

BUDGET = 60_000  # bytes, so that it holds in characters, too, with space for what a bot adds
_TABLE = "| Step | What changed | Risk |\n| --- | --- | --- |\n"
_SHARES = {"table": 20_000, "gates": 8_000}  # bytes that one part may take at most
_MORE = "- and {} more\n"
_ROWS = 80  # of one step
_WIDTH = 400  # characters of a row
_BEFORE = 60  # characters that are shown before the first one that differs, in rows that are too long
_MARKS = {"~": "!", "…": "#"}  # what colours these rows in a block of the language `diff`


def markdown(report: Report) -> str:
    """Return a report as markdown, below 65,536 characters, with a hidden line by which a bot finds its comment."""
    found = report.difference
    name = report.new.path if report.new.plan else report.old.path
    kept = "".join([char if char.isascii() and (char.isalnum() or char in "._/") else "_" for char in name])
    parts = [f"<!-- planrun-diff {kept[:200]} -->\n", f"### Plan {code(line(name))}\n\n", _head(report)]
    if not report.differs:
        parts.append(f"\n**{phrases.SAME[0].upper()}{phrases.SAME[1:]}.**\n")
    if found.laxer:
        reasons = fitting([f"> - {inline(reason)}\n" for reason in found.laxer], 4_000, "> - and {} more\n")
        parts.append(f"\n> **The policy allows more:**\n>\n{reasons}")
    if report.approvals:
        parts += _approvals(report.approvals)
    common = phrases.once_for_many(found)
    single = phrases.one_by_one(found, common)
    if single:
        table = fitting(
            [_table_row(*row) for row in single], _SHARES["table"], "\n{} more steps are not listed.\n"
        )
        parts.append(f"\n{_TABLE}{table}")
    if report.scripts:
        rows = [f"- {inline(phrases.script(script))}\n" for script in report.scripts]
        parts.append(f"\n**Scripts that the plan runs**\n\n{fitting(rows, 4_000, '- and {} more')}\n")
    parts += _details(report, single, common, BUDGET - size("".join(parts)))
    return "".join(parts)


def _head(report: Report) -> str:
    found = report.difference
    text = f"{_digest(report.old)} → {_digest(report.new)} · {inline(phrases.summary(report))}\n"
    highest = phrases.highest_changed(found)
    if highest:
        risk = phrases.plan_risk(report.old.plan, report.new.plan)
        text += f"\nHighest risk of the changes: **{highest}** · of the plan: {risk}\n"
    return text


def _digest(side: Side) -> str:
    return code(side.plan.digest[:12]) if side.plan else "no plan"


def _approvals(found: Approvals) -> list[str]:
    parts = [f"\nPolicy in force: {inline(found.policy)}\n"]
    whole = ["- the plan as a whole, before anything starts\n"] * found.whole
    if needed := [*whole, *map(_gate, found.needed)]:
        parts.append(f"\n**Approvals needed**\n\n{fitting(needed, _SHARES['gates'], _MORE)}")
    if found.command:
        cut = found.command if len(found.command) < 4_000 else f"{found.command[:4_000]} …"
        parts.append(f"\n{fence(plain(escaped(cut)), 'sh')}")
        if found.digest:
            parts.append(f"\nThis approves {code(found.digest[:12])}: {phrases.approves(found)}.\n")
    if found.unknown:
        parts.append(f"\nUnknown what would be approved: {inline(found.unknown, 600)}\n")
    if found.ignored:
        notes = fitting([f"> {inline(text)}\n" for text in found.ignored], 2_000, "> and {} more\n")
        parts.append(f"\n{notes}")
    if found.uncovered:
        rows = [f"- {inline(text)}\n" for text in found.uncovered]
        parts.append(f"\n**Not part of the digest**\n\n{fitting(rows, _SHARES['gates'], _MORE)}")
    if lifted := [_gate(gate) for gate in found.lifted]:
        title = "No longer asked for or denied"
        parts.append(f"\n**{title}**\n\n{fitting(lifted, _SHARES['gates'], _MORE)}")
    return parts


def _gate(gate: Gate) -> str:
    return f"- {code(gate.step)}: {inline(phrases.gate(gate), 600)}\n"


def _table_row(step: StepChange, own: Sequence[Change]) -> str:
    title = f" {inline(step.step.title, 100)}" if step.step.title else ""
    if step.kind == "changed":
        cell = ", ".join(
            dict.fromkeys(
                [
                    f"moved to {change.new}" if change.path == ("section",) else code(change.path[0], 60)
                    for change in own
                ]
            )
        )
    else:
        was = step.old.id if step.old else ""
        cell = {"added": "**new**", "removed": "**gone**", "renamed": f"was {code(was)}"}[step.kind]
    cell = ", ".join(filter(None, (cell, inline(phrases.place(step)))))
    return f"| {code(step.step.id)}{title} | {cell} | {_risk(step)} |\n"


def _risk(step: StepChange) -> str:
    risk = inline(phrases.risk(step), 200)
    return f"**{risk}**" if step.riskier else risk


def _details(
    report: Report,
    steps: Sequence[tuple[StepChange, list[Change]]],
    common: Sequence[tuple[Change, list[str]]],
    budget: int,
) -> list[str]:
    """Return a folded block for the head, for what many steps have in common, and for each step, as far as they fit."""
    found = report.difference
    head = [*found.plan, *found.policy]
    blocks: list[tuple[str, list[Change], list[str]]] = [("plan and policy", head, [])] if head else []
    blocks += [(f"the same in {len(ids)} steps", [change], ids) for change, ids in common]
    blocks += [(f"{step.kind}: {step.step.id}", own, []) for step, own in steps if own]
    texts = Texts()
    parts = ["\n"]
    left = budget - 200
    for number, (title, changes, ids) in enumerate(blocks):
        # Blocks beyond the budget are not built: a plan may have thousands of steps.
        block = _block(title, changes, texts, ids) if left > 500 else ""
        left -= size(block)
        if not block or left < 0:
            rest = len(blocks) - number
            parts.append(f"\n{rest} more are not shown; `planrun diff` prints all of them.\n")
            break
        parts.append(block)
    return parts


def _block(title: str, changes: Iterable[Change], texts: Texts, ids: Sequence[str]) -> str:
    rows = [row for change in changes for row in change_rows(change, texts)]
    lines = [f"{_MARKS.get(sign, sign) or ' '} {text}" for sign, text in _narrow(rows[:_ROWS])]
    if len(rows) > _ROWS:
        lines.append(f"# and {len(rows) - _ROWS} more rows")
    body = fence(plain("\n".join([escaped(row) for row in lines])), "diff")
    where = f"In {inline(phrases.names(ids, 40), 2_000)}\n\n" if ids else ""
    return f"\n<details><summary>{inline(title)}</summary>\n\n{where}{body}\n</details>\n"


def _narrow(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return rows cut to their width; two that follow each other are cut so that their difference is seen."""
    found = []
    for number, (sign, text) in enumerate(rows):
        other = _partner(rows, number)
        start = 0
        if len(text) > _WIDTH and other is not None:
            same = next((at for at, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
            start = max(0, same - _BEFORE)
        found.append((sign, _cut(text, start)))
    return found


def _partner(rows: list[tuple[str, str]], number: int) -> str | None:
    sign = rows[number][0]
    at = {"-": number + 1, "+": number - 1}.get(sign, -1)
    if 0 <= at < len(rows) and {sign, rows[at][0]} == {"+", "-"}:
        return rows[at][1]
    return None


def _cut(text: str, start: int) -> str:
    if len(text) <= _WIDTH:
        return text
    shown = text[start : start + _WIDTH]
    rest = len(text) - start - len(shown)
    before = f"[{start} characters] … " if start else ""
    return f"{before}{shown}{f' … [{rest} characters more]' if rest > 0 else ''}"
