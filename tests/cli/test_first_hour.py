"""What a new user sees of a run: few words, no false alarms, and a clean working tree."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = "version: 1\nsteps:\n  - {id: a, run: 'true'}\n  - {id: b, run: 'exit 3', on_failure: continue}\n"


def test_the_working_tree_stays_clean(planrun: Command) -> None:
    """`git status` shows no files of a run: records and reports are in folders that ignore themselves."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    who = {f"GIT_{role}_{name}": "a" for role in ("AUTHOR", "COMMITTER") for name in ("NAME", "EMAIL")}
    for words in (["init", "-q", "."], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=planrun.folder, env=os.environ | who, check=True)
    assert planrun("execute", "plan.yml").returncode == 0
    assert (planrun.folder / "planrun-out" / "junit.xml").exists()
    status = subprocess.run(
        ["git", "status", "--short"], cwd=planrun.folder, check=True, capture_output=True, text=True
    )
    assert status.stdout == ""


def test_variables_that_steps_do_not_get_are_named_when_a_step_fails(planrun: Command) -> None:
    """A successful run does not mention them; after a failure they may be the cause."""
    plan = planrun.folder / "plan.yml"
    plan.write_text(PLAN.replace("exit 3", "true"))
    assert "inherit_env" not in planrun("execute", "plan.yml", env={"MY_TOKEN": "value-of-it"}).stderr
    plan.write_text(PLAN)
    said = planrun("execute", "plan.yml", env={"MY_TOKEN": "value-of-it"}).stderr
    assert "\n  not passed to steps (inherit_env: safe): MY_TOKEN\n" in said


def test_a_tolerated_failure_is_a_warning_on_github(planrun: Command) -> None:
    """A job that is green has no error; with --strict the job fails, and the failure is one."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    github = {"CI": "true", "GITHUB_ACTIONS": "true"}
    done = planrun("execute", "plan.yml", env=github)
    assert done.returncode == 0
    assert "::warning file=plan.yml,line=4,title=b failed" in done.stdout
    assert "::error" not in done.stdout
    strict = planrun("execute", "plan.yml", "--strict", env=github)
    assert strict.returncode == 1
    assert "::error file=plan.yml,line=4,title=b failed" in strict.stdout


def test_a_plan_without_a_model_has_no_column_for_tokens(planrun: Command) -> None:
    """`show` speaks of tokens only where a step has an estimate."""
    plan = planrun.folder / "plan.yml"
    plan.write_text(PLAN)
    assert "oken" not in planrun("show", "plan.yml").stdout
    plan.write_text(PLAN.replace("{id: a,", "{id: a, estimated_tokens: 500,"))
    shown = planrun("show", "plan.yml").stdout
    assert "| Tokens |" in shown
    assert "Total: 2 steps, ~500 tokens\n" in shown


def test_the_report_path_is_absolute_in_a_review_and_in_a_run(planrun: Command) -> None:
    """A later step of the job finds the report from any folder."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    for verb, name in (("execute", "report.md"), ("review", "review.md")):
        outputs = planrun.folder / f"{verb}.outputs"
        env = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(outputs)}
        assert planrun(verb, "plan.yml", env=env).returncode == 0
        assert f"\nreport-path={planrun.folder / 'planrun-out' / name}\n" in f"\n{outputs.read_text()}"
