"""What hooks did, in all reports. Loaded for runs whose plan has hooks."""

from __future__ import annotations

from planrun.reports.escape import code, inline, line
from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.state import RunState
    from planrun.reports.parts import Part
    from planrun.reports.tables import Table

_SHOWN = 20  # failures that are listed
_ROWS = 200  # of the table in the HTML report


def rows_of(state: RunState) -> Iterator[dict[str, Any]]:
    """Yield one row for each hook that ran: step, attempt, and what its attempt recorded of it."""
    for name, found in state.steps.items():
        for attempt in found.attempts:
            for row in attempt.ended.hooks if attempt.ended else ():
                yield {"step": name, "attempt": attempt.n, **row}


def _failures(state: RunState) -> list[str]:
    failed = [row for row in rows_of(state) if not row["ok"]]
    found = [
        line(f"the hook {row['when']}_step of {row['step']} failed: {row['name']}: {row['message']}")
        for row in failed[:_SHOWN]
    ]
    return [*found, f"and {len(failed) - _SHOWN} more hooks failed"] if len(failed) > _SHOWN else found


def _ending(state: RunState) -> Iterator[str]:
    yield from [f"  {row}" for row in _failures(state)]


def _text(state: RunState) -> Iterator[str]:
    ran = list(rows_of(state))
    if ran:
        yield ""
        yield f"Hooks: {len(ran)} ran, {sum(not row['ok'] for row in ran)} failed"
        yield from [f"  {row}" for row in _failures(state)]


def _page(state: RunState) -> Iterator[str]:
    ran = list(rows_of(state))
    failed = [row for row in ran if not row["ok"]]
    if ran:
        yield f"\n## Hooks\n\n{len(ran)} ran, {len(failed)} failed"
        yield f"; the first {_SHOWN} are listed.\n" if len(failed) > _SHOWN else ".\n"
    if failed:
        rows = "".join(
            [
                f"| {inline(row['step'])} | {row['when']} | {code(row['name'])} | {inline(row['message'])} |\n"
                for row in failed[:_SHOWN]
            ]
        )
        yield f"\n| Step | When | Hook | |\n| --- | --- | --- | --- |\n{rows}"


def _tables(state: RunState) -> Iterator[Table]:
    from planrun.reports.tables import Table, columns  # only the HTML report needs it

    ran = sorted(rows_of(state), key=lambda row: bool(row["ok"]))  # those that failed come first
    rows = [
        (row["step"], row["when"], row["name"], seconds(row["duration"]), row["message"] or "ok")
        for row in ran[:_ROWS]
    ]
    if rows:
        yield Table(
            heading="Hooks",
            caption="Commands before and after attempts",
            columns=columns(
                ("Step", "step"), ("When", "text"), ("Hook", "code"), ("Time", "number"), ("Result", "text")
            ),
            rows=tuple(rows),
            note=f"{len(ran) - _ROWS} more are in ledger.json." if len(ran) > _ROWS else "",
        )


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    ledger["hooks"] = list(rows_of(state))


HOOKS: Part = {
    "ending": _ending,
    "text_end": _text,
    "page_end": _page,
    "tables": _tables,
    "fill_ledger": _fill,
}
