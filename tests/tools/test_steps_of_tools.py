"""Whole runs of steps that call tools."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.tools.calls import execute, git, repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = """\
version: 1
params: {number: {type: integer, default: 3}}
steps:
  - {id: before, tool: git status}
  - id: edit
    depends_on: [before]
    tool: file.replace
    args: {path: a.txt, old: two, new: "zwei ${{ params.number }}"}
  - id: config
    depends_on: [edit]
    tool: config_patch
    args:
      filePath: c.json
      operations:
        - {op: test, path: /a, value: 1}
        - {op: replace, path: /a, value: "${{ params.number }}"}
  - id: patch
    depends_on: [config]
    tool: git applypatch
    args:
      patch: |
        --- a/a.txt
        +++ b/a.txt
        @@ -1,3 +1,3 @@
        -one
        +eins
         zwei 3
         three
  - {id: diff, depends_on: [patch], tool: git_diff}
  - id: commit
    depends_on: [diff]
    tool: git.commit
    args: {message: "Change ${{ steps.diff.outputs.files | join(', ') }}", all: true}
  - id: told
    depends_on: [commit]
    tool: run-command
    args: {commands: ["test ${{ steps.commit.outputs.sha }} = $(git rev-parse HEAD)", "echo last"]}
"""


@pytest.mark.shows("N-30")
@pytest.mark.parametrize("name", ["config_patch", "json-patch", "json_patch"])
def test_a_configuration_is_patched_whole_or_not_and_by_the_policy(planrun: Command, name: str) -> None:
    """By other tools' names and spellings; a `test` that fails, a policy and YAML each leave the file as it was."""
    config = planrun.folder / "app.json"
    before = '{\n  "b": 1.50,\n  "a": [1, 2]\n}\n'
    config.write_text(before)
    (planrun.folder / "app.yml").write_text("b: 1\n")
    plan = planrun.folder / "plan.yml"

    def patched(*operations: str, file: str = "app.json", policy: str = "") -> tuple[int, str]:
        plan.write_text(
            f"version: 1\n{policy}steps:\n  - id: a\n    tool: {name}\n"
            f"    args: {{filePath: {file}, operations: [{', '.join(operations)}]}}\n"
        )
        done = planrun("execute", "plan.yml")
        return done.returncode, done.stderr

    add, wrong = "{op: add, path: /c, value: x}", "{op: test, path: /b, value: 2}"
    assert patched(add, wrong)[0] == 1
    assert patched(add, policy="policy: {auto_approve: read-only}\n")[0] == 5
    code, said = patched(add, file="app.yml")
    assert (code, "only JSON can be patched; YAML would lose its comments" in said) == (1, True)
    assert (config.read_text(), (planrun.folder / "app.yml").read_text()) == (before, "b: 1\n")
    assert patched(add, "{op: remove, path: /a/0}")[0] == 0
    assert config.read_text() == '{\n  "b": 1.50,\n  "a": [\n    2\n  ],\n  "c": "x"\n}\n'


@pytest.mark.shows("N-15", "N-22", "N-23", "N-26", "N-27", "N-28", "N-29", "N-30", "N-31", "GP-56")
def test_a_plan_edits_patches_and_commits(tmp_path: Path) -> None:
    """Each tool does its part, later steps read what it hands on, and the ledger has every call by its one name."""
    work = repository(tmp_path / "work")
    (work / "c.json").write_text('{\n    "a": 1,\n    "b": 1.50\n}\n')
    git(work, "add", ".")
    git(work, "commit", "-qm", "second")
    ledger = execute(work, PLAN)
    assert ledger["verdict"] == "completed", ledger["steps"]
    assert (work / "a.txt").read_text() == "eins\nzwei 3\nthree\n"
    assert (work / "c.json").read_text() == '{\n    "a": 3,\n    "b": 1.50\n}\n'
    assert git(work, "log", "-1", "--format=%s") == "Change a.txt, c.json\n"
    steps = {step["id"]: step for step in ledger["steps"]}
    calls = {name: step["attempts"][0]["tools"] for name, step in steps.items()}
    assert {name: found[0]["name"] for name, found in calls.items()} == {
        "before": "git.status",
        "edit": "file.replace",
        "config": "json_patch",
        "patch": "git.apply_patch",
        "diff": "git.diff",
        "commit": "git.commit",
        "told": "shell",
    }
    (call,) = calls["edit"]
    assert call["id"] == "edit.1"
    assert call["args"] == {"path": "a.txt", "old": "two", "new": "zwei 3"}
    assert call["ok"] is True
    assert call["duration"] > 0
    assert steps["commit"]["outputs"]["files"] == ["a.txt", "c.json"]
    assert steps["before"]["kind"] == "tool"
    assert steps["before"]["risk"] == "read-only"


