"""The merged verdict of shards as text for the console, and as markdown for `report.md` and a step summary."""

from __future__ import annotations

from planrun.reports.escape import code, fitting, inline, line
from planrun.reports.facts import ICONS, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.shards.merging import Merged

_BYTES = 200_000  # of one table
_SHOWN = ("failed", "blocked", "cancelled")


def sentence(found: Merged) -> str:
    """Return the verdict in one line."""
    counts = found.ledger["summary"]
    parts = [f"{counts[name]} {name}" for name in ("completed", *_SHOWN, "skipped") if counts[name]]
    number = sum([part.shard is not None for part in found.parts])
    shards = f"{number} shard{'' if number == 1 else 's'}"
    text = f"{found.verdict}: {shards}, {counts['total']} steps: {', '.join(parts) or 'none'}"
    if not found.missing:
        return text
    numbers = ", ".join([str(number) for number in found.missing])
    return f"{text}; missing: shard{'s' if len(found.missing) > 1 else ''} {numbers}"


def rows(found: Merged) -> Iterator[str]:
    """Yield the lines of the console: the verdict, each shard, and the steps that failed."""
    yield f"{ICONS.get(found.verdict, ICONS['waiting'])} {sentence(found)}"
    for part in found.parts:
        took = seconds(part.data["duration_s"]) if part.data["duration_s"] else "no end"
        yield f"  shard {part.label}: {line(part.became)} in {took}, run {line(part.data['run_id'])}"
    for step in _bad(found):
        yield f"  {ICONS[step['status']]} {line(step['id'])}: {step['status']} ({line(step['reason'])})"
    for name in found.left_out:
        yield f"  {ICONS['failed']} {line(name)}: left out by every run; if that is meant: --skip {line(name)}"
    for name in not_run(found):
        yield f"  {ICONS['skipped']} {line(name)}: left for after all shards, and not run"


def not_run(found: Merged) -> list[str]:
    """Return the steps that no shard runs and that no run after them has."""
    shard = found.parts[0].shard or {"after": []}
    after = set(shard["after"])
    skipped = [step for step in found.ledger["steps"] if step["reason"] == "not_selected"]
    return [step["id"] for step in skipped if step["id"] in after]


def _bad(found: Merged) -> list[dict[str, Any]]:
    return [step for step in found.ledger["steps"] if step["status"] in _SHOWN and not step["members"]]


def markdown(found: Merged) -> str:
    """Return the page: the verdict, the shards, the steps that failed, and every step."""
    name = inline(found.ledger["plan"]["name"])
    page = f"# {ICONS.get(found.verdict, ICONS['waiting'])} {name}: {inline(sentence(found))}\n\n"
    page += "| Shard | Verdict | Exit code | Duration | Run |\n| --- | --- | --- | --- | --- |\n"
    for part in found.parts:
        took = seconds(part.data["duration_s"]) if part.data["duration_s"] else ""
        ended = part.data["exit_code"]
        cells = (
            part.label,
            inline(part.became),
            "" if ended is None else str(ended),
            took,
            code(part.data["run_id"]),
        )
        page += f"| {' | '.join(cells)} |\n"
    if bad := _bad(found):
        lines = [
            f"- {ICONS[step['status']]} {code(step['id'])}: {step['status']} ({inline(step['reason'])})\n"
            for step in bad
        ]
        page += f"\n## What failed\n\n{fitting(lines, _BYTES, '- and {} more' + chr(10))}"
    for title, left in (
        ("Left out by every run", found.left_out),
        ("Left for after all shards", not_run(found)),
    ):
        if left:
            lines = [f"- {code(name)}\n" for name in left]
            page += f"\n## {title}\n\n{fitting(lines, _BYTES, '- and {} more' + chr(10))}"
    lines = [_table_row(step) for step in found.ledger["steps"]]
    table = fitting(lines, _BYTES, "\n{} more steps are in ledger.json.\n")
    return f"{page}\n## Steps\n\n| Step | Status | Attempts | Duration |\n| --- | --- | --- | --- |\n{table}"


def _table_row(step: dict[str, Any]) -> str:
    spent = sum([attempt.get("duration_s") or 0 for attempt in step["attempts"]])
    took = seconds(spent) if step["attempts"] else ""
    icon = ICONS.get(step["status"], "")
    return f"| {code(step['id'])} | {icon} {inline(step['status'])} | {len(step['attempts'])} | {took} |\n"
