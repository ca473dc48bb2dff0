"""`--dry-run` of execute, resume and retry: what would run, and nothing starts or is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PLAN = """\
version: 1
name: release
params:
  target: {type: string, default: staging}
limits: {max_parallel: 2}
steps:
  - {id: lint, run: touch ran-lint}
  - id: test
    matrix: {py: ["3.11", "3.12"]}
    run: touch "ran-${{ matrix.py }}"
  - {id: build, depends_on: [test], run: "echo v=1 >> $PLANRUN_OUTPUT", outputs: {v: string}}
  - {id: push, depends_on: [build], run: "git push ${{ params.target }} ${{ steps.build.outputs.v }}"}
  - {id: prod, run: echo prod, condition: params.target == 'prod'}
  - {id: checked, run: echo checked, condition: steps.build.outputs.v == '2', depends_on: [build]}
  - {id: rescue, run: echo rescue, depends_on: {build: failed}}
  - {id: strictly, run: echo strictly, depends_on: {prod: completed}}
finally:
  - {id: bye, run: touch ran-bye}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Write the plan and return its folder."""
    (tmp_path / "plan.yml").write_text(PLAN)
    return tmp_path


def names(folder: Path) -> list[str]:
    """Return every file and folder below a folder, with its size and the time of its last change."""
    return sorted(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in folder.rglob("*"))


def test_it_shows_the_steps_in_order_and_writes_nothing(say: Say, plan: Path) -> None:
    """Levels, commands with known values, conditions, and what is skipped with the reason; the folder is unchanged."""
    before = names(plan)
    said = say("execute", "plan.yml", "--dry-run")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(
        "release: dry run of 10 steps, 2 at a time; nothing starts, nothing is written\n  policy: "
    )
    assert (
        '\n  target: "staging"\n\nlevel 1: 3 steps, 2 at a time\n  lint: low\n      $ touch ran-lint\n'
        in said.out
    )
    assert (
        '  test[py=3.12]: low\n      $ touch "ran-3.12"\n\nlevel 2\n  build: low\n      after test\n'
        in said.out
    )
    assert "      $ git push staging ${{ steps.build.outputs.v }}\n" in said.out
    assert "  checked: read-only\n      if steps.build.outputs.v == '2'\n      after build\n" in said.out
    assert "  rescue: read-only\n      only after build" in said.out
    assert "\nfinally, level 4\n  bye: low\n" in said.out
    assert said.out.endswith(
        "\nskipped\n  prod: its condition is false: params.target == 'prod'\n  strictly: prod does not run\n"
        "\n8 of 10 steps would run, 2 of them perhaps\n"
    )
    assert names(plan) == before


@pytest.mark.usefixtures("plan")
def test_parameters_and_the_selection_of_this_invocation_count(say: Say) -> None:
    """With a parameter another condition holds; what the selection leaves out is named."""
    said = say(
        "execute", "plan.yml", "--dry-run", "--param", "target=prod", "--only", "prod", "--only", "lint"
    )
    assert "  prod: read-only\n      $ echo prod\n" in said.out
    assert "left out by the selection: test[py=3.11], test[py=3.12], build, push, " in said.out
    assert said.out.endswith("\n3 of 10 steps would run\n")
    wrong = say("execute", "plan.yml", "--dry-run", "--only", "pord")
    assert (wrong.code, wrong.out) == (2, "")


def test_gates_and_denials_of_the_policy_are_foreseen(say: Say, plan: Path) -> None:
    """A step above the level waits, with 0; one that a policy denies is denied, with 3."""
    said = say("execute", "plan.yml", "--dry-run", "--auto-approve", "low")
    assert said.code == 0
    assert "  push: high, waits for an approval of push (option:auto_approve: " in said.out
    assert said.out.endswith("; waiting for an answer: push\n")
    (plan / "policy.yml").write_text("rules:\n  - deny: {command: 'git push*'}\n")
    denied = say("execute", "plan.yml", "--dry-run", "--policy", "policy.yml")
    assert denied.code == 3
    assert "  push: high, DENIED by " in denied.out
    assert denied.out.endswith("; denied: push\n")
    assert say("execute", "plan.yml", "--policy", "policy.yml").code == 3  # what a run says, too


def test_as_json_it_is_one_document(say: Say, plan: Path) -> None:
    """--json has the fate of each step with its reason, decision and command."""
    before = names(plan)
    found = json.loads(say("execute", "plan.yml", "--dry-run", "--json").out)
    fates = {step["id"]: (step["fate"], step["level"]) for step in found["steps"]}
    assert fates["lint"] == ("runs", 1)
    assert fates["push"] == ("runs", 3)
    assert fates["checked"] == ("may_run", 3)
    assert fates["prod"] == ("skipped", None)
    assert (found["dry_run"], found["exit_code"], found["params"]) == (True, 0, {"target": "staging"})
    assert names(plan) == before


def test_missing_secrets_and_programs_are_warnings(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret without a value, and a program that PATH does not have, are named; a value of a secret is masked."""
    monkeypatch.delenv("ABSENT", raising=False)
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsecrets: [ABSENT, TOKEN]\nsteps:\n"
        "  - {id: one, run: 'no-such-program-here && echo x', secrets: [ABSENT, TOKEN]}\n"
        "  - {id: two, run: 'own() { echo x; }; own; ./script.sh; [ -e x ]'}\n"
    )
    said = say("execute", "plan.yml", "--dry-run")
    assert said.code == 0
    assert "which is not set in planrun's environment; a run would be refused\n" in said.out
    assert said.out.count("is not on PATH now") == 1
    assert "  one: no-such-program-here is not on PATH now\n" in said.out


