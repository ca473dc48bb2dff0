"""Whole files of other tools and the plans that they became, held against plans that were read.

The first line of a source names what is given up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.convert.convert import Order, convert
from planrun.plan.load import check_bytes

if TYPE_CHECKING:
    from tests.golden import Golden

FILES = Path(__file__).parent / "files"
PLANS = Path(__file__).parent / "plans"
NAMES = sorted(path.name for path in FILES.glob("*.yml"))


def accepted(path: Path) -> tuple[str, ...]:
    """Return what the first line of a source says is given up."""
    return tuple(path.read_text("utf-8").partition("\n")[0].removeprefix("# accept:").split())


@pytest.mark.parametrize("name", NAMES)
def test_a_file_becomes_the_plan_that_was_read(name: str, golden: Golden) -> None:
    """The plan with all its comments is, byte for byte, the one that somebody read."""
    source = FILES / name
    found = convert(Order(file=str(source), accepted=accepted(source)))
    assert found.text, [finding.text for finding in found.findings if finding.kind == "refused"]
    golden(PLANS / name, found.text)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_writes_no_plan(name: str) -> None:
    """Without what is given up the same file is refused, unless nothing of it has to be."""
    source = FILES / name
    found = convert(Order(file=str(source)))
    assert found.is_refused == bool(accepted(source))
    refused = {finding.code for finding in found.findings if finding.kind == "refused"}
    assert refused == set(accepted(source))


def test_the_same_file_gives_the_same_plan() -> None:
    """Nothing in a plan is left to chance."""
    source = FILES / NAMES[1]
    order = Order(file=str(source), accepted=accepted(source))
    assert convert(order) == convert(order)


def test_no_plan_is_left_that_is_no_longer_made() -> None:
    """Every plan belongs to a source."""
    assert sorted(path.name for path in PLANS.glob("*.yml")) == NAMES
    assert all(check_bytes(path.read_bytes(), path.name).problems is not None for path in PLANS.glob("*.yml"))
