"""What hooks did, in all reports. Loaded for runs whose plan has hooks."""

from __future__ import annotations

from planrun.reports.escape import line
from planrun.reports.facts import seconds
from planrun.reports.sections import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.state import RunState
    from planrun.reports.parts import Part
    from planrun.reports.sections import Section

_SHOWN = 20  # failures that are listed
_ROWS = 200  # of the table


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


def _sections(state: RunState) -> Iterator[Section]:
    ran = sorted(rows_of(state), key=lambda row: bool(row["ok"]))  # those that failed come first
    if ran:
        rows = [
            (row["step"], row["when"], row["name"], seconds(row["duration"]), row["message"] or "ok")
            for row in ran[:_ROWS]
        ]
        more = f"; the first {_ROWS} are listed" if len(ran) > _ROWS else ""
        yield table(
            "Hooks",
            (("Step", "step"), ("When", "text"), ("Hook", "code"), ("Time", "number"), ("Result", "text")),
            rows,
            note=f"{len(ran)} ran, {sum(not row['ok'] for row in ran)} failed{more}.",
        )


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    ledger["hooks"] = list(rows_of(state))


HOOKS: Part = {
    "ending": _ending,
    "sections": _sections,
    "fill_ledger": _fill,
}