def test_members_of_a_group_share_its_fate(say: Say, tmp_path: Path) -> None:
    """The condition of a matrix is that of each instance, and what waits for a skipped one is foreseen, too."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: none, matrix: {n: [1, 2]}, condition: run.ref == 'nowhere', run: echo x}\n"
        "  - {id: strictly, depends_on: {none: completed}, run: echo y}\n"
    )
    found = json.loads(say("execute", "plan.yml", "--dry-run", "--json").out)
    assert {step["id"]: step["fate"] for step in found["steps"]} == {
        "none[n=1]": "skipped",
        "none[n=2]": "skipped",
        "strictly": "skipped",
    }
    ran = json.loads(say("execute", "plan.yml", "--json").out)
    assert {step["status"] for step in ran["steps"]} == {"skipped"}


def test_cached_results_are_foreseen(say: Say, tmp_path: Path) -> None:
    """Of a step with `cache` it says whether its result would be used."""
    (tmp_path / "in.txt").write_text("1")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps: [{id: one, run: cat in.txt, cache: {inputs: [in.txt]}}]\n"
    )
    assert "one: read-only, not cached: " in say("execute", "plan.yml", "--dry-run").out
    say("execute", "plan.yml")
    assert "one: read-only, cached: the result of run " in say("execute", "plan.yml", "--dry-run").out
    (tmp_path / "in.txt").write_text("2")
    assert "one: read-only, not cached: " in say("execute", "plan.yml", "--dry-run").out


def test_resume_and_retry_say_what_would_run_again(say: Say, tmp_path: Path) -> None:
    """Of a failed run: what is kept, what runs again and why; the records are unchanged."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: good, run: echo good}\n  - {id: bad, depends_on: [good], run: exit 1}\n"
        "  - {id: later, depends_on: [bad], run: echo later}\n"
    )
    say("execute", "plan.yml")
    before = names(tmp_path)
    said = say("resume", "last", "--dry-run")
    assert said.code == 0
    assert said.out == (
        "kept as they are: good\nwould run again:\n  bad: failed\n  later: blocked\n"
        "dry run: nothing was started, nothing was written\n"
    )
    again = json.loads(say("retry", "last", "good", "--dry-run", "--json").out)
    assert {step["id"]: step["fate"] for step in again["steps"]} == {
        "good": "rerun",
        "bad": "rerun",
        "later": "rerun",
    }
    assert names(tmp_path) == before
    assert "exclude each other" in say("resume", "last", "--dry-run", "--discard").err


def test_every_key_of_a_plan_can_be_foreseen(say: Say, tmp_path: Path) -> None:
    """Plans with every key of the language have a dry run, which is no error of planrun's own and leaves no file."""
    plans = Path(__file__).parent.parent / "frozen" / "plans"
    shutil.copytree(plans, tmp_path, dirs_exist_ok=True)
    before = names(tmp_path)
    codes = {
        path.name: say("execute", path.name, "--dry-run").code for path in sorted(tmp_path.glob("*.yml"))
    }
    assert len(codes) > 5
    assert set(codes.values()) <= {0, 2, 3}
    assert 0 in codes.values()
    assert names(tmp_path) == before
