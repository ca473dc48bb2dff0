"""Attempts by an author of the plan, or of the command line's variables, who cannot change the policy."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]
    Attempt = Callable[..., tuple[int, bool]]


@pytest.fixture
def attempt(planrun: Run, tmp_path: Path) -> Attempt:
    """Run one step, and `more`, under a ceiling; returns the exit code, and whether it made a file `ran`."""

    def attempted(policy: dict[str, Any], step: dict[str, Any], **top: Any) -> tuple[int, bool]:
        more = top.pop("more", [])
        plan = {"version": 1, **top, "steps": [{"id": "a", **step}, *more]}
        (tmp_path / "plan.yml").write_text(json.dumps(plan))
        (tmp_path / "ceiling.yml").write_text(json.dumps(policy))
        done = planrun("execute", "plan.yml", "--policy", "ceiling.yml")
        return done.returncode, (tmp_path / "ran").exists()

    return attempted


def test_a_shell_of_the_workspace_is_none_of_the_systems(attempt: Attempt, tmp_path: Path) -> None:
    """A path that only begins like one of the system does not lend its class to the workspace's program."""
    (tmp_path / "bash").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "bash").chmod(0o755)
    up = "/usr/../proc/self/cwd/bash"
    assert attempt({"auto_approve": "read-only"}, {"run": "ls", "shell": up}) == (5, False)


def test_a_long_script_is_searched_as_any_other(attempt: Attempt) -> None:
    """A text that goes through a file is what rules are about, not the name of that file."""
    long = "# " + "x" * 30_000 + "\ntouch ran # deploy"
    assert attempt({"rules": [{"deny": {"command": "touch r*"}}]}, {"run": long}) == (3, False)
    assert attempt({"rules": [{"deny": {"words": "deploy"}}]}, {"run": long}) == (3, False)


def test_a_rule_about_a_secret_holds_for_steps_that_inherit_it(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`inherit_env: all` is no way around a rule that counts who lists a secret."""
    monkeypatch.setenv("SOME_TOKEN", "0a1b2c3d4e5f")
    rules = {"rules": [{"deny": {"secret": "SOME_TOKEN"}}]}
    assert attempt(rules, {"run": "touch ran"}, defaults={"inherit_env": "all"}) == (3, False)
    assert attempt(rules, {"run": "touch ran"}) == (0, True)


def test_a_rule_allows_a_command_in_the_workspace_only(attempt: Attempt, tmp_path: Path) -> None:
    """The same words in a folder elsewhere, be it behind a link, are another command."""
    rules = {"auto_approve": "none", "rules": [{"allow": {"command": "make *"}}]}
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "Makefile").write_text("x:\n\ttouch ran\n")
    os.symlink(elsewhere, tmp_path / "link")
    for folder in ("link", str(elsewhere), f"../{elsewhere.name}"):
        assert attempt(rules, {"run": "make x", "workdir": folder})[0] == 5, folder
    assert not (elsewhere / "ran").exists()


@pytest.mark.parametrize("option", ["--policy", "--decisions", "--report-dir"])
def test_an_option_without_a_value_is_no_option_left_out(planrun: Run, tmp_path: Path, option: str) -> None:
    """`--policy "$POLICY"` with a variable that is not set ends with exit code 2, and not without a ceiling."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: touch ran}]\n")
    done = planrun("execute", "plan.yml", option, "")
    assert done.returncode == 2
    assert f"{option} takes" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_link_in_the_place_of_a_folder_is_no_folder_of_the_workspace(
    attempt: Attempt, tmp_path: Path
) -> None:
    """What is of class medium in the workspace is not where an earlier step let its folder lead."""
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    (tmp_path / "ln.sh").write_text(f"#!/bin/sh\nln -s {elsewhere} link\n")
    (tmp_path / "ln.sh").chmod(0o755)
    step = {"id": "b", "depends_on": ["a"], "run": "rm -rf data", "workdir": "link"}
    assert attempt({"auto_approve": "medium"}, {"run": "./ln.sh"}, more=[step])[0] == 5
    assert (elsewhere / "data").exists()
    (tmp_path / "link").unlink()
    (tmp_path / "link").mkdir()
    assert attempt({"auto_approve": "medium"}, {"run": "ls"}, more=[step]) == (0, False)


def test_a_step_may_write_its_outputs_and_folder(attempt: Attempt) -> None:
    """Its outputs and its own folder are ordinary files though they stand among planrun's; others there are not."""
    rules = {"auto_approve": "low"}
    step: dict[str, Any] = {"run": 'echo x=1 >> "$PLANRUN_OUTPUT"', "outputs": {"x": "integer"}}
    assert attempt(rules, step)[0] == 0
    assert attempt(rules, {"run": "echo x > ${{ step.dir }}/y"})[0] == 0
    for beside in (
        "$PLANRUN_OUTPUT.x",
        "$PLANRUN_OUTPUT/../../ledger.jsonl",
        "$PLANRUN_WORKSPACE/.planrun/x",
    ):
        assert attempt(rules, {"run": f'echo x >> "{beside}"'})[0] == 5, beside
    assert attempt({"auto_approve": "medium"}, {"run": 'bash "$PLANRUN_OUTPUT"'})[0] == 5


