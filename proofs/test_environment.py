"""The short form of the proof that a step sees the credentials that it lists and no other."""

from __future__ import annotations

import sys

import pytest

from proofs import environment

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="macOS promises less: no process is closed to its user"
)


@pytest.mark.shows("R16")
def test_no_step_sees_what_it_does_not_list() -> None:
    """Neither its environment nor planrun's memory, files or core show anything, as root and as an ordinary user."""
    for user in environment.users():
        sights, granted = environment.trial(user)
        assert [str(sight) for sight in sights if sight.hits] == []
        assert granted in ("hidden", "open to root")


@pytest.mark.parametrize("fault", ["no-hardening", "no-filter", "no-masks", "loose-files"])
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault shows in what the burglars bring."""
    sights, _ = environment.trial(environment.users()[-1], fault)
    assert [sight for sight in sights if sight.hits]
