"""action.yml and the workflows: valid, pinned, and without a place where text could become code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPENDABOT = ROOT / ".github" / "dependabot.yml"
BIN = Path(sys.executable).parent


def loaded(path: Path) -> dict[str, Any]:
    """Return a file's content; `on` is a boolean to this loader, which no test here minds."""
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    return content


def steps(path: Path) -> list[dict[str, Any]]:
    """Return all steps of an action or a workflow."""
    content = loaded(path)
    if "runs" in content:
        found: list[dict[str, Any]] = content["runs"]["steps"]
        return found
    return [step for job in content["jobs"].values() for step in job["steps"]]


def output_of(*words: str | Path) -> str:
    """Run a checker in the repository and return its output; it must report no problem."""
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    return said


def test_the_action_is_valid() -> None:
    """action.yml follows GitHub's schema of actions."""
    output_of(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION)


def test_the_workflows_are_valid() -> None:
    """Every workflow follows GitHub's schema of workflows."""
    output_of(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_zizmor_finds_nothing() -> None:
    """The strictest persona of the security linter has no findings in the action and the workflows."""
    said = output_of(BIN / "zizmor", "--offline", "--persona=auditor", ".")
    assert "No findings to report" in said


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    """Values reach scripts through the environment only, so no value can become code."""
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_every_action_is_pinned_with_its_version(path: Path) -> None:
    """Each use names a commit and says which version that is; only our own action is used by path, in a
    reusable workflow by that of its own commit.
    """
    uses = re.findall(r"^[^#\n]*\buses: (.*)", path.read_text("utf-8"), re.MULTILINE)
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [use for use in uses if not pinned.fullmatch(use) and not use.startswith(("./ ", "$/ "))] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_from_no_permissions(path: Path) -> None:
    """The workflow grants nothing; each job declares its permissions, and no checkout leaves a token behind."""
    content = loaded(path)
    assert content["permissions"] == {}
    assert [name for name, job in content["jobs"].items() if not job.get("permissions")] == []
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_action_becomes_planrun() -> None:
    """The last line of the step that runs the plan is an exec: the runner signals only the first process."""
    run = next(step for step in steps(ACTION) if step.get("id") == "planrun")
    assert run["run"].strip().splitlines()[-1].startswith("exec ")


def test_every_input_of_the_plan_step_is_declared() -> None:
    """Each PLANRUN_INPUT_ variable carries the input of that name, and none is misspelt."""
    run = next(step for step in steps(ACTION) if step.get("id") == "planrun")
    declared = loaded(ACTION)["inputs"]
    for variable, value in run["env"].items():
        name = variable.removeprefix("PLANRUN_INPUT_").lower().replace("_", "-")
        assert value == f"${{{{ inputs.{name} }}}}"
        assert name in declared


def locked(name: str) -> dict[str, str]:
    """Return the packages of a lock with their versions."""
    return dict(re.findall(r"^([\w.-]+)==([^ ]+)", (ROOT / ".ci" / name).read_text("utf-8"), re.MULTILINE))


def test_the_action_installs_no_model_library_unasked() -> None:
    """The small lock is the large one without anthropic and what only anthropic needs, in the same versions."""
    small, large = locked("requirements-action.txt"), locked("requirements-action-llm.txt")
    assert "anthropic" in large
    assert small.items() < large.items()
    assert {"anthropic", "anyio", "httpx2", "jiter", "truststore"} <= large.keys() - small.keys()


@pytest.mark.parametrize(
    ("llm", "lock"),
    [
        ("", "requirements-action.txt"),
        ("false", "requirements-action.txt"),
        ("true", "requirements-action-llm.txt"),
        ("TRUE", "requirements-action-llm.txt"),
    ],
)
def test_the_input_llm_decides_which_lock_is_installed(tmp_path: Path, llm: str, lock: str) -> None:
    """The step of action.yml, run by bash with a Python that notes its arguments: hashes and wheels only."""
    python = tmp_path / "python"
    noting = f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n[ "$2" != venv ] || mkdir -p "$3/bin"\n'
    python.write_text(noting + f'[ "$2" != venv ] || cp {python} "$3/bin/python"\n', "utf-8")
    python.chmod(0o755)
    (step,) = [step for step in steps(ACTION) if step.get("name") == "Install planrun"]
    script = tmp_path / "script.sh"
    script.write_text(step["run"], "utf-8")
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(python), "LLM": llm}
        | {"RUNNER_TEMP": str(tmp_path), "GITHUB_ACTION_PATH": str(ROOT)},
        check=True,
    )
    installed = (tmp_path / "said").read_text("utf-8").splitlines()[1].split()
    assert installed[-1] == f"{ROOT}/.ci/{lock}"
    assert {"--require-hashes", "--only-binary"} <= set(installed)
    assert Path(installed[-1]).exists()
