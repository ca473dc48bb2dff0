"""Rows of the acceptance table that one real run shows: its ledger, its reports, its states."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from planrun import load
from planrun.model.state import RunState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = """\
version: 1
name: night
description: One step of each end.
goal: Everything is told.
defaults: {timeout: 60s}
steps:
  - id: 1
    title: Look around
    description: What is there.
    owner: team-core
    notes: Takes a moment.
    estimated_tokens: 700
    run: echo here; echo size=3 >> "$PLANRUN_OUTPUT"
    outputs: {size: integer}
  - id: 2
    estimated_tokens: 300
    run: |
      echo some words
      echo 'validation error: no' >&2
      exit 4
    retries: {max: 1, backoff: {initial: 10ms}}
  - {id: 3, run: "true", depends_on: [2]}
  - {id: 4, run: "true", condition: "false"}
  - {id: 5, run: exit 1, depends_on: [1]}
  - {id: 6, run: echo still here, depends_on: [1]}
"""


class Night:
    """The plan above, executed once: what was said, its events and its ledger.json."""

    def __init__(self, planrun: Command, folder: Path) -> None:
        (folder / "plan.yml").write_text(PLAN)
        self.folder = folder
        self.said = planrun("execute", "plan.yml", "--skip", "6")
        (self.rundir,) = (folder / ".planrun" / "runs").iterdir()
        self.events = [json.loads(row) for row in (self.rundir / "ledger.jsonl").read_text().splitlines()]
        self.ledger: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text())
        self.steps = {step["id"]: step for step in self.ledger["steps"]}

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these types."""
        return [event for event in self.events if event["type"] in kinds]


@pytest.fixture
def night(planrun: Command, tmp_path: Path) -> Night:
    """Execute the plan."""
    return Night(planrun, tmp_path)


@pytest.mark.shows("GP-01", "GP-02", "GP-03", "GP-04", "GP-07", "V-11", "V-12")
def test_the_lifecycle_is_in_the_ledger(night: Night) -> None:
    """A loaded plan is a draft; its run is started, awaits approval, is approved, executes and fails, in this order."""
    assert RunState(load(str(night.folder / "plan.yml"))).status == "draft"
    first, *moves = night.of("run_started", "plan_moved", "run_ended")
    assert first["plan"]["digest"] == night.ledger["plan"]["digest"]
    assert [move["status"] for move in moves] == ["awaiting_approval", "approved", "executing", "failed"]
    assert (night.ledger["status"], night.said.returncode) == ("failed", 1)


