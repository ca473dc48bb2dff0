"""The rounds by which a run went on by itself, in all reports. Loaded for runs that had one."""

from __future__ import annotations

from planrun.reports.escape import line
from planrun.reports.facts import seconds
from planrun.reports.sections import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.events import RoundStarted
    from planrun.model.state import RunState
    from planrun.reports.parts import Part
    from planrun.reports.sections import Section

_SHOWN = 20  # steps that are named of one round


def described(event: RoundStarted) -> str:
    """Return one round as a line: `round 1 of 2 in 1m 0s: test failed for passing reasons`."""
    names = ", ".join(event.steps[:_SHOWN])
    more = f" and {len(event.steps) - _SHOWN} more" if len(event.steps) > _SHOWN else ""
    reason = "a passing reason" if len(event.steps) == 1 else "passing reasons"
    when = f" in {seconds(event.delay)}" if event.delay else ""
    return line(f"round {event.n} of {event.most}{when}: {names}{more} failed for {reason}")


def event_line(event: RoundStarted, _state: RunState) -> tuple[str, str]:
    """Return the icon and the line for the console."""
    return "waiting", described(event)


def _sections(state: RunState) -> Iterator[Section]:
    rows = [(event.at, described(event)) for event in state.rounds]
    yield table("Rounds", (("Time", "text"), ("Round", "text")), rows)


def as_data(state: RunState) -> list[dict[str, Any]]:
    """Return the rounds as JSON data."""
    return [
        {
            "n": event.n,
            "most": event.most,
            "at": event.at,
            "delay_s": event.delay,
            "failed": list(event.steps),
            "rerun": list(event.rerun),
        }
        for event in state.rounds
    ]


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    ledger["rounds"] = as_data(state)


def _properties(state: RunState) -> dict[str, str]:
    return {"planrun.rounds": str(len(state.rounds))}


ROUNDS: Part = {
    "event_line": event_line,
    "sections": _sections,
    "fill_ledger": _fill,
    "properties": _properties,
}
