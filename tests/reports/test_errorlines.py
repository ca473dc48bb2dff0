"""Which line of an output says why a program failed: real outputs of tools, in `tests/data/outputs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planrun.reports.errorlines import CHARS, attempt_failure, choose, error_line, failure
from planrun.reports.escape import plain
from tests.reports.runs import Story, step

OUTPUTS = Path(__file__).parents[1] / "data" / "outputs"
# What the tools printed when they failed; only the paths were changed.
REAL = {
    "bash-not-found": "bash: line 1: foobarbaz: command not found",
    "cargo-build": "error[E0308]: mismatched types",
    "cargo-test": "thread 'adds' (13300) panicked at src/main.rs:4:5: assertion `left == right` failed",
    "curl": "curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server",
    "gcc": "main.c:3:18: error: \u2018count\u2019 undeclared (first use in this function)",
    "gcc-link": "link.c:(.text+0x5): undefined reference to `helper'",
    "git": "fatal: unable to access 'https://localhost:1/x.git/': Failed to connect to localhost port 1 after 0 ms: "
    "Couldn't connect to server",
    "git-push": "fatal: not a git repository (or any of the parent directories): .git",
    "make": "main.c:3:18: error: \u2018count\u2019 undeclared (first use in this function)",
    "mypy": 'shop.py:2: error: Incompatible types in assignment (expression has type "str", variable has type "int")  '
    "[assignment]",
    "npm-build": "Error: the price is negative",
    "npm-missing": 'npm error Missing script: "nope"',
    "npm-test": "not ok 1 - adds",
    "pytest": "FAILED test_shop.py::test_total - assert 4 == 3",
    "pytest-collect": "ModuleNotFoundError: No module named 'nothing_here'",
    "pytest-q": "FAILED test_shop.py::test_total - assert 4 == 3",
    "python": "ValueError: the price is negative",
    "rm": "rm: cannot remove 'nofile': No such file or directory",
    "ruff": "I001 [*] Import block is un-sorted or un-formatted",
    "ruff-concise": "shop.py:1:1: I001 [*] Import block is un-sorted or un-formatted",
    "sh-not-found": "sh: 1: foobarbaz: not found",
    "tsc": "shop.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    "tsc-pretty": "shop.ts:1:7 - error TS2322: Type 'string' is not assignable to type 'number'.",
    "unittest": "AssertionError: 1 != 2",
}


@pytest.mark.parametrize("tool", sorted(path.stem for path in OUTPUTS.glob("*.txt")))
def test_real_outputs(tool: str) -> None:
    """The line that a person would quote."""
    assert choose(plain((OUTPUTS / f"{tool}.txt").read_text("utf-8"))) == REAL[tool]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", ""),
        ("\n\n", ""),
        ("deploying\nthe page says no\n", "the page says no"),
        (
            "--- FAIL: TestAdd (0.00s)\n    add_test.go:6: got 3, want 2\nFAIL\nexit status 1\n",
            "add_test.go:6: got 3, want 2",
        ),
        ("# shop\n./main.go:5:2: undefined: total\n", "./main.go:5:2: undefined: total"),
        (
            "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n",
            "panic: runtime error: index out of range",
        ),
        ("2026-01-31T09:00:00.123Z ERROR: no such table\nbye\n", "ERROR: no such table"),
        ("[09:00:00] fatal: no\n", "fatal: no"),
        ("2026-01-31 09:00:00,123 Error: no\n", "Error: no"),
        ("\x1b[31mError:\x1b[0m in red\n", "Error: in red"),
        ("lint: 0 errors\nthe disk is too small\n", "the disk is too small"),
        ("::error file=a.py,line=3::the name is wrong\nsee above\n", "error: the name is wrong"),
        (
            "│ Error: Reference to undeclared input variable\n│\n╵\n",
            "Error: Reference to undeclared input variable",
        ),
        ("WARNING: old\nwarning: an error may follow\nstopped\n", "stopped"),
        ("Error: " + "x" * 500, "Error: " + "x" * (CHARS - 8) + "…"),
    ],
)
def test_small_outputs(output: str, said: str) -> None:
    """Times and colours are left out, warnings and counts of nothing are no errors, and a line is cut."""
    assert choose(plain(output)) == said


def test_stderr_counts_more_than_stdout() -> None:
    """Of lines that only look a little like errors one on stderr is better; the name of a place is better than that."""
    assert choose("upload failed once\ndone\nno space\n", "no space\n") == "no space"
    assert choose("a.c:1:1: error: no\nstopped\n", "stopped\n") == "a.c:1:1: error: no"


def test_the_end_of_a_long_output(tmp_path: Path) -> None:
    """Only the end is read, and stderr is found where the ledger says that it stands."""
    log = b"Error: long ago\n" + b"fine\n" * 100_000 + b"no space\n" + b"fine\n"
    start = len(log) - len(b"no space\nfine\n")
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=log, stderr=(start, start + 9))
    assert error_line(str(tmp_path), story.state.steps["a"].attempts[0]) == "no space"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"exit_code": 1}, "Error: no"),
        ({"exit_code": 137}, "exit code 137: killed by SIGKILL"),
        (
            {
                "reason": "timeout",
                "error": {"class": "transient", "rule": "", "message": "timed out after 5m"},
            },
            "timed out after 5m",
        ),
        ({"reason": "verify", "error": {"class": "logic", "rule": "", "message": "no file"}}, "no file"),
    ],
)
def test_who_knows_better(tmp_path: Path, end: dict[str, Any], said: str) -> None:
    """A program that ended by itself says why; why it was stopped, or what is wrong with its result, planrun knows."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"Error: no\nbye\n", **{"error": {"class": "unknown"}, **end})
    found = story.state.steps["a"]
    assert failure(str(tmp_path), found) == attempt_failure(str(tmp_path), found.attempts[0]) == said


def test_no_output(tmp_path: Path) -> None:
    """A step that printed nothing has its exit code in words."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", exit_code=127, error={"class": "fatal"})
    assert failure(str(tmp_path), story.state.steps["a"]) == "exit code 127: command not found"


@pytest.mark.parametrize(
    ("script", "run"),
    [
        ("#!/bin/bash\r\necho hi\r\n", "./x.sh"),
        ("#!/bin/bash\r\necho hi\r\n", "exec: [./x.sh]"),
        ("#!/usr/bin/env bash\r\necho hi\r\n", "./x.sh"),
        ("for i in 1; do\r\necho hi\r\ndone\r\n", "bash x.sh"),
        ("echo hi\r\n\r\n", "bash x.sh"),
    ],
)
def test_a_script_with_windows_line_ends(script: str, run: str, tmp_path: Path) -> None:
    """The console says what is wrong with the file, whatever the shell prints of it."""
    (tmp_path / "x.sh").write_bytes(script.encode())
    (tmp_path / "x.sh").chmod(0o755)
    action = run if run.startswith("exec:") else f"run: {run}"
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps: [{{id: a, {action}}}]\n")
    command = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the file has Windows line ends" in done.stdout + done.stderr
