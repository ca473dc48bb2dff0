"""The tasks of a user with a plan, from its goal to its report, on the command line alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

WHERE = """\
  - id: where
    decide:
      header: Target
      question: Where to?
      options: [{label: Staging, value: staging, description: nobody sees it}, {label: Production, value: prod}]
  - {id: ship, depends_on: [where], env: {TO: "${{ steps.where.outputs.answer }}"}, run: 'echo "to $TO" > shipped'}
"""


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the events of a kind in the ledger of the newest run."""
    *_, newest = sorted((folder / ".planrun" / "runs").iterdir())
    rows = [json.loads(row) for row in (newest / "ledger.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if row["type"] == kind]


@pytest.mark.shows("V-09", "V-02", "V-04", "D-30", "D-56")
def test_the_six_stages_from_a_goal_to_a_report(say: Say, tmp_path: Path) -> None:
    """Initiate, review, decide, execute, monitor, complete: each is one command, and none reads a terminal."""
    (tmp_path / "Makefile").write_text("test:\n\ttouch tested\n")
    assert say("generate", "--offline", "fix the broken test").code == 0  # initiate
    plan = tmp_path / "plan.yml"
    text = plan.read_text("utf-8").replace("    estimated_tokens: 4000\n", "    run: touch fixed\n")
    head, _, tail = text.partition("steps:\n")
    plan.write_text(f"{head.replace('auto_approve: medium', 'auto_approve: high', 1)}steps:\n{WHERE}{tail}")
    assert "where" in say("show", "plan.yml").out  # review
    assert say("validate", "plan.yml").code == 0
    assert say("execute", "plan.yml").code == 5  # execute, as far as it goes
    assert not (tmp_path / "shipped").exists()
    watched = say("status").out  # monitor
    assert "◔ Step where (waiting: decision)\n" in watched
    assert "Where to?" in watched
    assert say("decide", "last", "where=prod").code == 0  # decide
    assert say("resume", "last").code == 0
    assert (tmp_path / "shipped").read_text() == "to prod\n"
    assert "[Completed]" in say("status").out
    assert "✓" in say("report", "last", "--format", "markdown").out  # complete
    assert say("verify", "last").code == 0


@pytest.mark.shows("D-13", "D-28", "D-52")
def test_each_step_is_confirmed(say: Say, tmp_path: Path) -> None:
    """One rule requires approval of every step; each approval lets one start, and a no denies it."""
    (tmp_path / "plan.yml").write_text(
        'version: 1\npolicy: {rules: [{require: {step: "do-*"}}]}\nsteps:\n'
        "  - {id: do-a, run: echo do-a >> ran}\n"
        "  - {id: do-b, depends_on: [do-a], run: echo do-b >> ran}\n"
        "  - {id: do-c, depends_on: [do-b], run: echo do-c >> ran}\n"
    )
    assert say("execute", "plan.yml").code == 5
    assert not (tmp_path / "ran").exists()
    for name in ("do-a", "do-b"):
        assert say("approve", "last", name).code == 0
        assert say("resume", "last").code == 5
        assert (tmp_path / "ran").read_text().split()[-1] == name
    assert say("reject", "last", "do-c").code == 0
    assert say("resume", "last").code == 3
    assert (tmp_path / "ran").read_text().split() == ["do-a", "do-b"]
    assert [event["step"] for event in events(tmp_path, "gate_opened")] == ["do-a", "do-b", "do-c"]
    answers = {event["step"]: event["answer"] for event in events(tmp_path, "gate_answered")}
    assert answers == {"do-a": "approved", "do-b": "approved", "do-c": "rejected"}


@pytest.mark.shows("V-64", "V-10")
def test_a_decision_is_an_event_with_its_question_and_options(say: Say, tmp_path: Path) -> None:
    """The ledger records source, question and every option at once; `ledger.json` has them as gates."""
    (tmp_path / "plan.yml").write_text(f"version: 1\ngoal: ship it\nsteps:\n{WHERE}")
    assert say("execute", "plan.yml").code == 5
    (asked,) = events(tmp_path, "gate_opened")
    assert (asked["step"], asked["kind"], asked["question"], asked["header"]) == (
        "where", "decide", "Where to?", "Target",
    )  # fmt: skip
    assert [option["value"] for option in asked["options"]] == ["staging", "prod"]
    assert asked["options"][0] == {"label": "Staging", "value": "staging", "description": "nobody sees it"}
    (started,) = events(tmp_path, "run_started")
    found = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text("utf-8"))
    assert found["run_id"] == started["run"]
    assert found["gates"][0]["question"] == "Where to?"
    assert {"status", "steps", "started_at", "plan"} <= set(found)


@pytest.mark.shows("X-04")
def test_a_verification_that_a_policy_denies_keeps_its_step_from_starting(say: Say, tmp_path: Path) -> None:
    """Commands under `verify` are judged before anything of the step runs; nothing is done and then not proven."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\npolicy: {auto_approve: medium, rules: [{deny: {command: rm}}]}\nsteps:\n"
        "  - {id: a, run: touch made, verify: rm -rf build}\n"
        "  - {id: b, run: touch other, verify: test -e other}\n"
    )
    assert say("execute", "plan.yml").code == 3
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "other").exists()
    found = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text("utf-8"))
    assert [(step["status"], step["reason"]) for step in found["steps"]] == [
        ("failed", "denied"),
        ("completed", "ran"),
    ]
    assert say("execute", "plan.yml", "--only", "a").code == 3
