"""The classes of all labelled commands."""

from __future__ import annotations

import os
import subprocess
import sys

from planrun.risk.classifier import classify
from planrun.risk.levels import rank
from tests.risk.corpus import FILE, rows


def test_no_labelled_command_gets_a_lower_class_than_its_own() -> None:
    """None of the labelled commands is under-classified."""
    under = [(wanted, command) for wanted, command in rows() if rank(classify(command).level) < rank(wanted)]
    assert under == []


def test_what_attackers_tried_has_its_own_class() -> None:
    """Neither more nor less: the harmless commands beside them stay harmless."""
    found = [(wanted, command) for wanted, command in rows(FILE.with_name("attacks.tsv"))]
    assert [row for row in found if classify(row[1]).level != row[0]] == []


def test_every_finding_says_why() -> None:
    """Each class comes with a reason of one line."""
    for _, command in rows():
        reason = classify(command).reason
        assert reason
        assert "\n" not in reason


_ONE_CLASS = """
from planrun.risk.classifier import classify
print(vars(classify("./run.sh --output=/etc/passwd")) | {"commands": ()})
"""


def test_a_class_is_the_same_in_every_process() -> None:
    """Where several things stand against a command, the same one is named whatever the order of Python's sets."""
    told = {
        subprocess.check_output(
            [sys.executable, "-c", _ONE_CLASS], env={**os.environ, "PYTHONHASHSEED": str(seed)}
        )
        for seed in range(1, 9)
    }
    assert len(told) == 1


def test_no_more_commands_get_a_higher_class_than_their_own() -> None:
    """What is over-classified costs approvals: these two rows are all."""
    over = {command for wanted, command in rows() if rank(classify(command).level) > rank(wanted)}
    assert len(over) == 2
    assert all("\n" in command for command in over), over
