"""`planrun run` without a file: which plan it takes, where it runs, and steps named instead of a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

PLAN = """\
version: 1
name: {name}
steps:
  - {{id: lint, run: "true"}}
  - {{id: build, run: "pwd >> {name}.txt"}}
  - {{id: test, run: "true", depends_on: [build]}}
finally:
  - {{id: tidy, run: "true"}}
"""
NO_PLAN = "no plan named; looked for .planrun.yml, plan.yml, plan.yaml and plans/*.yml"


def write(path: Path, name: str = "ci") -> None:
    """Write a plan of three steps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLAN.format(name=name))


def ends(said: Said) -> dict[str, str]:
    """Return the status of each step in the document of `--json`."""
    return {step["id"]: step["status"] for step in json.loads(said.out)["steps"]}


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        (["plan.yml"], "plan.yml"),
        (["plan.yaml"], "plan.yaml"),
        (["plan.yml", "plan.yaml", "plans/release.yml"], "plan.yml"),
        (["plans/release.yml"], "plans/release.yml"),
        (["plans/release.yaml"], "plans/release.yaml"),
        ([".planrun.yml", "plan.yml", "ci/all.yml"], "ci/all.yml"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "execute"])
def test_the_default_plan(
    say: Callable[..., Said], tmp_path: Path, files: list[str], taken: str, verb: str
) -> None:
    """The project file comes first, then plan.yml, plan.yaml and the only plan in plans/; stderr says which."""
    for file in files:
        write(tmp_path / file, "taken" if file == taken else "other")
    if ".planrun.yml" in files:
        (tmp_path / ".planrun.yml").write_text(f"# of this project\nplan: {taken}\n")
    said = say(verb)
    assert said.code == 0
    assert said.err.startswith(f"planrun: plan: {taken}\n")
    assert (tmp_path / "taken.txt").exists()


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_a_run_does_not_need_stderr(tmp_path: Path, stderr: str) -> None:
    """Where the plan cannot be named on stderr, it runs all the same."""
    write(tmp_path / "plan.yml", "taken")
    command = f"exec {sys.executable} -m planrun run {stderr}"
    assert subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=False, timeout=60).returncode == 0
    assert (tmp_path / "taken.txt").exists()


def test_run_is_execute(say: Callable[..., Said], tmp_path: Path) -> None:
    """With a file `run` prints what `execute` prints: no line about the plan."""
    write(tmp_path / "plan.yml")
    said = say("run", "plan.yml", "--json")
    assert said.code == 0
    assert "planrun: plan:" not in said.err
    assert set(ends(said).values()) == {"completed"}


def test_policies_and_templates_are_no_plans(say: Callable[..., Said], tmp_path: Path) -> None:
    """Other YAML files in plans/ do not count, so one plan beside them is the default."""
    write(tmp_path / "plans" / "ci.yml")
    (tmp_path / "plans" / "policy.yml").write_text("auto_approve: medium\n")
    (tmp_path / "plans" / "part.yml").write_text("version: 1\ntemplate: {}\nsteps:\n  - run: 'true'\n")
    (tmp_path / "plans" / ".hidden.yml").write_text("version: 1\nsteps:\n")
    assert say("run").err.startswith("planrun: plan: plans/ci.yml\n")


def test_several_plans_are_listed(say: Callable[..., Said], tmp_path: Path) -> None:
    """With several plans in plans/ nothing runs; the message has the command for each."""
    write(tmp_path / "plans" / "a.yml")
    write(tmp_path / "plans" / "b.yml")
    said = say("run")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "planrun: error: plans/ has 2 plans; name one, or set `plan:` in .planrun.yml\n"
        "  planrun run plans/a.yml\n  planrun run plans/b.yml\n"
    )
    assert not (tmp_path / ".planrun").exists()


