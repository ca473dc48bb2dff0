"""Converted plans that really run: what ran there runs here, in the same order and with the same values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planrun.convert.convert import Converted

WORKFLOW = """\
    on: push
    env: {TOP: top}
    jobs:
      make:
        runs-on: ubuntu-latest
        env: {JOB: "${{ env.TOP }}-job"}
        outputs: {made: "${{ steps.write.outputs.made }}"}
        steps:
          - id: write
            run: |
              echo "made=some thing" >> "$GITHUB_OUTPUT"
              echo "LATER=${JOB}-later" >> $GITHUB_ENV
              false | true
          - run: echo "$LATER ${{ env.LATER }} $JOB" >> said
          - {if: failure(), run: echo never >> said}
          - {id: soft, run: exit 3, continue-on-error: true}
          - {if: steps.soft.outcome == 'failure', run: echo soft >> said}
          - {if: always(), run: echo always >> said}
      left:
        needs: make
        if: github.ref == 'refs/heads/other'
        runs-on: ubuntu-latest
        steps: [{run: echo never >> said}, {run: echo never >> said}]
      behind:
        needs: left
        runs-on: ubuntu-latest
        steps: [{run: echo never >> said}]
      read:
        needs: [make]
        if: needs.make.result == 'success'
        runs-on: ubuntu-latest
        steps:
          - run: echo "$MADE" >> said
            shell: bash
            env: {MADE: "${{ needs.make.outputs.made }}"}
          - run: import os; open("said", "a").write(os.environ["TOP"] + chr(10))
            shell: python3 {0}
"""
DAG = """\
    params: "A=1 B1=two"
    env: [{B: b}]
    steps:
      - {name: one, command: echo "$A $B $B1", output: OUT}
      - name: two
        depends: one
        command: python3
        script: import os; open('said', 'a').write(os.environ['OUT'] + chr(10))
      - {name: three, depends: two, command: echo never >> said, preconditions: ["false"]}
      - {name: four, depends: three, command: echo never >> said}
      - name: five
        depends: two
        command: echo five >> said
        preconditions: [{condition: "$OUT", expected: "1 b two"}]
      - {name: six, depends: five, command: exit 2, continueOn: {failure: true}}
      - {name: seven, depends: six, command: echo seven >> said}
    handlerOn:
      success: {command: echo success >> said}
      failure: {command: echo failure >> said}
      exit: {command: echo exit >> said}
"""


def run(found: Converted, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Execute a plan in a folder; returns the lines of the file that its steps write, and the ledger."""
    assert found.text, [finding.text for finding in found.findings]
    (folder / "plan.yml").write_text(found.text)
    (folder / "said").write_text("")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI"))}
    words = [
        sys.executable,
        "-m",
        "planrun",
        "execute",
        "plan.yml",
        "--quiet",
        "--jobs",
        "1",
        "--report-dir",
        "out",
    ]
    done = subprocess.run(
        words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "said").read_text().splitlines(), json.loads(
        (folder / "out" / "ledger.json").read_bytes()
    )


def statuses(ledger: dict[str, Any]) -> dict[str, str]:
    """Return how each step ended."""
    return {step["id"]: step["status"] for step in ledger["steps"]}


def test_a_workflow_runs_as_it_does_there(made: Callable[..., Converted], tmp_path: Path) -> None:
    """Outputs, variables, tolerated failures, `always()` and skipped jobs do what they do on GitHub."""
    said, ledger = run(made(WORKFLOW), tmp_path)
    assert said == ["top-job-later top-job-later top-job", "soft", "always", "some thing", "top"]
    ended = statuses(ledger)
    assert {name for name, status in ended.items() if status == "skipped"} == {
        "make.3",
        "left.1",
        "left.2",
        "behind",
    }


def test_a_dagu_file_runs_as_it_does_there(made: Callable[..., Converted], tmp_path: Path) -> None:
    """Outputs become variables, what is skipped skips what waits for it, and handlers run at the end."""
    said, ledger = run(made(DAG), tmp_path)
    assert said == ["1 b two", "five", "seven", "success", "exit"]
    assert statuses(ledger)["four"] == "skipped"
