"""Runs that are resumed with an edited plan, as whole processes: what is reused, after kills as well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import planrun as library

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

FIRST = """\
version: 1
name: six
env: {GREETING: hello}
steps:
  - {id: a, run: echo a >> effects}
  - {id: b, depends_on: [a], run: echo b >> effects}
  - {id: c, depends_on: [a], run: 'echo c $GREETING >> effects', env: {NOTE: one}}
  - {id: d, depends_on: [b], run: "echo d >> effects; exit 1"}
  - {id: e, depends_on: [d], run: echo e >> effects}
  - {id: f, depends_on: [c, e], run: echo f >> effects}
"""
# The step `d` waits for a file, so that the run can be killed while it runs.
SECOND = FIRST.replace(
    'run: "echo d >> effects; exit 1"', 'run: "echo d >> effects; until test -e go; do sleep 0.02; done"'
)


def effects(folder: Path) -> list[str]:
    """Return what the steps did, in their order."""
    return (folder / "effects").read_text().split("\n")[:-1]


def wait_for(folder: Path, line: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a step has left its line."""
    limit = time.monotonic() + 60
    while line not in effects(folder):
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.shows("GP-76", "V-04", "D-54")
def test_an_edited_plan_is_resumed_through_a_kill(planrun: Command, tmp_path: Path) -> None:
    """Each finished step that is unchanged has its effect once, though the resumed run is killed, too."""
    (tmp_path / "plan.yml").write_text(FIRST)
    assert planrun("execute", "plan.yml").returncode == 1
    assert sorted(effects(tmp_path)) == ["a", "b", "c hello", "d"]
    (tmp_path / "plan.yml").write_text(SECOND)
    words = [sys.executable, "-m", "planrun", "resume", "last", "--plan", "plan.yml"]
    (tmp_path / "effects").write_text("")
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_for(tmp_path, "d", process)
        process.send_signal(signal.SIGKILL)
    (tmp_path / "plan.yml").write_text("nothing that could be read: [")
    (tmp_path / "go").touch()
    again = planrun("resume", "last")
    assert again.returncode == 0, again.stderr
    assert "  d: lost\n" in again.stderr
    assert effects(tmp_path) == ["d", "d", "e", "f"]
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    state = library.replay(str(ledger))
    assert (state.plan.version, state.verdict()) == (2, "completed")
    assert state.plan.source == SECOND.encode()


def test_the_reasons_are_reported_and_kept(planrun: Command, tmp_path: Path) -> None:
    """A changed variable of the plan is named before anything runs; `explain` shows it afterwards."""
    (tmp_path / "plan.yml").write_text(FIRST)
    planrun("execute", "plan.yml")
    (tmp_path / "plan.yml").write_text(FIRST.replace("NOTE: one", "NOTE: two").replace("; exit 1", ""))
    done = planrun("resume", "last", "--plan", "plan.yml")
    assert done.returncode == 0, done.stderr
    assert "planrun:   c: its environment changed: NOTE\n" in done.stderr
    assert "resuming: 2 reused, 4 to rerun" in done.stderr
    explained = json.loads(planrun("explain", "last", "c", "--json").stdout)
    assert [again["because"] for again in explained["ran_again"]] == ["its environment changed: NOTE"]
    assert "its environment changed: NOTE" in planrun("explain", "last", "c").stdout


def test_changes_of_the_environment_are_reported_without_names(planrun: Command, tmp_path: Path) -> None:
    """A value from the caller's environment is not on record: only that it changed is reported."""
    plan = "version: 1\nenv: {A: '${{ env.FROM }}'}\nsteps: [{id: a, run: 'true'}, {id: b, run: exit 1}]\n"
    (tmp_path / "plan.yml").write_text(plan)
    planrun("execute", "plan.yml", env={"FROM": "one"})
    done = planrun("resume", "last", env={"FROM": "two"})
    assert "planrun:   a: its environment changed\n" in done.stderr


def test_fingerprints_hold_parts_and_no_values(planrun: Command, tmp_path: Path) -> None:
    """A fingerprint has a part for the command, and others only where there is something; each has 128 bits."""
    plan = """\
version: 1
steps:
  - {id: plain, run: echo visible}
  - {id: full, run: echo, env: {WORD: visible}, workdir: .}
  - {id: check, validate: [{files_exist: [plan.yml]}]}
"""
    (tmp_path / "plan.yml").write_text(plan)
    planrun("execute", "plan.yml")
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    text = ledger.read_text()
    fingerprints = {
        event["step"]: dict(part.split(":") for part in event["fingerprint"].split())
        for event in map(json.loads, text.splitlines())
        if event["type"] == "attempt_started"
    }
    assert {name: list(parts) for name, parts in fingerprints.items()} == {
        "plain": ["argv"],
        "full": ["argv", "env", "workdir"],
        "check": ["checks"],
    }
    assert {len(digest) for parts in fingerprints.values() for digest in parts.values()} == {32}
    assert "visible" not in text