def test_no_plan(say: Callable[..., Said], tmp_path: Path) -> None:
    """Without a plan the message says what was looked for and how to write one, or names the plans that are there."""
    assert say("run") == (2, "", f"planrun: error: {NO_PLAN}\n  to write a first plan: planrun init\n")
    write(tmp_path / "release.yml")
    (tmp_path / "compose.yml").write_text("services: {}\n")
    assert say("run") == (2, "", f"planrun: error: {NO_PLAN}\n  planrun run release.yml\n")
    assert say("run", "missing").err.startswith('planrun: error: no such file: "missing"; no plan named')


def test_a_step_runs_with_what_it_depends_on(say: Callable[..., Said], tmp_path: Path) -> None:
    """A word that is no file is a step: it runs with its dependencies, recorded as `--until`."""
    write(tmp_path / "plan.yml")
    said = say("run", "test", "--json")
    assert said.err.startswith("planrun: plan: plan.yml; runs test and what it depends on\n")
    assert ends(said) == {"lint": "skipped", "build": "completed", "test": "completed", "tidy": "completed"}
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    started = json.loads(ledger.read_text().splitlines()[0])
    assert '"until":["test"]' in json.dumps(started, separators=(",", ":"))


def test_several_steps_and_a_named_plan(say: Callable[..., Said], tmp_path: Path) -> None:
    """A plan may be named before the steps; steps add up with the options that select steps."""
    write(tmp_path / "ci" / "all.yml")
    said = say("run", "ci/all.yml", "lint", "build", "--json")
    assert said.err.startswith("planrun: plan: ci/all.yml; runs lint, build and what they depend on\n")
    assert ends(said)["test"] == "skipped"
    said = say("run", "ci/all.yml", "lint", "--skip", "lint")
    assert (said.code, "every step that was chosen is skipped" in said.err) == (2, True)


def test_a_file_wins_over_a_step_and_a_folder_does_not(say: Callable[..., Said], tmp_path: Path) -> None:
    """A file that has the name of a step is the plan; a folder of that name does not hide the step."""
    write(tmp_path / "plan.yml")
    (tmp_path / "build").mkdir()
    assert ends(say("run", "build", "--json"))["test"] == "skipped"
    write(tmp_path / "test", "other")
    said = say("run", "test", "--json")
    assert json.loads(said.out)["plan"]["name"] == "other"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "tset",
            '"tset" is no file and no step of plan.yml; did you mean "test"?\n  steps: lint, build, test',
        ),
        ("zzz", '"zzz" is no file and no step of plan.yml\n  steps: lint, build, test'),
        ("tidy", '"tidy" is in `finally` of plan.yml and cannot be chosen: it runs at the end of every run'),
    ],
)
def test_a_wrong_step(say: Callable[..., Said], tmp_path: Path, step: str, message: str) -> None:
    """A word that is neither a file nor a step that can be chosen is exit 2, and nothing runs."""
    write(tmp_path / "plan.yml")
    assert say("run", step) == (2, "", f"planrun: error: {message}\n")
    assert not (tmp_path / ".planrun").exists()


