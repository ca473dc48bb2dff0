"""The classes of 425 labelled commands."""

from __future__ import annotations

import collections

from planrun.risk.classify import classify
from planrun.risk.levels import rank
from tests.risk.corpus import rows


def test_no_labelled_command_gets_a_lower_class_than_its_own() -> None:
    """None of the labelled commands is under-classified."""
    under = [(wanted, command) for wanted, command in rows() if rank(classify(command).level) < rank(wanted)]
    assert under == []


def test_every_finding_says_why() -> None:
    """Each class comes with a reason of one line."""
    for _, command in rows():
        reason = classify(command).reason
        assert reason
        assert "\n" not in reason


def counted() -> dict[str, tuple[int, int]]:
    """Return for each class how many rows are over-classified, and how many there are."""
    over: collections.Counter[str] = collections.Counter()
    whole: collections.Counter[str] = collections.Counter()
    for wanted, command in rows():
        whole[wanted] += 1
        over[wanted] += rank(classify(command).level) > rank(wanted)
    return {level: (over[level], whole[level]) for level in whole}