def test_arguments_that_do_not_fit_when_they_are_known_start_nothing(tmp_path: Path) -> None:
    """A value of another type than the tool takes is refused before there is a process."""
    plan = """\
version: 1
params: {much: {type: string, default: yes please}}
steps:
  - {tool: file.remove, args: {paths: a.txt, recursive: "${{ params.much }}"}}
"""
    work = repository(tmp_path / "work")
    (step,) = execute(work, plan)["steps"]
    assert (step["status"], step["reason"]) == ("failed", "refused")
    message = "file.remove: `args.recursive` must be a boolean, got a string"
    assert step["attempts"][0]["error"]["message"] == message
    assert step["attempts"][0]["tools"] == []
    assert (work / "a.txt").exists()


def test_a_failed_call_reports_the_reason(tmp_path: Path) -> None:
    """The log has the reason, and the record of the call marks it as failed."""
    plan = "version: 1\nsteps:\n  - {id: x, tool: file.read, args: {path: none.txt}}\n"
    work = repository(tmp_path / "work")
    (step,) = execute(work, plan)["steps"]
    assert (step["status"], step["reason"]) == ("failed", "exit")
    assert step["attempts"][0]["tools"][0]["ok"] is False
    (log,) = work.glob(".planrun/runs/*/logs/x/1.log")
    assert log.read_text() == "file.read: none.txt: there is no such file\n"


def test_long_arguments_reach_the_tool_whole(tmp_path: Path) -> None:
    """A value that is too long for a command line goes through a file; the ledger has its beginning."""
    text = "x" * 300_000 + "\n"
    plan = (
        f"version: 1\nsteps:\n  - tool: file.write\n    args: {{path: b.txt, content: {json.dumps(text)}}}\n"
    )
    work = repository(tmp_path / "work")
    (step,) = execute(work, plan)["steps"]
    assert step["status"] == "completed"
    assert (work / "b.txt").read_text() == text
    kept = step["attempts"][0]["tools"][0]["args"]["content"]
    assert kept == "x" * 200 + "… 299801 more characters"


@pytest.mark.parametrize(
    ("rule", "tool", "code"),
    [
        ("deny: {tool: file.*}", "file.mkdir, args: {paths: new}", 3),
        ("deny: {tool: git.commit}", "git commit, args: {message: x, all: true}", 3),
        ("deny: {tool: shell}", 'bash, args: {command: "mkdir new"}', 3),
        ("deny: {command: git commit *}", "git commit, args: {message: x, all: true}", 3),
        ("deny: {tool: git.*}", "file.mkdir, args: {paths: new}", 0),
        ("deny: {effect: destroys}", "file.remove, args: {paths: a.txt}", 3),
    ],
)
def test_rules_of_policies_name_tools(tmp_path: Path, rule: str, tool: str, code: int) -> None:
    """A rule about a tool holds for its calls, whatever they are called in the plan."""
    work = repository(tmp_path / "work")
    plan = f"version: 1\npolicy: {{rules: [{rule}]}}\nsteps:\n  - {{tool: {tool}}}\n"
    assert execute(work, plan)["exit_code"] == code
    assert (work / "new").exists() is (code == 0)
    assert (work / "a.txt").exists()


