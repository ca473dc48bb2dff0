"""The short form of the proof that a disk that refuses ends a run in order: some calls, some sizes, every fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import faults

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 67
"""Of some 600 faults each so manyth: the calls, errors and durations are all among them."""


@pytest.mark.shows("R6")
@pytest.mark.skipif(not faults.can_inject(), reason="strace is not there, or may not trace")
def test_a_call_that_fails_ends_the_run_in_order(tmp_path: Path) -> None:
    """Exit code and message are as documented, nothing is left running, and resume brings the run to its end."""
    bench = faults.Bench(tmp_path.resolve())
    findings = faults.prove(bench, faults.points(bench, EVERY))
    assert any(finding.code == 74 for finding in findings)
    assert [finding for finding in findings if finding.problems] == []


@pytest.mark.shows("R6")
@pytest.mark.parametrize("room", [100, 1300, 2600])
def test_a_write_that_is_cut_short_ends_the_run_in_order(tmp_path: Path, room: int) -> None:
    """Wherever the kernel takes only a part of a line, only whole lines stay."""
    finding = faults.short_write(faults.Bench(tmp_path.resolve()), room)
    assert (finding.code, finding.problems) == (74, ())


@pytest.mark.parametrize("fault", ["no-cut", "goes-on"])
def test_a_planted_fault_of_the_ledger_is_found(tmp_path: Path, fault: str) -> None:
    """Whoever leaves half a line or goes on all the same is found out; the long form plants more."""
    assert faults.prove_fault(tmp_path.resolve(), fault)
