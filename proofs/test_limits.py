"""The short form of the proof that limits are where they are said to be, and that the densest files are cheap."""

from __future__ import annotations

import pytest

from proofs import huge, limits
from proofs.bounds import Bound
from proofs.grown import LIMITS


@pytest.mark.shows("R9")
@pytest.mark.parametrize("bound", LIMITS, ids=lambda bound: bound.what.replace(" ", "-"))
def test_a_limit_is_where_it_is_said_to_be(bound: Bound) -> None:
    """What is at the limit is accepted, one more is refused, and the error names the limit."""
    assert limits.look(bound).problem == ""


def test_every_limit_is_tried() -> None:
    """No constant of the code that looks like a limit is without a row, and no row is about one that is gone."""
    assert limits.without_a_row() == []
    tried = {name for bound in LIMITS for name in bound.names} | set(limits.REFUSES_NOTHING)
    assert tried - set(limits.constants()) == set()


@pytest.mark.parametrize("bound", LIMITS[-8:], ids=lambda bound: bound.what.replace(" ", "-"))
def test_the_proof_can_fail(bound: Bound) -> None:
    """A limit that is one higher than it is said to be is found."""
    assert limits.look(bound.moved()).problem


@pytest.mark.parametrize(
    "name", ["lists of nested mappings", "steps of nonsense", "one deep expression", "20,000 properties"]
)
def test_the_densest_files_are_refused(name: str) -> None:
    """What would take hundreds of MiB to read is refused before it does."""
    taken = huge.take(name)
    assert taken.said.startswith(("E021", "E241", "E104")), taken
    assert taken.mebibytes <= huge.MEBIBYTES
