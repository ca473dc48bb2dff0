"""The short form of the proof that every fault of a Messages API ends a call of a model in a defined way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs.callcuts import CUTS, cut_off
from proofs.callrows import FEATURES, SILENCE, Row
from proofs.calls import FAULTS, Stage, play_all
from proofs.calls import ROWS as ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW = ("429 with retry-after", "429 with a date", "529 with retry-after")
"""Rows that wait for a second or more; the long form has them."""
ROWS = {
    f"{kind}: {row.name}": row
    for kind, rows in ALL.items()
    for row in rows
    if kind not in ("features", "silence") and row.name not in SLOW
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One server and one process for all rows."""
    with Stage() as opened:
        yield opened


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_service_does_has_one_end(stage: Stage, row: Row) -> None:
    """Ending, rule, attempts and message are those of the row, and what it cost is counted."""
    assert stage.play(row) == []


def test_what_a_service_does_not_know_is_left_out_and_told(stage: Stage) -> None:
    """A schema that is too large is asked for in the text; the rule of the answer says so."""
    assert stage.play(FEATURES[0]) == []


def test_what_a_call_cost_that_is_stopped_is_counted(stage: Stage) -> None:
    """A call that planrun stops in the middle of an answer ends so, and its tokens are told as an estimate."""
    assert cut_off(stage, *CUTS["stopped"]) == []


def test_silence_ends_with_the_time_of_the_call(stage: Stage) -> None:
    """A service that sends signs of life without end is left when the time is over, and counted."""
    assert stage.play(SILENCE[2], is_silent=True) == []


@pytest.mark.parametrize("fault", ["cut answers are whole"])
def test_the_proof_can_fail(fault: str) -> None:
    """A fault that is planted into the process is found by the rows that are to show it."""
    assert play_all(fault, [FAULTS[fault][0]])[1] != []
