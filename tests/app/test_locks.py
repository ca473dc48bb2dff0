"""`planrun lock` writes what was reviewed, and `--locked` runs that or nothing, saying exactly what drifted."""

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
params: {target: {type: string, default: staging}}
limits: {max_parallel: 2}
steps:
  - {id: a, run: ./a.sh}
  - {id: b, depends_on: [a], run: "echo ${{ params.target }} >> seen"}
"""


@pytest.fixture
def locked(planrun: Run, tmp_path: Path) -> Path:
    """Give the test a workspace whose plan has a lock."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "a.sh").write_text("#!/bin/sh\necho a >> seen\n")
    (tmp_path / "a.sh").chmod(0o755)
    done = planrun("lock", "plan.yml")
    assert done.returncode == 0, done.stderr
    return tmp_path


def lock(folder: Path) -> Any:
    """The lock as data."""
    return json.loads((folder / "plan.lock.json").read_bytes())


def test_a_lock_is_readable_and_the_same_each_time(planrun: Run, locked: Path) -> None:
    """One line for each step and script; comments and the order of keys change nothing."""
    before = (locked / "plan.lock.json").read_text()
    (locked / "plan.yml").write_text(PLAN.replace("{id: a, run: ./a.sh}", "{run: ./a.sh, id: a} # the first"))
    assert planrun("lock", "plan.yml").returncode == 0
    assert (locked / "plan.lock.json").read_text() == before
    assert set(lock(locked)) == {
        *("version", "plan", "digest", "canonical", "params", "scripts", "head", "steps"),
    }
    assert [row for row in before.splitlines() if row.startswith('    "a')] != []
    assert planrun("lock", "plan.yml", "--check").returncode == 0


def test_locked_runs_what_is_locked(planrun: Run, locked: Path) -> None:
    """The run has the digest of the lock, and its records say that it ran locked."""
    assert planrun("execute", "plan.yml", "--locked").returncode == 0
    (ledger,) = locked.glob(".planrun/runs/*/ledger.jsonl")
    started = json.loads(ledger.read_text().splitlines()[0])
    assert started["plan"]["digest"] == lock(locked)["digest"]
    assert started["options"]["locked"] is True


DRIFTS: dict[str, tuple[str, list[str]]] = {
    "a step": ("plan", ["~ step b changed"]),
    "a new step": ("new", ["+ step c is new"]),
    "a script": ("script", ["~ script a.sh changed"]),
    "a parameter": ("param", ['~ parameter target changed: "staging", now "prod"']),
    "the head": ("head", ["~ plan limits changed"]),
    "the order": ("order", ["~ the order of its steps changed"]),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_drift_is_denied_and_named(planrun: Run, locked: Path, name: str) -> None:
    """Exit code 3, one line for each thing that differs, and nothing ran."""
    kind, lines = DRIFTS[name]
    words: list[str] = []
    plan = PLAN
    if kind == "plan":
        plan = PLAN.replace(">> seen", ">> seen; true")
    elif kind == "new":
        plan = PLAN + "  - {id: c, run: 'true'}\n"
    elif kind == "script":
        (locked / "a.sh").write_text("#!/bin/sh\necho evil >> seen\n")
    elif kind == "param":
        words = ["--param", "target=prod"]
    elif kind == "head":
        plan = PLAN.replace("max_parallel: 2", "max_parallel: 3")
    else:
        rows = PLAN.splitlines(keepends=True)
        plan = "".join([*rows[:4], rows[5], rows[4]])
    (locked / "plan.yml").write_text(plan)
    for verb in (["execute", "plan.yml", "--locked"], ["lock", "plan.yml", "--check"]):
        done = planrun(*verb, *words)
        assert done.returncode == 3, done.stderr
        lines_shown = [line.strip() for line in done.stderr.splitlines()[1:]]
        assert [line.partition(": digest")[0] for line in lines_shown] == lines
    assert not (locked / "seen").exists()
    assert not (locked / ".planrun" / "runs").exists() or not list((locked / ".planrun" / "runs").iterdir())


SPOILED = {
    "gone": (None, "no such file: plan.lock.json"),
    "no JSON": ("{", "is not a lock file: it is not JSON"),
    "a list": ("[]", "is not a lock file: expected a JSON object"),
    "other keys": ('{"version": 1}', 'is not a lock file: "plan" is missing'),
    "another version": ("version", "has version 2"),
    "another plan": ("plan", "is the lock of other.yml"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_no_lock_or_a_bad_one_is_exit_code_2(planrun: Run, locked: Path, name: str) -> None:
    """Nothing runs, and it is said what is wrong with the file."""
    text, message = SPOILED[name]
    path = locked / "plan.lock.json"
    if text is None:
        path.unlink()
    elif text in ("version", "plan"):
        path.write_text(json.dumps({**lock(locked), text: 2 if text == "version" else "other.yml"}))
    else:
        path.write_text(text)
    done = planrun("execute", "plan.yml", "--locked")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (locked / "seen").exists()


def test_a_resumed_run_takes_a_locked_plan_alone(planrun: Run, locked: Path) -> None:
    """`resume --plan --locked` refuses drift as `execute` does; without --plan there is nothing to compare."""
    (locked / "plan.yml").write_text(PLAN.replace("./a.sh}", "./a.sh; false}"))
    assert planrun("execute", "plan.yml").returncode == 1
    done = planrun("resume", "last", "--plan", "plan.yml", "--locked")
    assert done.returncode == 3
    assert "~ step a changed" in done.stderr
    assert planrun("resume", "last", "--locked").returncode == 2
    (locked / "plan.yml").write_text(PLAN)
    assert planrun("resume", "last", "--plan", "plan.yml", "--locked").returncode == 0


def test_a_policy_can_be_a_part_of_the_lock(planrun: Run, locked: Path) -> None:
    """Runs have to be under that policy, as it was; a lock without one says nothing about policies."""
    (locked / "policy.yml").write_text("auto_approve: high\n")
    assert planrun("execute", "plan.yml", "--locked", "--policy", "policy.yml").returncode == 0
    assert planrun("lock", "plan.yml", "--policy", "policy.yml").returncode == 0
    assert planrun("execute", "plan.yml", "--locked", "--policy", "policy.yml").returncode == 0
    done = planrun("execute", "plan.yml", "--locked")
    assert done.returncode == 3
    assert "- policy policy.yml is not in force: give it by --policy" in done.stderr
    (locked / "policy.yml").write_text("auto_approve: medium\n")
    done = planrun("execute", "plan.yml", "--locked", "--policy", "policy.yml")
    assert done.returncode == 3
    assert "~ policy policy.yml is not what policy.yml was" in done.stderr
