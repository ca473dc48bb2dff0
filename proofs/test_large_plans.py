"""The commands that read plans stay near linear in steps and edges."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def seconds_of(folder: Path, *words: str) -> float:
    """Run planrun in a folder and return the processor time that it used, in seconds; it must end with 0."""
    argv = [sys.executable, "-m", "planrun", *words]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    before = os.getcwd()
    os.chdir(folder)
    try:
        pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=quiet)
    finally:
        os.chdir(before)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


def joined(layers: int, width: int, command: str = "ruff check src") -> str:
    """Return a plan of layers, every step of which waits for the whole layer before."""
    lines = ["version: 1", "steps:"]
    for layer in range(layers):
        needed = ", ".join([f"s{layer - 1}-{at}" for at in range(width)]) if layer else ""
        lines += [f"  - {{id: s{layer}-{at}, run: {command}, depends_on: [{needed}]}}" for at in range(width)]
    return "\n".join(lines) + "\n"


SHAPES = {"layers": joined(6, 100), "chain": joined(5000, 1), "dense": joined(2, 400, "terraform apply")}


@pytest.mark.parametrize("shape", SHAPES)
def test_lint_costs_about_as_much_as_validate(tmp_path: Path, shape: str) -> None:
    """At most twice `validate` and a second: six fully joined layers, a chain of 5,000 steps, 160,000 edges."""
    (tmp_path / "plan.yml").write_text(SHAPES[shape])
    validate, lint = (
        min(seconds_of(tmp_path, verb, "plan.yml") for _ in range(2)) for verb in ("validate", "lint")
    )
    assert lint <= 2 * validate + 1
