"""Rows about settings: of a project in `.planrun.yml`, of rounds, of sizes; and the plans that a project remembers."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, draft, step
from tests.gated import COMMAND, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

TWO = "version: 1\nsteps:\n  - {id: a, run: test ! -e bad}\n  - {id: b, depends_on: [a], run: echo b}\n"
WAITING = """\
version: 1
resume: {auto: {rounds: 2, pause: 1h}}
steps:
  - {id: fetch, run: 'echo fetch >> ran; exit 75', rollback: {run: echo undone >> ran}}
finally:
  - {id: tidy, run: echo tidy >> ran}
"""


def write(folder: Path, plan: str, project: str = "") -> None:
    """Write the plan and the settings of a project."""
    (folder / "plan.yml").write_text(plan)
    (folder / ".planrun.yml").write_text(project)


def runs(folder: Path) -> list[str]:
    """Return the runs whose records are there."""
    return sorted(path.name for path in (folder / ".planrun" / "runs").glob("*"))


def ledger(folder: Path) -> dict[str, Any]:
    """Return the report `ledger.json` of the last run."""
    found: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return found


@pytest.mark.shows("X-06")
def test_a_round_waits_and_is_stopped_like_a_run(planrun: Command) -> None:
    """The pause before a round is recorded and shown; a signal ends it, `finally` runs, and resume starts anew."""
    (planrun.folder / "plan.yml").write_text(WAITING)
    process = subprocess.Popen(
        [*COMMAND, "execute", "plan.yml"],
        cwd=planrun.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    records = planrun.folder / ".planrun" / "runs"
    until(lambda: any('"round_started"' in path.read_text() for path in records.glob("*/ledger.jsonl")))
    shown = planrun("status").stdout
    assert "round 1 of 2 in 1h 0m 0s: fetch failed for a passing reason" in shown or "round 1 of 2" in shown
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 143
    assert b"round 1 of 2" in said
    assert (planrun.folder / "ran").read_text() == "fetch\ntidy\n"
    (found,) = ledger(planrun.folder)["rounds"]
    assert (found["n"], found["most"], found["delay_s"], found["failed"]) == (1, 2, 3600.0, ["fetch"])
    assert planrun("verify", "last").returncode == 0
    assert "Rounds" in planrun("report", "last", "--format", "text").stdout


@pytest.mark.shows("X-09")
def test_a_project_limits_its_plans(planrun: Command) -> None:
    """Size, depth and number of steps are settings; what is too much is named with the setting, and nothing runs."""
    deep = TWO.replace("{id: a,", "{id: a, retries: {backoff: {jitter: 0}},")
    for settings, plan, code, message in (
        ("plan_size: 1KiB", TWO + "# x\n" * 300, "E003", "larger than 1 KiB"),
        ("plan_depth: 4", deep, "E012", "nested more than 4 levels"),
        ("plan_steps: 1", TWO, "E240", "the settings of the project allow 1"),
    ):
        write(planrun.folder, plan)
        assert planrun("validate", "plan.yml").returncode == 0
        write(planrun.folder, plan, f"limits: {{{settings}}}\n")
        for verb in ("run", "validate"):
            done = planrun(verb, "plan.yml")
            assert (done.returncode, code in done.stdout + done.stderr) == (2, True), done
            assert message in done.stdout + done.stderr
    assert not (planrun.folder / ".planrun").exists()


@pytest.mark.shows("X-09")
def test_a_project_keeps_so_many_runs(planrun: Command) -> None:
    """Older runs that ended are deleted after a run; one that failed is such a run, one that waits is not."""
    write(planrun.folder, TWO, "records: {stored_runs: 2}\n")
    done = [planrun("run", "plan.yml") for _ in range(3)]
    assert "deleted 1 older run" in done[-1].stderr
    assert len(runs(planrun.folder)) == 2


@pytest.mark.shows("V-61")
def test_a_completed_run_leaves_no_records(planrun: Command) -> None:
    """With `persist: false` reports are all that stays; a run that failed stays, is resumed, and is gone then."""
    write(planrun.folder, TWO, "records: {persist: false}\n")
    done = planrun("run", "plan.yml")
    assert (done.returncode, runs(planrun.folder)) == (0, [])
    assert "the records of the run are deleted" in done.stderr
    assert ledger(planrun.folder)["verdict"] == "completed"
    assert not list((planrun.folder / ".planrun").glob("history*"))
    (planrun.folder / "bad").touch()
    assert planrun("run", "plan.yml").returncode == 1
    assert len(runs(planrun.folder)) == 1
    (planrun.folder / "bad").unlink()
    assert planrun("resume", "last").returncode == 0
    assert runs(planrun.folder) == []
    (planrun.folder / ".planrun.yml").unlink()
    assert planrun("run", "plan.yml", "--no-persist").returncode == 0
    assert planrun("run", "plan.yml").returncode == 0
    assert len(runs(planrun.folder)) == 1


@pytest.mark.shows("X-07")
def test_pauses_are_a_list(planrun: Command) -> None:
    """`backoff: {delays: …}` sets each wait, the last one again; there are as many attempts more as waits."""
    write(
        planrun.folder,
        "version: 1\nsteps:\n  - {id: a, run: exit 1, retries: {backoff: {delays: [1ms, 3ms, 2ms], jitter: 0}}}\n"
        "  - {id: b, run: exit 1, retries: {max: 3, backoff: {delays: [1ms, 2ms], jitter: 0}}}\n",
    )
    assert planrun("run", "plan.yml").returncode == 1
    (path,) = planrun.folder.glob(".planrun/runs/*/ledger.jsonl")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    waits = {
        name: [
            each["delay"]
            for each in events
            if each["type"] == "attempt_ended" and each["step"] == name and "delay" in each
        ]
        for name in ("a", "b")
    }
    assert waits == {"a": [0.001, 0.003, 0.002], "b": [0.001, 0.002, 0.002]}
    assert planrun("replay", "last").returncode == 0


@pytest.mark.shows("GP-68", "D-37")
def test_a_project_suggests_no_plans(planrun: Command) -> None:
    """The keys `auto_detect` and `threshold` decide whether and from which complexity on a plan is suggested."""
    write(planrun.folder, TWO, "planner: {threshold: medium}\n")
    text = ("classify", "refactor the parser")
    assert "plan: suggested" in planrun(*text).stdout
    write(planrun.folder, TWO, "planner: {auto_detect: false}\n")
    assert "plan:" not in planrun(*text).stdout
    assert json.loads(planrun(*text, "--json").stdout)["planning"] is None
    generated = planrun("generate", "refactor the parser", "--offline", "-o", "made.yml")
    assert generated.returncode == 0, generated.stderr
    assert "complexity" not in (planrun.folder / "made.yml").read_text() + generated.stdout


def told(planrun: Command, goal: str, *words: str) -> str:
    """Return what a model would be asked for a goal."""
    done = planrun("generate", goal, "--dry-run", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.shows("V-60")
def test_what_a_model_is_asked_fits_into_the_context(planrun: Command) -> None:
    """What matters least is cut first: CI files, then build files; it is named on the screen and in the plan."""
    for name in (
        "Makefile",
        "pyproject.toml",
        "package.json",
        "tox.ini",
        "setup.cfg",
        "go.mod",
        "Cargo.toml",
        "pom.xml",
        ".gitlab-ci.yml",
    ):
        (planrun.folder / name).write_text("key: value of some length\n" * 200)
    (planrun.folder / "README.md").write_text("About the shop.\n" * 400)
    whole = told(planrun, "fix the login")
    assert 'name="file .gitlab-ci.yml"' in whole
    write(planrun.folder, TWO, "planner: {max_context_tokens: 10000}\n")
    cut = told(planrun, "fix the login")
    assert len(cut) < len(whole)
    assert 'name="file .gitlab-ci.yml"' not in cut
    assert "About the shop." in cut
    assert "Goal: fix the login" in cut
    with FakeMessages([draft([step("test", "test -e plan.yml")])]) as api:
        env = {**api.env, "PLANRUN_LLM_MODEL": "model-a"}
        done = planrun("generate", "fix the login", "-o", "made.yml", env=env)
    assert done.returncode == 0, done.stderr
    assert "cut to fit into the context: file .gitlab-ci.yml (0 of " in done.stderr
    assert "cut from what the model was told" in (planrun.folder / "made.yml").read_text()
    assert planrun("generate", "x", "--dry-run", "--max-context-tokens", "9999").returncode == 2


KEPT = """\
version: 1
goal: Release the shop to production
secrets: [TOKEN]
steps:
  - {id: ship, secrets: [TOKEN], run: 'true'}
  - {id: note, run: echo a-secret-of-the-shop}
