"""The class of whole actions: shells that are no bash, and variables that the plan sets."""

from __future__ import annotations

import pytest

from planrun.risk.actions import of_argv, of_script, reads_bash
from planrun.risk.classifier import NO_SETTING, classify


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("bash -euo pipefail -c", True),
        ("sh -eu -c", True),
        ("/bin/bash -c", True),
        ("bash --norc -o errexit -c", True),
        ("bash -l -c", False),
        ("bash -i -c", False),
        ("bash --rcfile x -c", False),
        ("bash -O extglob -c", False),
        ("./bash -c", False),
        ("/tmp/bash -c", False),
        ("/usr/../tmp/bash -c", False),
        ("/bin/../proc/self/cwd/bash -c", False),
        ("python -c", False),
        ("env bash -c", False),
    ],
)
def test_only_a_plain_shell_reads_what_was_classified(shell: str, *, expected: bool) -> None:
    """A login shell, an interactive one, or one that reads other files first, may mean something else by the text."""
    assert reads_bash(shell.split()) is expected
    found = of_script("ls", shell.split(), {}, NO_SETTING)
    assert found.level == ("read-only" if expected else "high")


@pytest.mark.parametrize(
    ("env", "level"),
    [
        ({"CI": "1"}, "read-only"),
        ({"LD_PRELOAD": "./x.so"}, "high"),
        ({"PATH": None}, "high"),
        ({"PYTHONPATH": "src"}, "read-only"),
        ({"PYTHONPATH": None}, "high"),
    ],
)
def test_what_the_plan_sets_counts(env: dict[str, str | None], level: str) -> None:
    """A variable that changes which code runs makes everything high; so does one of a value that is not known."""
    assert of_argv(("ls",), env, NO_SETTING).level == level
    assert of_script("ls", (), env, NO_SETTING).level == level


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("ls -l && pwd", True),
        ("ls > out.txt", False),
        ("ls 2>&1", False),
        ("A=1 ls", False),
        ("A=1", False),
        ("> out.txt", False),
        ("case x in x) ls;; esac", False),
    ],
)
def test_a_text_is_bare_when_its_commands_are_all_there_is(text: str, *, bare: bool) -> None:
    """A rule that allows a command by name must not allow its redirections or its variables."""
    assert classify(text).bare is bare
