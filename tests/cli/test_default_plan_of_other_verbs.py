"""Verbs that read a plan take the plan of `planrun run` when none is named."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

PLAN = "version: 1\nname: ci\nsteps:\n  - {id: build, run: 'ls'}\n  - {id: test, run: 'ls', depends_on: [build]}\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("show", "show plan.yml"),
        ("show --json", "show plan.yml --json"),
        ("validate", "validate plan.yml"),
        ("lint", "lint plan.yml"),
        ("explain test", "explain plan.yml test"),
        ("explain test --json", "explain plan.yml test --json"),
        ("lock -o -", "lock plan.yml -o -"),
        ("review", "review plan.yml"),
    ],
)
def test_without_a_plan_it_is_the_default_plan(
    say: Callable[..., Said], tmp_path: Path, words: str, named: str
) -> None:
    """The result is that of the same verb with the plan's name; stderr says which plan it is."""
    (tmp_path / "plan.yml").write_text(PLAN)
    said, same = say(*words.split()), say(*named.split())
    assert (said.code, said.out) == (same.code, same.out)
    assert said.err == "planrun: plan: plan.yml\n" + same.err


@pytest.mark.parametrize("verb", ["show", "validate", "lint", "lock", "diff", "review"])
def test_without_any_plan_it_is_an_error(say: Callable[..., Said], verb: str) -> None:
    """In a folder without plans each verb says what it looked for."""
    said = say(verb)
    assert (said.code, said.out) == (2, "")
    assert "no plan named; looked for .planrun.yml, plan.yml" in said.err


def test_a_step_in_the_place_of_a_plan_leads_to_explain(say: Callable[..., Said], tmp_path: Path) -> None:
    """`planrun show STEP` says what shows a step; a word that is no step is a file that does not exist."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: build, run: ls}]\n")
    message = '"build" is a step of plan.yml, and no plan; to see it: planrun explain build'
    assert say("show", "build") == (2, "", f"planrun: error: {message}\n")
    assert "build:1:1" not in say("show", "build").err
    assert "error[E001]" in say("show", "biuld").err


def test_a_plan_above_is_judged_in_its_folder(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a folder below, scripts are those of the plan's folder, and a policy is that of the user's folder."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "policy.yml").write_text("rules:\n  - deny: {step: test}\n")
    monkeypatch.chdir(tmp_path / "src")
    said = say("show", "--json", "--policy", "policy.yml")
    assert said.err == f"planrun: plan: plan.yml, in {tmp_path}\n"
    assert said.code == 0
    assert '"deny"' in said.out
    monkeypatch.chdir(tmp_path / "src")
    assert say("lock").code == 0
    assert (tmp_path / "plan.lock.json").exists()
    monkeypatch.chdir(tmp_path / "src")
    assert say("lock", "-o", "mine.json").code == 0
    assert (tmp_path / "src" / "mine.json").exists()
    monkeypatch.chdir(tmp_path / "src")
    assert say("review").code == 0
    assert (tmp_path / "planrun-out" / "review.md").exists()


def test_diff_compares_with_the_last_commit(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`planrun diff` shows what changed in the default plan since HEAD, also from a folder below."""
    (tmp_path / "plans").mkdir()
    plan = tmp_path / "plans" / "ci.yml"
    plan.write_text(PLAN)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    plan.write_text(PLAN.replace("id: test, run: 'ls'", "id: test, run: 'rm -rf $X'"))
    said = say("diff", "--json")
    assert said.err == "planrun: plan: plans/ci.yml\n"
    assert "rm -rf $X" in json.dumps(json.loads(said.out))
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert say("diff", "--json").out == said.out
    monkeypatch.chdir(tmp_path / "src")
    assert say("diff", "HEAD:plans/ci.yml", "--exit-code").code == 1
    os.chdir(tmp_path)
