"""Rows about whole runs, shown by the command line: moves of the lifecycle, counts that add up, the cost of a step."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from planrun.model.lifecycle import PLAN_MOVES

if TYPE_CHECKING:
    from pathlib import Path

ENDS = ("completed", "failed", "skipped", "blocked", "cancelled")


def planrun(folder: Path, *words: str) -> int:
    """Run planrun in a folder and return its exit code."""
    argv = [sys.executable, "-m", "planrun", *words]
    env = {**os.environ, "PLANRUN_JOBS": "2"}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False).returncode


def ledger(folder: Path) -> dict[str, Any]:
    """Return the report of the last run."""
    found: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return found


@pytest.mark.shows("GP-09")
def test_runs_go_through_legal_moves_only(tmp_path: Path) -> None:
    """A run that completes, one that fails and is retried, and one that waits for an answer and goes on."""
    plans = {
        "good": "- {id: a, run: 'true'}",
        "bad": "- {id: a, run: test -e there}",
        "asks": "- {id: a, ask: {question: Go on?}}",
    }
    seen: dict[str, list[str]] = {}
    for name, steps in plans.items():
        (tmp_path / f"{name}.yml").write_text(f"version: 1\nsteps:\n  {steps}\n")
        code = planrun(tmp_path, "execute", f"{name}.yml")
        assert code == {"good": 0, "bad": 1, "asks": 5}[name]
        if name == "bad":
            (tmp_path / "there").touch()
            assert planrun(tmp_path, "retry", "last", "a") == 0
        if name == "asks":
            assert planrun(tmp_path, "resume", "last", "--decide", "a=yes") == 0
        seen[name] = [move["status"] for move in ledger(tmp_path)["lifecycle"]]
    assert seen["good"] == ["draft", "awaiting_approval", "approved", "executing", "completed"]
    assert seen["bad"][4:] == ["failed", "approved", "executing", "completed"]
    assert "paused" in seen["asks"]
    for moves in seen.values():
        assert moves[0] == "draft"
        assert moves[-1] == "completed"
        assert [(old, new) for old, new in pairwise(moves) if new not in PLAN_MOVES[old]] == []


def drawn(chance: random.Random) -> str:
    """Return a plan of random steps: some fail, some are tolerated or skipped, some have instances."""
    rows = ["version: 1", f"schedule: {chance.choice(['dag', 'levels', 'sequential'])}", "steps:"]
    for number in range(chance.randint(1, 7)):
        needs = [f"s{other}" for other in range(number) if chance.random() < 0.4]
        row = f"id: s{number}, run: exit {chance.choice([0, 0, 1])}, depends_on: [{', '.join(needs)}]"
        row += f", on_failure: {chance.choice(['block', 'continue', 'skip', 'abort'])}"
        row += chance.choice(["", "", ", condition: run.id == ''", ", foreach: [a, b]", ", foreach: []"])
        rows.append(f"  - {{{row}}}")
    return "\n".join([*rows, "finally:", "  - {id: last, run: 'true'}"]) + "\n"


@pytest.mark.shows("N-67")
@pytest.mark.parametrize("seed", range(8))
def test_the_counts_of_every_run_add_up(seed: int, tmp_path: Path) -> None:
    """However a random plan ends, the parts of the summary are its total, and JUnit has as many cases."""
    (tmp_path / "plan.yml").write_text(drawn(random.Random(seed)))
    assert planrun(tmp_path, "execute", "plan.yml") in (0, 1)
    summary = ledger(tmp_path)["summary"]
    assert sum(summary[end] for end in ENDS) == summary["total"]
    suites = ET.parse(tmp_path / "planrun-out" / "junit.xml").getroot()
    cases = suites.findall(".//testcase")
    assert int(suites.get("tests", "")) == len(cases)
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    assert int(suites.get("failures", "")) + int(suites.get("errors", "")) == len(failed)


@pytest.mark.shows("D-45")
def test_a_step_costs_less_than_100_ms(tmp_path: Path) -> None:
    """300 steps that do nothing, one after the other: processor time of planrun and its children for each step."""
    steps = "".join(f"  - {{id: s{number}, run: 'true'}}\n" for number in range(300))
    (tmp_path / "plan.yml").write_text(f"version: 1\nschedule: sequential\nsteps:\n{steps}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert planrun(tmp_path, "execute", "plan.yml", "-q") == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent / 300 < 0.1
