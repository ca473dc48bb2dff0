"""Rows of the acceptance table that a run shows while it goes on, when it is ended early, and when it is resumed."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.gated import PLAN, Going

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Command


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Going]:
    """Start the plan and wait until its second step runs; open the gate at the end."""
    found = Going(tmp_path, PLAN)
    yield found
    found.open()
    found.process.kill()
    found.process.communicate()


@pytest.fixture
def json_of(planrun: Command) -> Callable[..., dict[str, Any]]:
    """Give the test what a command prints as JSON."""

    def ask(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(planrun(*words, "--json").stdout)
        return found

    return ask


@pytest.mark.shows(
    "GP-04", "GP-12", "GP-13", "D-16", "D-17", "V-12", "V-17", "V-18", "D-22", "D-24", "GP-60", "V-02"
)
def test_status_tells_what_runs_and_what_is_to_come(
    going: Going, json_of: Callable[..., dict[str, Any]]
) -> None:
    """While a run goes on: executing, one step done, one running, others pending, and which is next."""
    found = json_of("status")
    assert {step["id"]: step["status"] for step in found["steps"]} == {
        "before": "completed",
        "gate": "running",
        "after": "pending",
        "tidy": "pending",
    }
    assert (found["status"], found["progress"]) == ("running", {"ended": 1, "completed": 1, "total": 4})
    assert found["next"][0] == "after"
    assert json_of("report")["status"] == "executing"
    going.open()
    assert going.end()[0] == 0


@pytest.mark.shows("N-07")
def test_a_result_is_there_before_anything_ended(
    going: Going, json_of: Callable[..., dict[str, Any]]
) -> None:
    """From the first moment the run has id, status, start, all its steps and its counts."""
    found = json_of("report")
    assert found["run_id"] == next((going.folder / ".planrun" / "runs").iterdir()).name
    assert (found["status"], found["ended_at"], found["exit_code"]) == ("executing", None, None)
    assert found["started_at"]
    assert [step["id"] for step in found["steps"]] == ["before", "gate", "after", "tidy"]
    assert found["summary"] == {
        "total": 4, "completed": 1, "failed": 0, "skipped": 0, "blocked": 0, "cancelled": 0,
    }  # fmt: skip


@pytest.mark.shows("GP-08", "V-15", "N-65", "V-05", "D-32", "V-79")
def test_sigterm_cancels_cleans_up_and_reports(going: Going) -> None:
    """SIGTERM ends what runs, `finally` still runs, and reports say cancelled; exit code 143."""
    going.process.send_signal(signal.SIGTERM)
    assert going.end()[0] == 143
    assert going.ran() == ["before", "gate", "tidy"]
    ledger = json.loads((going.folder / "planrun-out" / "ledger.json").read_text())
    assert (ledger["status"], ledger["verdict"]) == ("cancelled", "cancelled")
    assert "[Cancelled]" in (going.folder / "planrun-out" / "report.md").read_text()
    assert (going.folder / "planrun-out" / "junit.xml").exists()


@pytest.mark.shows("GP-75", "V-79", "D-54", "V-04", "D-31", "GP-76")
def test_a_killed_run_is_listed_reported_and_resumed(going: Going, planrun: Command) -> None:
    """After kill -9 the run is listed as unfinished, has reports, and `resume` does what is left."""
    going.process.kill()
    going.end()
    assert " unfinished " in planrun("runs").stdout
    assert 'Plan v1: "gated"' in planrun("report", "last", "--format", "markdown").stdout
    (going.folder / "go").touch()
    assert planrun("resume", "last").returncode == 0
    assert going.ran() == ["before", "gate", "gate", "after", "tidy"]
    assert " completed " in planrun("runs").stdout


@pytest.mark.shows("V-54")
def test_nothing_is_resumed_unasked(going: Going, planrun: Command) -> None:
    """`execute` after a run that was killed begins anew: another run, every step again."""
    going.process.kill()
    going.end()
    (going.folder / "go").touch()
    assert planrun("execute", "plan.yml").returncode == 0
    assert going.ran() == ["before", "gate", "before", "gate", "after", "tidy"]
    assert len(os.listdir(going.folder / ".planrun" / "runs")) == 2


@pytest.mark.shows("V-55")
def test_a_broken_ledger_is_never_resumed(going: Going, planrun: Command) -> None:
    """A ledger that was changed is exit code 2 with its line; nothing runs, and the file stays as it is."""
    going.process.kill()
    going.end()
    (ledger,) = going.folder.glob(".planrun/runs/*/ledger.jsonl")
    broken = ledger.read_bytes().replace(b'"step":"before"', b'"step":"after"', 1)
    ledger.write_bytes(broken)
    said = planrun("resume", "last")
    assert (said.returncode, going.ran()) == (2, ["before", "gate"])
    assert "the ledger is altered: " in said.stderr
    assert ledger.read_bytes() == broken


@pytest.mark.shows("V-53")
def test_a_second_run_is_told_who_has_the_workspace(going: Going, planrun: Command) -> None:
    """While a run goes on, another one in its folder is exit code 2 and names run and process."""
    said = planrun("execute", "plan.yml")
    (run,) = (going.folder / ".planrun" / "runs").iterdir()
    assert said.returncode == 2
    assert f"run {run.name}, process {going.process.pid} on " in said.stderr


@pytest.mark.shows("V-08", "V-78", "V-04")
def test_resume_repeats_failures_and_keeps_them_on_record(
    planrun: Command, tmp_path: Path, json_of: Callable[..., dict[str, Any]]
) -> None:
    """What failed and what it blocked run again; then nothing counts as failed, and the old attempt is still told."""
    plan = "version: 1\nsteps: [{id: a, run: test -e mended}, {id: b, depends_on: [a], run: 'true'}]\n"
    (tmp_path / "plan.yml").write_text(plan)
    assert planrun("execute", "plan.yml").returncode == 1
    (tmp_path / "mended").touch()
    assert planrun("resume", "last").returncode == 0
    found = json_of("report")
    assert (found["summary"]["failed"], found["summary"]["completed"]) == (0, 2)
    assert [attempt["status"] for attempt in found["steps"][0]["attempts"]] == ["failed", "completed"]