def test_a_folder_is_no_plan(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in the place of a plan is answered with the command for it; runs above are pointed to from below."""
    write(tmp_path / "plan.yml")
    (tmp_path / "src").mkdir()
    said = say("run", "src")
    assert said.code == 2
    assert said.err.endswith("\n  src is a folder; to run its plan: planrun -C src run\n")
    (tmp_path / ".git").mkdir()
    assert say("run", "lint").code == 0
    monkeypatch.chdir(tmp_path / "src")
    said = say("resume", "last")
    assert said == (
        2,
        "",
        f"planrun: error: no runs in this folder; {tmp_path} has some: planrun -C .. VERB\n",
    )
    assert say("-C", "..", "resume", "last").code == 0


def test_an_empty_operand_is_no_plan(say: Callable[..., Said], tmp_path: Path) -> None:
    """An empty variable of a script names a file that is not there, and not the default plan."""
    write(tmp_path / "plan.yml")
    assert say("run", "").code == 2
    assert not (tmp_path / ".planrun").exists()


def test_a_plan_above_runs_in_its_folder(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a repository the nearest folder above with a plan is used; paths of options are those of the user's folder."""
    write(tmp_path / "plan.yml")
    (tmp_path / ".git").mkdir()
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    (deep / "policy.yml").write_text("auto_approve: high\n")
    monkeypatch.chdir(deep)
    said = say("run", "build", "--policy", "policy.yml", "--report-dir", "out")
    assert said.code == 0
    assert said.err.startswith(f"planrun: plan: plan.yml, in {tmp_path}; runs build and what it depends on\n")
    assert (tmp_path / "ci.txt").read_text() == f"{tmp_path}\n"
    assert (deep / "out" / "report.md").exists()
    assert (tmp_path / ".planrun").exists()
    assert not (deep / ".planrun").exists()


def test_the_search_ends_at_the_repository(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing above the root of the repository is found; without a repository only the current folder counts."""
    write(tmp_path / "plan.yml")
    inside = tmp_path / "project" / "src"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    said = say("run")
    assert (said.code, said.err) == (
        2,
        f"planrun: error: {NO_PLAN}\n  {tmp_path} has one: planrun -C ../.. run\n",
    )
    (tmp_path / "project" / ".git").mkdir()
    alone = f"planrun: error: {NO_PLAN}\n  to write a first plan: planrun init\n"
    assert say("run") == (2, "", alone)
    monkeypatch.chdir(inside.parent)
    assert say("run") == (2, "", alone)
    assert not (tmp_path / ".planrun").exists()


def test_a_folder_of_somebody_else_ends_the_search(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that another user put above the user's folder is not run."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    write(tmp_path / "plan.yml")
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "mine"
    inside.mkdir()
    os.chown(tmp_path, 12345, -1)
    monkeypatch.chdir(inside)
    assert say("run").code == 2


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_a_project_file_may_be_empty(say: Callable[..., Said], tmp_path: Path, text: str) -> None:
    """A project file without settings changes nothing."""
    write(tmp_path / "plan.yml")
    (tmp_path / ".planrun.yml").write_text(text)
    assert say("run").err.startswith("planrun: plan: plan.yml\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plan: ../plan.yml\n", ":1:7: error[E290]: ../plan.yml is outside the folder of .planrun.yml"),
        ("plan: /etc/plan.yml\n", ":1:7: error[E290]: /etc/plan.yml is outside the folder"),
        ("plan: link.yml\n", ":1:7: error[E290]: link.yml is outside the folder"),
        ("plan: missing.yml\n", ":1:7: error[E290]: no such file: missing.yml"),
        ("# one\n\nplan_: x.yml\n", ':3:1: error[E104]: unknown key "plan_" at the top level'),
        (
            "jobs: 2\nplan: plan.yml\n",
            ':1:1: error[E104]: unknown key "jobs" at the top level; valid keys: plan',
        ),
        ("plan:\n", ':1:1: error[E103]: "plan" has no value'),
        ("plan: [a]\n", ':1:7: error[E101]: "plan": expected a string'),
        ("- a\n", ":1:1: error[E101]: expected a mapping with keys such as `plan:`"),
        ("plan: 'a\n", "error[E010]"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "list", ""])
def test_a_wrong_project_file(
    say: Callable[..., Said], tmp_path: Path, text: str, message: str, verb: str
) -> None:
    """A mistake in the project file is shown with its place; no other plan is taken instead."""
    outside = tmp_path / "outside"
    write(outside / "plan.yml")
    inside = tmp_path / "inside"
    write(inside / "plan.yml")
    (inside / "link.yml").symlink_to(outside / "plan.yml")
    (inside / ".planrun.yml").write_text(text)
    os.chdir(inside)
    said = say(*[verb] if verb else [])
    assert said.code == 2
    assert ".planrun.yml" in said.err
    assert message in said.err
    assert not (inside / ".planrun").exists()