def test_checks_run_again_when_their_parameters_changed(planrun: Command, tmp_path: Path) -> None:
    """Only the `validate` step that reads the parameter runs again; a new layout of the plan changes nothing."""
    plan = """\
version: 1
params: {size: {type: integer, default: 1}}
steps:
  - {id: reads, validate: [{that: params.size > 0}]}
  - {id: other, validate: [{that: "1 > 0"}]}
  - {id: last, run: exit 1}
"""
    (tmp_path / "plan.yml").write_text(plan)
    planrun("execute", "plan.yml")
    (tmp_path / "plan.yml").write_text(plan.replace('"1 > 0"', "'1   >  0'").replace("exit 1", "exit 0"))
    done = planrun("resume", "last", "--plan", "plan.yml", "--param", "size=2")
    assert "reads: the parameters it reads changed: size" in done.stderr
    assert "other:" not in done.stderr
    assert done.returncode == 0


def test_given_parameters_are_recorded_and_kept(planrun: Command, tmp_path: Path) -> None:
    """The ledger names the given parameters, also those of the resume, as long as they are declared."""
    declared = "{a: {type: string, default: x}, b: {type: string, default: y}}"
    plan = f"version: 1\nparams: {declared}\nsteps: [{{id: s, run: exit 1}}]\n"
    (tmp_path / "plan.yml").write_text(plan)
    planrun("execute", "plan.yml", "--param", "a=1")
    planrun("resume", "last", "--plan", "plan.yml", "--param", "b=2")
    planrun("resume", "last")
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    events: list[dict[str, Any]] = [json.loads(line) for line in ledger.read_text().splitlines()]
    opened = [event for event in events if event["type"] in ("run_started", "run_resumed")]
    assert [event["options"]["given"] for event in opened] == [["a"], ["a", "b"], ["a", "b"]]
    assert [event["params"] for event in opened] == [{"a": "1", "b": "y"}, *[{"a": "1", "b": "2"}] * 2]


def test_a_step_that_comes_back_runs_again_with_a_new_number(planrun: Command, tmp_path: Path) -> None:
    """What a step did before it was taken out counts no more, and its logs are not written over."""
    both = "version: 1\nsteps:\n  - {id: a, run: echo a >> effects; echo said}\n  - {id: b, run: exit 1}\n"
    (tmp_path / "both.yml").write_text(both)
    (tmp_path / "one.yml").write_text("version: 1\nsteps:\n  - {id: b, run: exit 2}\n")
    planrun("execute", "both.yml")
    assert 'step "a" is gone' in planrun("resume", "last", "--plan", "one.yml").stderr
    assert planrun("resume", "last", "--plan", "both.yml").returncode == 1
    assert effects(tmp_path) == ["a", "a"]
    (run,) = tmp_path.glob(".planrun/runs/*")
    assert sorted(os.listdir(run / "logs" / "a")) == ["1.log", "2.log"]
    assert sorted(path.name for path in run.glob("plan*")) == ["plan.v2.yml", "plan.v3.yml", "plan.yml"]
    assert "[Failed]" in planrun("status").stdout


def test_a_copy_without_its_event_is_written_over(planrun: Command, tmp_path: Path) -> None:
    """When planrun died between keeping the copy and recording it, the next version takes its name."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: exit 1}]\n")
    planrun("execute", "plan.yml")
    (run,) = tmp_path.glob(".planrun/runs/*")
    (run / "plan.v2.yml").write_text("half a pl")
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: exit 0}]\n")
    assert planrun("resume", "last", "--plan", "plan.yml").returncode == 0
    assert (run / "plan.v2.yml").read_bytes() == (tmp_path / "plan.yml").read_bytes()
    assert not list(run.glob(".*.part"))


def test_a_run_folder_without_a_ledger_is_reported(planrun: Command, tmp_path: Path) -> None:
    """`resume` and `retry` say what every other command says of it."""
    (tmp_path / ".planrun" / "runs" / "20260131-093000-1f2e3d").mkdir(parents=True)
    for words in (("resume", "last"), ("retry", "last", "a"), ("status", "last")):
        done = planrun(*words)
        assert done.returncode == 2
        assert "the run 20260131-093000-1f2e3d has no ledger.jsonl" in done.stderr


def test_a_step_that_was_run_again_takes_the_time_of_its_last_run(planrun: Command, tmp_path: Path) -> None:
    """`status --json` adds up the attempts since the resume, as every report does."""
    plan = "version: 1\nsteps: [{id: a, run: 'test -e ok || { sleep 2; exit 1; }'}]\n"
    (tmp_path / "plan.yml").write_text(plan)
    planrun("execute", "plan.yml")
    (tmp_path / "ok").touch()
    planrun("resume", "last")
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    took = [
        event["duration"]
        for event in map(json.loads, ledger.read_text().splitlines())
        if event["type"] == "attempt_ended"
    ]
    (step,) = json.loads(planrun("status", "--json").stdout)["steps"]
    assert (step["attempts"], step["duration_s"]) == (2, took[1])
    assert took[0] >= 2