@pytest.mark.parametrize(
    ("call", "risk"),
    [
        ("git.status", "read-only"),
        ("git.diff, args: {paths: a.txt}", "read-only"),
        ("git.diff, args: {paths: .env}", "high"),
        ("git.commit, args: {message: x}", "low"),
        ("git.commit, args: {message: x, hooks: true}", "medium"),
        ("git.apply_patch, args: {file: x.patch}", "medium"),
        ('git.apply_patch, args: {patch: "--- a/.github/x.yml\\n+++ b/.github/x.yml\\n"}', "high"),
        ("file.read, args: {path: a.txt}", "read-only"),
        ("file.read, args: {path: .env}", "high"),
        ("file.glob, args: {patterns: 'src/**/*.py'}", "read-only"),
        ("file.write, args: {path: a.txt, content: x}", "low"),
        ("file.write, args: {path: .github/workflows/ci.yml, content: x}", "high"),
        ("file.write, args: {path: other/plan.yml, content: x}", "high"),
        ("file.write, args: {path: ../x, content: x}", "high"),
        ("file.write, args: {path: x.sh, content: x, executable: true}", "medium"),
        ('file.write, args: {path: "${{ env.HOME }}", content: x}', "high"),
        ("file.copy, args: {path: a.txt, to: CODEOWNERS}", "high"),
        ("file.move, args: {path: ci.plan.lock.json, to: x}", "high"),
        ("file.remove, args: {paths: [a.txt, b.txt]}", "medium"),
        ("file.remove, args: {paths: [a.txt, .git/config]}", "high"),
        ("json_patch, args: {file: a.json, operations: [{op: remove, path: /a}]}", "low"),
        ("json_patch, args: {file: x.lock.json, operations: [{op: remove, path: /a}]}", "high"),
        ("shell, args: {command: ls}", "read-only"),
        ("shell, args: {commands: [ls, 'curl https://example.org | sh']}", "high"),
        ("file.mkdir, env: {LD_PRELOAD: ./x.so}, args: {paths: a}", "high"),
    ],
)
def test_the_risk_is_that_of_the_call(tmp_path: Path, call: str, risk: str) -> None:
    """What a call names decides about its class: ordinary files, files that control, secrets, unknown ones."""
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps:\n  - {{id: x, tool: {call}}}\n")
    process = subprocess.run(
        [sys.executable, "-m", "planrun", "show", "plan.yml", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    (step,) = json.loads(process.stdout)["steps"]
    assert step["risk"] == risk, step


def test_the_digest_depends_on_the_call_and_not_on_its_spelling(tmp_path: Path) -> None:
    """Another spelling of a tool or an argument is the same plan; another argument is another one."""

    def digest(tool: str) -> str:
        (tmp_path / "plan.yml").write_text(f"version: 1\nsteps:\n  - {{id: x, tool: {tool}}}\n")
        process = subprocess.run(
            [sys.executable, "-m", "planrun", "show", "plan.yml", "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return str(json.loads(process.stdout)["plan"]["digest"])

    first = digest("json_patch, args: {file: a.json, operations: [{op: remove, path: /a}]}")
    same = digest("config-patch, args: {operations: [{path: /a, op: remove}], filePath: a.json}")
    other = digest("json_patch, args: {file: a.json, operations: [{op: remove, path: /b}]}")
    assert first == same
    assert first != other


def test_a_difference_shows_which_argument_changed(tmp_path: Path) -> None:
    """Reviewers see the old and the new value, and unchanged parts are left out."""
    for name, content in (("old.yml", "one"), ("new.yml", "two")):
        (tmp_path / name).write_text(
            f"version: 1\nname: p\nsteps:\n  - {{id: x, tool: file.write, args: {{path: a.txt, content: {content}}}}}\n"
        )
    process = subprocess.run(
        [sys.executable, "-m", "planrun", "diff", "old.yml", "new.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "~ args.content: one → two" in process.stdout
    assert "~ tool" not in process.stdout
    assert "a.txt" not in process.stdout
