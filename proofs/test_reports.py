"""The short form of the proof that reports and consoles bear any text."""

from __future__ import annotations

import sys

import pytest

from proofs import reports


@pytest.mark.shows("R10")
def test_told_runs_leave_calm_reports(seed: int) -> None:
    """Whatever stands in any field, every report is well-formed and every console says only what planrun says."""
    assert reports.in_stories(30, seed) == []


@pytest.mark.shows("R10")
def test_real_steps_leave_calm_reports(seed: int) -> None:
    """Hostile bytes from real steps do nothing under any CI system that planrun knows."""
    assert [
        problem
        for number in range(len(reports.VENDORS))
        for problem in reports.in_a_real_run(seed * len(reports.VENDORS) + number)
    ] == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads the largest resident set from /proc")
def test_a_long_line_takes_no_memory() -> None:
    """Fifty megabytes without a line end are in the log whole, and in reports and memory in small parts."""
    assert reports.in_a_long_line(50_000_000) == []


@pytest.mark.parametrize("fault", [name for name in reports.FAULTS if name not in ("", reports.LARGE)])
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault is found in one of a few dozen runs; that of large runs is planted in the long form."""
    assert reports.is_caught(fault, 80)
