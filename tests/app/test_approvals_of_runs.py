"""Approval files open the gates of real runs: for what they name, so often, and for nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

PLAN = """\
version: 1
policy: {auto_approve: none, rules: [{deny: {command: touch evil}}]}
steps:
  - {id: build, run: ./build.sh}
  - {id: publish, depends_on: [build], run: touch published}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace whose every step is asked for."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "build.sh").write_text("#!/bin/sh\ntouch built\n")
    (tmp_path / "build.sh").chmod(0o755)
    return tmp_path


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The events of one kind in the newest ledger."""
    ledger = max(folder.glob(".planrun/runs/*/ledger.jsonl"))
    return [event for event in map(json.loads, ledger.read_text().splitlines()) if event["type"] == kind]


@pytest.mark.shows("GP-03", "GP-53")
def test_a_plan_is_approved_and_then_runs(planrun: Run, place: Path) -> None:
    """With the approval it completes, and who approved which digest is on record; a second run waits and says why."""
    assert planrun("approve", "plan.yml", "--approver", "ann", "-o", "ok.json").returncode == 0
    done = planrun("execute", "plan.yml", "--approval", "ok.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "published").exists()
    approval = json.loads((place / "ok.json").read_bytes())
    answered = events(place, "gate_answered")
    assert [event["step"] for event in answered] == ["build", "publish"]
    for event in answered:
        assert (event["via"], event["by"], event["approval"]) == ("approval", "ann", approval["id"])
        assert event["digest"] == approval["digest"] == events(place, "run_started")[0]["plan"]["digest"]
    assert events(place, "attempt_started")[0]["rule"] == f"approval:{approval['id']}"
    (place / "copy.json").write_bytes((place / "ok.json").read_bytes())
    done = planrun("execute", "plan.yml", "--approval", "copy.json")
    assert done.returncode == 5
    assert "used up" in json.dumps(events(place, "gate_opened"))


def test_a_step_is_approved_and_the_other_one_waits(planrun: Run, place: Path) -> None:
    """The run pauses at the unapproved step and continues with another approval; the first is used once."""
    assert planrun("approve", "plan.yml", "--step", "build", "-o", "build.json").returncode == 0
    assert planrun("approve", "plan.yml", "--step", "publish", "-o", "publish.json").returncode == 0
    assert planrun("execute", "plan.yml", "--approval", "build.json").returncode == 5
    assert (place / "built").exists()
    assert not (place / "published").exists()
    assert planrun("resume", "last", "--approval", "build.json").returncode == 5
    done = planrun("resume", "last", "--approval", "build.json", "--approval", "publish.json")
    assert done.returncode == 0, done.stdout + done.stderr
    uses = (place / ".planrun" / "approvals.jsonl").read_text().splitlines()
    assert len(uses) == 2


@pytest.mark.parametrize("what", ["the plan", "a script", "a parameter", "the policy of the plan"])
def test_what_changed_since_is_not_approved(planrun: Run, place: Path, what: str) -> None:
    """Nothing starts when the digest is another one, whichever part of it changed."""
    plan = PLAN.replace("steps:", "params: {p: {type: string, default: a}}\nsteps:")
    (place / "plan.yml").write_text(plan)
    assert planrun("approve", "plan.yml", "-o", "ok.json").returncode == 0
    words: list[str] = []
    if what == "the plan":
        (place / "plan.yml").write_text(plan.replace("touch published", "touch other"))
    elif what == "a script":
        (place / "build.sh").write_text("#!/bin/sh\ntouch evil\n")
    elif what == "a parameter":
        words = ["--param", "p=b"]
    else:
        (place / "plan.yml").write_text(plan.replace(", rules: [{deny: {command: touch evil}}]", ""))
    done = planrun("execute", "plan.yml", "--approval", "ok.json", *words)
    assert done.returncode == 5, done.stdout + done.stderr
    assert not {"built", "evil", "published"} & {path.name for path in place.iterdir()}


def test_a_script_that_changes_between_gate_and_resume_is_not_run(planrun: Run, place: Path) -> None:
    """With --plan the scripts are read anew, and the approval is for something else."""
    assert planrun("approve", "plan.yml", "-o", "ok.json").returncode == 0
    assert planrun("execute", "plan.yml").returncode == 5
    (place / "build.sh").write_text("#!/bin/sh\ntouch evil\n")
    done = planrun("resume", "last", "--plan", "plan.yml", "--approval", "ok.json")
    assert done.returncode == 5, done.stdout + done.stderr
    assert not (place / "evil").exists()
    assert not (place / "built").exists()


def test_an_approval_lifts_no_denial(planrun: Run, place: Path) -> None:
    """A rule that denies a step denies it, also with an approval; exit code 3."""
    (place / "plan.yml").write_text(PLAN + "  - {id: never, run: touch evil}\n")
    assert planrun("approve", "plan.yml", "-o", "ok.json").returncode == 0
    assert planrun("execute", "plan.yml", "--approval", "ok.json").returncode == 3
    assert not (place / "evil").exists()


def test_an_approval_answers_yes_or_no(planrun: Run, place: Path) -> None:
    """A question of yes or no is answered with yes when its step is named."""
    (place / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: sure, ask: {question: Publish?}}\n"
        "  - {id: publish, depends_on: [sure], run: touch published}\n"
    )
    assert planrun("approve", "plan.yml", "--step", "sure", "-o", "ok.json").returncode == 0
    assert planrun("execute", "plan.yml").returncode == 5
    assert planrun("execute", "plan.yml", "--approval", "ok.json").returncode == 0
    assert (place / "published").exists()


def test_a_use_that_cannot_be_counted_opens_nothing(planrun: Run, place: Path) -> None:
    """Another file in place of the list of uses keeps every gate shut; the reason is reported."""
    assert planrun("approve", "plan.yml", "-o", "ok.json").returncode == 0
    (place / ".planrun" / "approvals.jsonl").mkdir(parents=True)
    done = planrun("execute", "plan.yml", "--approval", "ok.json")
    assert done.returncode == 5, done.stdout + done.stderr
    assert not (place / "built").exists()


@pytest.mark.parametrize("verb", ["execute", "lock", "approve", "show"])
def test_every_surface_names_the_same_digest(planrun: Run, place: Path, verb: str) -> None:
    """show, lock, approve, the ledger and the reports."""
    words = ["--param", "p=x"]
    text = "version: 1\nparams: {p: {type: string, required: true}}\nsteps:\n  - {id: a, run: ./build.sh}\n"
    (place / "plan.yml").write_text(text)
    shown = json.loads(planrun("show", "plan.yml", "--json", *words).stdout)["plan"]
    digest = shown["digest"]
    assert shown["missing_params"] == []
    if verb == "execute":
        assert planrun("execute", "plan.yml", *words).returncode == 0
        assert json.loads((place / "planrun-out" / "ledger.json").read_bytes())["plan"]["digest"] == digest
        assert digest in (place / "planrun-out" / "junit.xml").read_text()
        assert digest[:12] in (place / "planrun-out" / "report.md").read_text()
    elif verb == "lock":
        planrun("lock", "plan.yml", *words)
        assert json.loads((place / "plan.lock.json").read_bytes())["digest"] == digest
    elif verb == "approve":
        assert json.loads(planrun("approve", "plan.yml", "-o", "-", *words).stdout)["digest"] == digest
    else:
        assert digest[:12] in planrun("show", "plan.yml", *words).stdout
        assert "without the required p" in planrun("show", "plan.yml").stdout
        assert json.loads(planrun("show", "plan.yml", "--json").stdout)["plan"]["missing_params"] == ["p"]