def test_a_file_does_not_take_the_name_of_a_run(planrun: Run, tmp_path: Path) -> None:
    """`approve last` is about the run, also where a step left a plan of that name, and one of the run's."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\npolicy: {auto_approve: none}\nsteps: [{id: a, run: ls}]\n"
    )
    for name in ("last", "run"):
        assert planrun("execute", "plan.yml").returncode == 5
        (run,) = [
            path.name for path in tmp_path.glob(".planrun/runs/*") if not (tmp_path / path.name).exists()
        ]
        operand = "last" if name == "last" else run
        (tmp_path / run).write_bytes((tmp_path / "plan.yml").read_bytes())
        (tmp_path / "last").write_bytes((tmp_path / "plan.yml").read_bytes())
        done = planrun("approve", operand)
        assert (done.returncode, f"run {run}" in done.stdout) == (0, True), done.stdout + done.stderr
        assert planrun("resume", run).returncode == 0


def kept(folder: Path) -> list[Path]:
    """Return the entries of a cache, the oldest first."""
    return sorted(folder.glob("*.plan"), key=lambda path: path.stat().st_mtime_ns)


def test_a_lock_is_not_compared_with_a_cached_digest(planrun: Run, tmp_path: Path) -> None:
    """An entry that was put in the place of another one says what it likes about its digest."""
    env = {"PLANRUN_CACHE_DIR": str(tmp_path / "cache")}
    plan, entries = tmp_path / "plan.yml", tmp_path / "cache" / "plans"
    plan.write_text("version: 1\nsteps: [{id: a, run: touch evil}]\n")
    assert planrun("execute", "plan.yml", env=env).returncode == 0
    evil = kept(entries)
    plan.write_text("version: 1\nsteps: [{id: a, run: touch good}]\n")
    assert planrun("lock", "plan.yml").returncode == 0
    assert planrun("execute", "plan.yml", env=env).returncode == 0
    good = [path for path in kept(entries) if path not in evil]
    assert len(good) == len(evil) == 2  # the plan, and the files that it names
    for one, other in zip(evil, good, strict=True):
        one.replace(other)
    (tmp_path / "evil").unlink()
    assert planrun("execute", "plan.yml", "--locked", env=env).returncode == 0
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("rule", [{"words": "deploy"}, {"command": "touch *"}])
@pytest.mark.parametrize(
    "proof", ["touch ran # deploy", "python3 -c 'import os; os.system(\"touch ran; : deploy\")'"]
)
def test_what_verifies_a_step_is_searched_as_its_action(
    attempt: Attempt, rule: dict[str, str], proof: str
) -> None:
    """A rule about words or commands denies a harmless action whose verification has them."""
    assert attempt({"rules": [{"deny": rule}]}, {"run": "true", "verify": proof}) == (3, False)


@pytest.mark.parametrize("name", ["a", "a/inner", "a/inner[1]"])
def test_a_rule_about_a_group_is_about_all_in_it(attempt: Attempt, tmp_path: Path, name: str) -> None:
    """Instances within another plan are denied by the name of that plan's step as by their own."""
    inner = {"id": "inner", "foreach": [1], "run": "touch ran"}
    (tmp_path / "sub.yml").write_text(json.dumps({"version": 1, "steps": [inner]}))
    assert attempt({"rules": [{"deny": {"step": name}}]}, {"uses": "./sub.yml"}) == (3, False)


def test_a_rule_about_a_group_is_about_undoing_its_instances(attempt: Attempt) -> None:
    """What undoes an instance is denied by the name of the step as it is written."""
    step = {"foreach": [1], "run": "true", "rollback": {"run": "touch ran # back"}}
    fails = {"id": "b", "depends_on": ["a"], "run": "false"}
    assert attempt({"rules": [{"deny": {"step": "a", "words": "back"}}]}, step, more=[fails]) == (1, False)


def test_an_approval_of_a_plan_in_use_shows_its_highest_risk(planrun: Run, tmp_path: Path) -> None:
    """Who approves the step that uses a plan sees the class of the worst in it, and has approved all of it."""
    inner = {"id": "inner", "foreach": [1], "run": "touch ran; true | bash"}
    (tmp_path / "sub.yml").write_text(json.dumps({"version": 1, "steps": [inner]}))
    plan = {"version": 1, "steps": [{"id": "a", "uses": "./sub.yml"}]}
    (tmp_path / "plan.yml").write_text(json.dumps(plan))
    (tmp_path / "ceiling.yml").write_text("auto_approve: low\n")
    shown = planrun("approve", "plan.yml", "--step", "a", "-o", "approval.json")
    assert "  a: high, " in shown.stdout, shown.stdout
    done = planrun("execute", "plan.yml", "--policy", "ceiling.yml", "--approval", "approval.json")
    assert (done.returncode, (tmp_path / "ran").exists()) == (0, True), done.stdout
