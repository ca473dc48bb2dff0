"""The row about the Python interface: what a program and the verbs create, execute, show and report is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
name: interface
params: {word: {type: string, default: one}}
steps:
  - id: make
    run: printf '%s' "$WORD" > made.txt; echo "word=$WORD" >> "$PLANRUN_OUTPUT"
    env: {WORD: "${{ params.word }}"}
    outputs: {word: string}
  - {id: check, depends_on: [make], run: grep -q two made.txt}
"""

PROGRAM = """\
import json
import sys

import planrun
from planrun.errors import InvalidPlan

try:
    planrun.load("broken.yml")
except InvalidPlan as error:
    problems = [[problem.code, problem.line, problem.col] for problem in error.problems]
plan = planrun.load("plan.yml")
made = planrun.generate("add a test of the parser", file="made.yml", offline=True)
shown = planrun.preview(plan)
events = []
state = planrun.execute(plan, params={"word": sys.argv[1]}, on_event=events.append, jobs=1)
again = planrun.replay(f".planrun/runs/{state.started.run}/ledger.jsonl")
print(json.dumps({
    "problems": problems,
    "steps": [step.id for step in plan.steps],
    "made": [open("made.yml", "rb").read() == made.source, made.goal],
    "shown": [[step["id"], step["risk"]] for step in shown["steps"]],
    "status": planrun.status(state.started.run)["progress"],
    "run": state.started.run,
    "verdict": state.verdict(),
    "statuses": {name: step.status for name, step in state.steps.items()},
    "outputs": state.steps["make"].outputs,
    "replayed": again.verdict() == state.verdict() and again.summary() == state.summary(),
    "events": [event["type"] for event in events],
}))
"""


def start(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder with this Python."""
    env = {**os.environ, "PLANRUN_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *argv], cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False
    )


def verb(folder: Path, *words: str) -> str:
    """Run a verb of planrun and return what it prints."""
    done = start(folder, "-m", "planrun", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.shows("D-27")
def test_programs_and_verbs(tmp_path: Path) -> None:
    """A program loads, executes and replays; the verbs create, show, execute the same plan and report its status."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "broken.yml").write_text("version: 1\nsteps:\n  - {id: a, runs: x}\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    for word, verdict, check in (("two", "completed", "completed"), ("one", "failed", "failed")):
        (tmp_path / "made.yml").unlink(missing_ok=True)
        done = start(tmp_path, "program.py", word)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["problems"][0][1:] == [3, 13]
        assert found["steps"] == ["make", "check"]
        assert (found["verdict"], found["statuses"]) == (verdict, {"make": "completed", "check": check})
        assert found["outputs"] == {"word": word}
        assert found["replayed"] is True
        assert found["made"] == [True, "add a test of the parser"]
        assert found["shown"] == [["make", "low"], ["check", "read-only"]]
        assert found["status"] == {"ended": 2, "completed": 2 if word == "two" else 1, "total": 2}
        assert found["events"][0] == "run_started"
        assert found["events"].count("run_ended") == 1
        status = json.loads(verb(tmp_path, "status", found["run"], "--json"))
        assert (status["run"], status["status"]) == (found["run"], verdict)
    verb(tmp_path, "init", "new.yml")
    verb(tmp_path, "validate", "new.yml")
    shown = json.loads(verb(tmp_path, "show", "plan.yml", "--json"))
    assert [step["id"] for step in shown["steps"]] == ["make", "check"]
    verb(tmp_path, "execute", "plan.yml", "--param", "word=two")
    last = json.loads(verb(tmp_path, "status", "last", "--json"))
    assert last["status"] == "completed"