"""


@pytest.mark.shows("D-60", "D-61")
def test_plans_that_completed_are_examples_for_goals_alike(planrun: Command) -> None:
    """They are kept masked in a private folder, offered for goals alike and no others, listed and cleared."""
    (planrun.folder / "PLANRUN.md").write_text("The shop is released on Tuesdays.\n")
    write(planrun.folder, KEPT, "memory: {plans: true}\n")
    done = planrun("run", "plan.yml", env={"TOKEN": "a-secret-of-the-shop"})
    assert done.returncode == 0, done.stderr
    (folder,) = planrun.folder.glob(".planrun/plans")
    (path,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "a-secret-of-the-shop" not in path.read_text()
    (planrun.folder / "plan.yml").unlink()
    text = told(planrun, "release the shop again")
    assert "plan of an earlier run that completed, for the goal Release the shop" in text
    assert "id: ship" in text
    assert "The shop is released on Tuesdays." in text
    assert "earlier run" not in told(planrun, "mend the parser of dates")
    assert "Release the shop to production" in planrun("memory", "plans").stdout
    assert planrun("memory", "plans", "clear").stdout == "removed 1 plan\n"
    assert "earlier run" not in told(planrun, "release the shop again")
    write(planrun.folder, TWO, "memory: {project: missing.md}\n")
    wrong = planrun("generate", "x", "--dry-run")
    assert (wrong.returncode, "cannot read missing.md" in wrong.stderr) == (2, True)
