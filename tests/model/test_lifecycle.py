"""Which moves are legal: all pairs of states, and nothing else."""

from __future__ import annotations

import itertools

import pytest

from planrun.errors import InternalError
from planrun.model.lifecycle import PLAN_MOVES, STEP_MOVES, move_plan, move_step

PLAN = ("draft", "awaiting_approval", "approved", "executing", "paused", "completed", "failed", "cancelled")
LEGAL = {
    ("draft", "awaiting_approval"),
    ("awaiting_approval", "approved"),
    ("approved", "executing"),
    ("executing", "paused"),
    ("paused", "executing"),
    ("executing", "completed"),
    ("executing", "failed"),
    ("failed", "approved"),
    *(
        (state, "cancelled")
        for state in ("draft", "awaiting_approval", "approved", "executing", "paused", "failed")
    ),
}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(PLAN, PLAN)))
def test_all_64_plan_transitions(old: str, new: str) -> None:
    """A legal transition happens; an illegal one is a bug that says both states."""
    if (old, new) in LEGAL:
        assert move_plan(old, new) == new
    else:
        with pytest.raises(InternalError, match=f"{old} to {new}"):
            move_plan(old, new)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(STEP_MOVES, STEP_MOVES)))
def test_all_step_transitions(old: str, new: str) -> None:
    """Ended steps stay ended, nothing goes back to pending, and only what was started can complete a wait."""
    ended = {"completed", "failed", "skipped", "blocked", "cancelled"}
    legal = old not in ended and new not in ("pending", old)
    legal = legal and not (old in ("waiting", "paused") and new == "blocked")
    legal = legal and not (old == "pending" and new == "paused")
    legal = legal and not (old == "paused" and new in ("completed", "waiting"))
    if legal:
        assert move_step("x", old, new) == new
    else:
        with pytest.raises(InternalError, match=f"{old} to {new}"):
            move_step("x", old, new)


def test_the_tables_know_every_state() -> None:
    """No state can be reached that has no row of its own."""
    for table in (PLAN_MOVES, STEP_MOVES):
        assert set().union(*table.values()) <= set(table)
