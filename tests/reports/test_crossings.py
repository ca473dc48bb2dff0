"""The line that shows how much of a budget is used."""

from __future__ import annotations

from planrun.model.events import BudgetCrossed
from planrun.reports.models import crossing_line


def test_seconds_are_shown_in_tenths() -> None:
    """A clock has more digits than people want to read; amounts of tokens and dollars keep theirs."""
    late = BudgetCrossed(at="", scope="planning", resource="time", level=100, used=40.333, limit=40.0)
    assert crossing_line(late) == "the seconds of the planning are used up: 40.3 of 40"
    paid = BudgetCrossed(at="", scope="plan", resource="usd", level=80, used=0.8125, limit=1.0)
    assert crossing_line(paid) == "80% of the US dollars of the run are used: 0.8125 of 1"
