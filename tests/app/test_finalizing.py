"""Pending cleanup of a killed or cancelled run, done by `planrun finalize`: real processes and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT
from tests.gated import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

KILL = "kill -9 $PPID; sleep 600"  # a step that ends planrun as a power cut does


def plan(folder: Path, steps: str, cleanup: str = "{id: end, run: echo end >> order}") -> None:
    """Write a plan of these steps, with one `finally` step."""
    rows = "\n".join(f"  - {row}" for row in steps.strip().splitlines())
    (folder / "plan.yml").write_text(f"version: 1\nsteps:\n{rows}\nfinally:\n  - {cleanup}\n")


def undoable(name: str, rest: str = "run: 'true'", more: str = "") -> str:
    """One step as a line, which says how it is undone."""
    return f"{{id: {name}, {rest}, rollback: {{run: 'echo undo {name} >> order'{more}}}}}"


def order(folder: Path) -> list[str]:
    """What steps wrote, in order."""
    path = folder / "order"
    return path.read_text().splitlines() if path.exists() else []


def ledger(folder: Path) -> dict[str, Any]:
    """Return the last `ledger.json`."""
    data: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    return data


def test_pending_cleanup_of_a_killed_run_is_done_once(tmp_path: Path, planrun: Command) -> None:
    """What completed is undone, what was cut short as well if its rollback is for that; then cleanup and the end."""
    plan(
        tmp_path,
        undoable("a") + "\n" + undoable("b", f"depends_on: [a], run: '{KILL}'", ", on_failed: true"),
    )
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    assert "pending: undo a and run end; to finish: planrun finalize" in planrun("status").stdout
    assert order(tmp_path) == []
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["undo b", "undo a", "end"]
    report = ledger(tmp_path)
    assert (report["verdict"], report["exit_code"], report["rollback"]["status"]) == (
        "cancelled",
        143,
        "completed",
    )
    assert [step["status"] for step in report["steps"]] == ["completed", "cancelled", "completed"]
    assert report["steps"][1]["attempts"][0]["status"] == "lost"
    assert planrun("verify", "last").returncode == 0
    again = planrun("finalize", "last")
    assert (again.returncode, again.stderr) == (0, "planrun: nothing to finalize\n")
    assert order(tmp_path) == ["undo b", "undo a", "end"]
    assert "owed" not in planrun("status").stdout


def test_a_failure_before_the_kill_makes_the_run_failed(tmp_path: Path, planrun: Command) -> None:
    """Nothing of `steps` starts, and what had failed counts."""
    rows = [
        undoable("a"),
        "{id: bad, depends_on: [a], run: exit 3}",
        f"{{id: k, depends_on: {{bad: done}}, run: '{KILL}'}}",
    ]
    plan(tmp_path, "\n".join([*rows, "{id: late, depends_on: {k: done}, run: echo late >> order}"]))
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["undo a", "end"]
    assert (ledger(tmp_path)["verdict"], ledger(tmp_path)["exit_code"]) == ("failed", 1)


def test_a_kill_while_undoing(tmp_path: Path, planrun: Command) -> None:
    """What was undone stays so, a lost attempt at undoing is made again, and what had not begun is done."""
    once = f"echo undo b >> order; test -e once || {{ touch once; {KILL}; }}"
    rows = [
        undoable("a"),
        f"{{id: b, depends_on: [a], run: 'true', rollback: {{run: '{once}'}}}}",
        undoable("c", "depends_on: [b], run: 'true'"),
        "{id: bad, depends_on: [c], run: exit 3}",
    ]
    plan(tmp_path, "\n".join(rows))
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    assert order(tmp_path) == ["undo c", "undo b"]
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["undo c", "undo b", "undo b", "undo a", "end"]
    rollbacks = {step["id"]: step for step in ledger(tmp_path)["rollback"]["steps"]}
    assert [attempt["status"] for attempt in rollbacks["undo:b"]["attempts"]] == ["lost", "completed"]


def test_what_must_not_be_repeated_is_not(tmp_path: Path, planrun: Command) -> None:
    """With `idempotent: false` a lost rollback attempt is a failure with its exit code; others are undone."""
    rows = [
        undoable("a"),
        undoable("b", "depends_on: [a], run: 'true'", ", idempotent: false").replace(
            "order'", f"order; {KILL}'"
        ),
        "{id: bad, depends_on: [b], run: exit 3}",
    ]
    plan(tmp_path, "\n".join(rows))
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    done = planrun("finalize", "last")
    assert done.returncode == 1
    assert "b: not undone: its last attempt has no end and it is not idempotent" in done.stderr
    assert order(tmp_path) == ["undo b", "undo a", "end"]
    assert ledger(tmp_path)["rollback"]["status"] == "failed"
    assert planrun("finalize", "last").returncode == 0


def test_a_kill_in_cleanup_undoes_nothing(tmp_path: Path, planrun: Command) -> None:
    """When all steps had completed only the cleanup is pending, and the run completes."""
    once = f"test -e once || {{ touch once; {KILL}; }}; echo end >> order"
    plan(tmp_path, undoable("a"), f"{{id: end, run: '{once}'}}")
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["end"]
    assert (ledger(tmp_path)["verdict"], ledger(tmp_path)["rollback"]["status"]) == ("completed", "none")


def test_cleanup_that_a_second_signal_cut_short_is_pending(tmp_path: Path, planrun: Command) -> None:
    """The first signal leaves rollbacks pending, the second the `finally` step; both are done later."""
    twice = "test -e once || { touch once; kill -TERM $PPID; sleep 600; }; echo end >> order"
    plan(tmp_path, undoable("a") + "\n{id: b, depends_on: [a], run: 'kill -TERM $PPID; sleep 600'}",
         f"{{id: end, run: '{twice}'}}")  # fmt: skip
    assert planrun("execute", "plan.yml").returncode == 143
    assert order(tmp_path) == []
    assert "pending: undo a and run end; to finish: planrun finalize" in planrun("status").stdout
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["undo a", "end"]


def test_a_failed_cleanup_sets_the_exit_code(tmp_path: Path, planrun: Command) -> None:
    """A failure during pending cleanup is exit code 1."""
    plan(tmp_path, f"{{id: a, run: '{KILL}'}}", "{id: end, run: exit 4}")
    assert planrun("execute", "plan.yml").returncode == -signal.SIGKILL
    assert planrun("finalize", "last").returncode == 1
    assert ledger(tmp_path)["verdict"] in ("failed", "cancelled")


def test_runs_without_pending_cleanup(tmp_path: Path, planrun: Command) -> None:
    """Ended, paused and never started runs have no pending cleanup; an unknown run is an error."""
    plan(tmp_path, "{id: a, run: 'true'}")
    assert planrun("execute", "plan.yml").returncode == 0
    assert planrun("finalize", "last").stderr == "planrun: nothing to finalize\n"
    (tmp_path / "order").unlink()
    plan(tmp_path, undoable("a") + "\n{id: q, depends_on: [a], ask: {question: 'Go on?'}}")
    assert planrun("execute", "plan.yml").returncode == 5
    assert planrun("finalize", "last").stderr == "planrun: nothing to finalize\n"
    assert order(tmp_path) == []
    assert planrun("cancel", "last").returncode == 0  # now it does not go on any more
    assert planrun("finalize", "last").returncode == 0
    assert order(tmp_path) == ["undo a", "end"]
    assert planrun("finalize", "20200101").returncode == 2


def test_an_active_run_is_refused(tmp_path: Path, planrun: Command) -> None:
    """Exit code 2, with the process that holds it; it is left alone."""
    plan(
        tmp_path,
        undoable("a")
        + "\n{id: b, depends_on: [a], run: 'touch there; until test -e go; do sleep 0.05; done'}",
    )
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as going:
        try:
            until((tmp_path / "there").exists)
            finalized = planrun("finalize", "last")
        finally:
            (tmp_path / "go").touch()
        assert going.wait(LIMIT) == 0
    assert finalized.returncode == 2
    assert f"process {going.pid} on {os.uname().nodename}" in finalized.stderr
    assert order(tmp_path) == ["end"]


@pytest.mark.shows("N-55")
def test_real_things_are_gone(tmp_path: Path, planrun: Command) -> None:
    """A branch, a tag and a file that steps made are gone after a failure, and a process that one started."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q", "."], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    rows = [
        "{id: branch, run: git branch candidate, rollback: {run: git branch -D candidate}}",
        "{id: tag, depends_on: [branch], run: git tag v1, rollback: {run: git tag -d v1}}",
        "{id: file, depends_on: [tag], run: touch it, rollback: {tool: file.remove, args: {paths: [it]}}}",
        "{id: bad, depends_on: [file], run: git tag v1}",
    ]
    plan(tmp_path, "\n".join(rows))
    done = planrun("execute", "plan.yml")
    assert done.returncode == 1, done.stderr
    names = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "candidate" not in names
    assert "tags" not in names
    assert not (tmp_path / "it").exists()
    assert [step["id"] for step in ledger(tmp_path)["rollback"]["steps"]] == [
        "undo:file",
        "undo:tag",
        "undo:branch",
    ]
