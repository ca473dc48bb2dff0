"""An approval is for one digest: a plan that is revised during a run needs a new approval."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = """\
version: 1
policy: {ask_for: plan, rules: [{require: {step: push}}]}
steps:
  - {id: build, run: test -e ok}
  - {id: push, depends_on: [build], run: echo push >> ran}
"""


@pytest.mark.shows("GP-11")
def test_a_failed_run_with_another_plan_needs_another_approval(planrun: Command) -> None:
    """The revised plan waits again under its new digest, nothing starts, and its approval lets it run."""
    folder = planrun.folder
    (folder / "plan.yml").write_text(PLAN)
    assert planrun("execute", "plan.yml").returncode == 5
    assert planrun("approve", "last").returncode == 0
    assert planrun("resume", "last").returncode == 1
    (folder / "ok").touch()
    (folder / "plan.yml").write_text(PLAN.replace("echo push", "echo push --force"))
    asked = planrun("resume", "last", "--plan", "plan.yml")
    assert asked.returncode == 5, asked.stderr
    assert not (folder / "ran").exists()
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    assert (ledger["status"], ledger["exit_code"]) == ("awaiting_approval", 5)
    assert planrun("approve", "last").returncode == 0
    done = planrun("resume", "last")
    assert done.returncode == 0, done.stderr
    assert (folder / "ran").read_text() == "push --force\n"
    (path,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    plans = [row["plan"] for row in rows if row["type"] in ("run_started", "run_resumed")]
    answers = [row["digest"] for row in rows if row["type"] == "gate_answered"]
    assert answers == [plans[0]["digest"], plans[-1]["digest"]]
    assert plans[0]["digest"] != plans[-1]["digest"]


def test_the_same_plan_stays_approved_on_a_resume(planrun: Command) -> None:
    """A resume after a failure does not ask again for approved steps."""
    folder = planrun.folder
    (folder / "plan.yml").write_text(PLAN)
    assert planrun("execute", "plan.yml").returncode == 5
    assert planrun("approve", "last").returncode == 0
    assert planrun("resume", "last").returncode == 1
    (folder / "ok").touch()
    assert planrun("resume", "last").returncode == 0
    assert (folder / "ran").read_text() == "push\n"
