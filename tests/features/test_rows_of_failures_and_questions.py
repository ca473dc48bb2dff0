"""Rows of the acceptance table about failures and questions, each shown by starting planrun."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command


def steps_of(planrun: Command, plan: str, code: int) -> dict[str, dict[str, object]]:
    """Execute a plan and return the steps of its ledger.json by id."""
    (planrun.folder / "plan.yml").write_text(f"version: 1\n{plan}")
    assert planrun("execute", "plan.yml").returncode == code
    document = json.loads((planrun.folder / "planrun-out/ledger.json").read_text())
    return {step["id"]: step for step in document["steps"]}


@pytest.mark.shows("V-19")
def test_a_failed_step_names_what_it_blocks_and_can_be_retried(planrun: Command) -> None:
    """`status --json`: a failed step is retryable and lists what it blocks; `retry` runs both; a denied step is not."""
    plan = (
        "policy: {rules: [{deny: {step: no}}]}\n"
        "steps:\n"
        "  - {id: a, run: test -e there}\n"
        "  - {id: b, depends_on: [a], run: 'true'}\n"
        "  - {id: c, depends_on: [b], run: 'true'}\n"
        "  - {id: no, run: 'true'}\n"
    )
    assert {name: step["status"] for name, step in steps_of(planrun, plan, 3).items()} == {
        "a": "failed",
        "b": "blocked",
        "c": "blocked",
        "no": "failed",
    }
    rows = {row["id"]: row for row in json.loads(planrun("status", "last", "--json").stdout)["steps"]}
    assert {name: (row["retryable"], row["blocks"]) for name, row in rows.items()} == {
        "a": (True, ["b", "c"]),
        "b": (False, []),
        "c": (False, []),
        "no": (False, []),
    }
    (planrun.folder / "there").touch()
    planrun("retry", "last", "a")
    rows = {row["id"]: row for row in json.loads(planrun("status", "last", "--json").stdout)["steps"]}
    assert [(rows[name]["status"], rows[name]["retryable"]) for name in "abc"] == [("completed", False)] * 3


@pytest.mark.shows("V-59")
def test_questions_have_a_general_time_limit(planrun: Command) -> None:
    """`defaults: {decision_timeout}` bounds each question: its default is taken, or it fails."""
    plan = (
        "defaults: {decision_timeout: 300ms}\n"
        "steps:\n"
        "  - {id: a, decide: {question: 'Which?', options: [{label: x}, {label: y}], default: x}}\n"
        "  - {id: b, ask: {question: 'Go on?'}}\n"
    )
    steps = steps_of(planrun, plan, 1)
    assert (steps["a"]["status"], steps["a"]["outputs"]) == ("completed", {"answer": "x"})
    assert (steps["b"]["status"], steps["b"]["reason"]) == ("failed", "timeout")


@pytest.mark.shows("N-51", "N-53")
def test_failures_of_low_risk_go_on_and_others_abort(planrun: Command) -> None:
    """`policy: {on_failure: …}` by risk: a low-risk failure is tolerated, any other aborts the run."""
    plan = (
        "policy: {on_failure: {read-only: continue, low: continue, otherwise: abort}}\n"
        "steps:\n"
        "  - {id: low, run: test -e nothing}\n"
        "  - {id: after, depends_on: [low], run: 'true'}\n"
        "  - {id: high, depends_on: [after], run: rm -rf /nowhere/at/all; false}\n"
        "  - {id: never, depends_on: {high: done}, run: 'true'}\n"
    )
    found = {name: step["status"] for name, step in steps_of(planrun, plan, 1).items()}
    assert found == {"low": "failed", "after": "completed", "high": "failed", "never": "cancelled"}


@pytest.mark.shows("N-23")
def test_a_tool_is_one_of_planruns_own_whatever_is_on_the_path(planrun: Command) -> None:
    """A name is one of planrun's catalogue: a program of that name is never run, unknown ones are errors."""
    for name in ("file.glob", "mine"):
        (planrun.folder / name).write_text("#!/bin/sh\ntouch ran\n")
        (planrun.folder / name).chmod(0o755)
    env = {"PATH": f"{planrun.folder}:/usr/bin:/bin"}
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{id: a, tool: mine}]\n")
    said = planrun("execute", "plan.yml", env=env)
    assert said.returncode == 2
    assert "plan.yml:2:" in said.stderr
    (planrun.folder / "plan.yml").write_text(
        "version: 1\nsteps: [{id: a, tool: file.glob, args: {patterns: [plan.yml]}}]\n"
    )
    said = planrun("execute", "plan.yml", env=env)
    assert said.returncode == 0, said.stderr
    assert not (planrun.folder / "ran").exists()


@pytest.mark.shows("D-27")
def test_a_plan_is_loaded_executed_and_shown_by_programs_and_commands(planrun: Command) -> None:
    """A program loads and executes a plan; `show` is its preview, `status` says how far the program's run is."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: touch made}]\n")
    program = "import planrun\nprint(planrun.execute(planrun.load('plan.yml')).steps['a'].status)\n"
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=planrun.folder, capture_output=True, encoding="utf-8", check=True
    )
    assert said.stdout.splitlines()[-1] == "completed"
    assert (planrun.folder / "made").exists()
    assert "| a " in planrun("show", "plan.yml").stdout
    assert json.loads(planrun("status", "last", "--json").stdout)["status"] == "completed"