@pytest.mark.shows("GP-06", "V-14", "V-21", "D-25", "D-18", "GP-14")
def test_a_completed_run(planrun: Command, tmp_path: Path) -> None:
    """When every step completed, plan, verdict and steps are completed and the exit code is 0; no file can claim it."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    assert planrun("execute", "plan.yml").returncode == 0
    ledger = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text())
    assert (ledger["status"], ledger["verdict"], ledger["steps"][0]["status"]) == ("completed",) * 3
    (tmp_path / "claim.yml").write_text("version: 1\nsteps: [{run: 'true', status: completed}]\n")
    said = planrun("execute", "claim.yml")
    assert (said.returncode, 'unknown key "status"' in said.stderr) == (2, True)


@pytest.mark.shows("N-40", "N-42", "GP-54", "D-28", "V-63")
def test_every_step_is_announced_and_told(night: Night) -> None:
    """Before each attempt there is an event with step and time, after it one with the outcome; all else moves."""
    open_attempts: set[tuple[str, int]] = set()
    for event in night.of("attempt_started", "attempt_ended"):
        key = (event["step"], event["n"])
        if event["type"] == "attempt_started":
            assert key not in open_attempts
            open_attempts.add(key)
        else:
            open_attempts.remove(key)
            assert {"at", "status", "step_status", "duration"} <= set(event)
    assert open_attempts == set()
    moved = {event["step"]: (event["status"], event["reason"]) for event in night.of("step_moved")}
    assert moved == {
        "3": ("blocked", "upstream"),
        "4": ("skipped", "condition"),
        "6": ("skipped", "not_selected"),
    }


@pytest.mark.shows("N-43", "V-62", "V-10", "D-21")
def test_the_start_of_a_plan_is_an_event(night: Night) -> None:
    """The first line names run, plan, values and options; goal and steps stand in the copy of the plan beside it."""
    (started,) = night.of("run_started")
    assert started == night.events[0]
    assert started["run"] == night.rundir.name
    assert started["plan"]["name"] == "night"
    assert started["options"]["selection"] == {"skip": ["6"]}
    kept = load(str(night.rundir / "plan.yml"))
    assert (kept.name, kept.description, kept.goal) == (
        "night",
        "One step of each end.",
        "Everything is told.",
    )
    assert sum(step.estimated_tokens for step in kept.steps) == 1000
    assert [step.id for step in kept.steps] == list(night.steps)
    assert {"run_id", "status", "started_at", "ended_at"} <= set(night.ledger)


@pytest.mark.shows("V-16", "D-15")
def test_what_a_step_says_of_itself_is_kept(night: Night) -> None:
    """Id, title, description, owner, notes, tokens and edges of a step are in its plan, the results in its ledger."""
    step = load(str(night.folder / "plan.yml")).steps[0]
    told = (step.id, step.title, step.description, step.owner, step.notes, step.estimated_tokens)
    assert told == ("1", "Look around", "What is there.", "team-core", "Takes a moment.", 700)
    assert (night.steps["3"]["depends_on"], night.steps["1"]["outputs"]) == (["2"], {"size": 3})


@pytest.mark.shows("N-44", "N-45", "V-65")
def test_the_end_of_a_plan_is_an_event(night: Night) -> None:
    """The last line has status, verdict, exit code and counts, also when the plan failed."""
    ended = night.events[-1]
    assert (ended["type"], ended["status"], ended["verdict"], ended["exit_code"]) == (
        "run_ended",
        "failed",
        "failed",
        1,
    )
    assert ended["summary"] == night.ledger["summary"]
    assert ended["events"] == len(night.events)


@pytest.mark.shows("N-41")
def test_an_attempt_that_is_repeated_is_an_event(night: Night) -> None:
    """A step that goes on after a failure says so: it is waiting, and for how long."""
    first = next(event for event in night.of("attempt_ended") if event["step"] == "2")
    assert (first["status"], first["step_status"], first["delay"] > 0) == ("failed", "waiting", True)


@pytest.mark.shows("GP-25", "GP-15", "D-19", "D-49", "GP-38", "GP-43")
def test_output_and_error_of_a_step_are_kept(night: Night) -> None:
    """All output is in the log of its attempt; the error has class, rule and message; failed is failed, exit 1."""
    step = night.steps["2"]
    assert (step["status"], step["reason"], night.said.returncode) == ("failed", "exit", 1)
    assert [attempt["log"] for attempt in step["attempts"]] == ["logs/2/1.log", "logs/2/2.log"]
    assert (night.rundir / "logs/2/1.log").read_text() == "some words\nvalidation error: no\n"
    assert step["attempts"][1]["error"] == {
        "class": "logic",
        "rule": "text:validation error",
        "message": "exit code 4",
    }


@pytest.mark.shows("V-19", "D-50", "D-51", "D-20", "GP-16", "V-80")
def test_ends_that_are_no_failure_name_their_reason(night: Night) -> None:
    """Blocked names its culprit, skipped its condition or that it was left out; two failures are told apart."""
    found = {name: (step["status"], step["reason"]) for name, step in night.steps.items()}
    assert found == {
        "1": ("completed", "ran"),
        "2": ("failed", "exit"),
        "3": ("blocked", "upstream"),
        "4": ("skipped", "condition"),
        "5": ("failed", "exit"),
        "6": ("skipped", "not_selected"),
    }
    assert "\nBlocked by 2: 3\n" in night.said.stderr
    assert [night.steps[name]["attempts"][-1]["exit_code"] for name in "25"] == [4, 1]


@pytest.mark.shows("D-11", "V-50", "V-79", "GP-61")
def test_the_console_tells_start_steps_and_end(night: Night) -> None:
    """One line opens the run, one tells each end, one gives the verdict, and three reports are written."""
    rows = night.said.stderr.splitlines()
    assert rows[0].startswith("night: 6 steps")
    assert [row for row in rows if re.match(r"[✓✗⊘■]", row)][-1].startswith("✗ failed in ")
    assert any(row.startswith("✓ 1: Look around") for row in rows)
    names = sorted(path.name for path in (night.folder / "planrun-out").iterdir())
    assert names == [".gitignore", "junit.xml", "ledger.json", "report.md"]
    assert 'Plan v1: "night" [Failed]' in (night.folder / "planrun-out" / "report.md").read_text()


@pytest.mark.shows("N-05")
def test_a_general_timeout_holds_for_every_step(night: Night) -> None:
    """`defaults: {timeout: 60s}` is the timeout of each step that names none."""
    assert {step.timeout for step in load(str(night.folder / "plan.yml")).steps} == {60.0}


@pytest.mark.shows("X-02")
def test_effects_of_a_step_are_known_and_recorded_before_it_starts(planrun: Command, tmp_path: Path) -> None:
    """`show --json` has their kinds; a run that the step kills has the attempt and the effects on record."""
    step = "{id: push, idempotent: false, run: 'kill -9 $PPID; sleep 60; git push origin main'}"
    (tmp_path / "plan.yml").write_text(f"version: 1\npolicy: {{auto_approve: high}}\nsteps: [{step}]\n")
    (shown,) = json.loads(planrun("show", "plan.yml", "--json").stdout)["steps"]
    assert "publishes" in shown["effects"]
    assert planrun("execute", "plan.yml").returncode == -9
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    last = json.loads(ledger.read_text().splitlines()[-1])
    assert (last["type"], last["step"]) == ("attempt_started", "push")
    assert last["fingerprint"]
    (recorded,) = json.loads(planrun("report", "last", "--format", "json").stdout)["steps"]
    assert recorded["effects"] == shown["effects"]
    assert planrun("resume", "last").returncode != 0
    assert len([line for line in ledger.read_text().splitlines() if '"attempt_started"' in line]) == 1
