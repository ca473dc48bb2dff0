"""Whole runs of steps that a policy allows by risk class, with files planted around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
policy: {{auto_approve: {level}{rules}}}
steps:
  - id: look
    run: {run}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with a changed file."""
    work = tmp_path / "work"
    work.mkdir()
    for words in (["init", "-q", "--template="], ["add", "."], ["commit", "-qm", "x"]):
        (work / ".gitattributes").write_text("*.x diff=odd\n")
        (work / "a.x").write_text("one\n")
        git(work, *words)
    (work / "a.x").write_text("two\n")
    return work


def git(work: Path, *words: str) -> None:
    """Run git in the repository, with a fixed author."""
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=work, check=True)


def execute(
    work: Path, run: str, level: str = "low", rules: str = "", **env: str
) -> tuple[int, str, dict[str, object]]:
    """Execute a plan of one step; returns exit code, what it printed as log, and the step as recorded."""
    (work / "plan.yml").write_text(PLAN.format(level=level, rules=rules, run=run))
    process = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q"],
        cwd=work,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    step = json.loads((work / "planrun-out/ledger.json").read_text())["steps"][0]
    logs = "".join(path.read_text() for path in sorted(work.glob(".planrun/runs/*/logs/look/*.log")))
    return process.returncode, logs + process.stderr, step


def test_a_planted_driver_waits_for_a_person(workspace: Path) -> None:
    """The text is read-only; what git would run is not, and the gate says what it is."""
    git(workspace, "config", "diff.odd.textconv", "touch ../canary; cat")
    code, said, step = execute(workspace, "git diff")
    assert (code, step["status"]) == (5, "waiting")
    assert "risk medium (diff.odd.textconv in .git/config has git run a program)" in said
    assert not (workspace.parent / "canary").exists()


def test_planted_files_that_can_be_disabled_stop_no_step(workspace: Path) -> None:
    """A planted monitor and a planted function do nothing, and the step does what its text says."""
    git(workspace, "config", "core.fsmonitor", "touch ../canary")
    code, said, step = execute(
        workspace,
        "git status --short",
        **{"BASH_FUNC_git%%": "() { : > ../canary; }", "GIT_TRACE": "../canary"},
    )
    assert (code, step["status"], step["risk"]) == (0, "completed", "read-only")
    assert " M a.x" in said
    assert not (workspace.parent / "canary").exists()


def test_a_policy_that_lets_project_code_run_lets_it_run(workspace: Path) -> None:
    """Under medium the same repository is no obstacle; the record says which class it was."""
    git(workspace, "config", "diff.odd.textconv", "touch ../canary; cat")
    code, _, step = execute(workspace, "git diff", level="medium")
    assert (code, step["risk"]) == (0, "medium")
    assert (workspace.parent / "canary").exists()


@pytest.mark.parametrize(
    ("level", "rules", "pager"),
    [("low", "", "cat"), ("high", "", "own"), ("low", ", rules: [{allow: {step: look}}]", "own")],
)
def test_only_steps_allowed_by_class_are_checked(level: str, rules: str, pager: str, workspace: Path) -> None:
    """A step that is trusted whatever its class is gets the caller's environment as it is."""
    code, said, step = execute(workspace, 'echo "<$PAGER>"', level, rules, PAGER="own")
    assert (code, step["risk"]) == (0, "read-only")
    assert f"<{pager}>" in said
