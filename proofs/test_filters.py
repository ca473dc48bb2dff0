"""The short form of the proof that programs of sed, awk, jq and yq which are read-only do nothing but print."""

from __future__ import annotations

import pytest

from proofs import filters

PROGRAMS = filters.real()


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_read_only_does_nothing_but_print(name: str, seed: int) -> None:
    """No file is made, and no secret is printed, by any program of that name on this machine."""
    if not PROGRAMS[name]:
        pytest.skip(f"{name} is not on this machine")
    found = filters.tried(500, seed, {name: PROGRAMS[name]})
    assert found.wrong == []
    assert found.run > (30 if name != "yq" else 5)


@pytest.mark.parametrize("fault", filters.FAULTS)
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault shows."""
    name = filters.FAULTS[fault][0]
    if not PROGRAMS[name]:
        pytest.skip(f"{name} is not on this machine")
    assert filters.is_caught(fault, PROGRAMS)
