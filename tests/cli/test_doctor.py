"""`planrun doctor`: its findings, its advice, and what it never shows or changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

KEY = "sk-ant-api03-a-value-that-nobody-may-see"


def examine(planrun: Command, **env: str) -> dict[str, dict[str, str]]:
    """Run `planrun doctor --json` with variables added and return its checks by name; it finds no problem."""
    done = planrun("doctor", "--json", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return by_name(done.stdout)


def by_name(text: str) -> dict[str, dict[str, str]]:
    """Return the checks of a JSON document by their names."""
    document: dict[str, Any] = json.loads(text)
    return {each["name"]: each for each in document["checks"]}


def programs(folder: Path, *names: str) -> str:
    """Make a folder with links to some programs of this machine; returns it as a PATH."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or f"/{name}")
    return str(folder)


def stand_in(path: Path, text: str) -> str:
    """Write a script that stands in for a container engine, which this machine need not have."""
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def test_every_subject_has_a_line_and_nothing_is_left_behind(planrun: Command, tmp_path: Path) -> None:
    """On a usual machine nothing is a problem, and the folder is as before."""
    done = planrun("doctor")
    assert done.returncode == 0, done.stdout
    names = (
        *(
            "planrun",
            "python",
            "libraries",
            "system",
            "processors",
            "shell",
            "git",
            "space",
            "write permission",
        ),
        *("cache", "container engine", "sandbox", "model credentials", "CI system", "runs"),
    )
    for name in names:
        assert f"  {name} " in done.stdout, name
    assert done.stdout.rstrip().splitlines()[-1].startswith("0 problems, ")
    assert not list(tmp_path.iterdir())


def test_each_problem_names_its_fix(planrun: Command, tmp_path: Path) -> None:
    """Without any program on PATH the shell is a problem and git a warning, each with its remedy."""
    done = planrun("doctor", env={"PATH": programs(tmp_path / "bin")})
    assert done.returncode == 1
    assert "PROBLEM  shell" in done.stdout
    assert "-> install bash, or put it on PATH" in done.stdout
    assert "WARNING  git" in done.stdout
    assert "-> install git" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 problem, ")
    found = examine(planrun, PATH=programs(tmp_path / "sh", "sh"))["shell"]
    assert (found["status"], "pipefail" in found["todo"]) == ("warning", True)


def test_credentials_are_present_and_never_shown(planrun: Command) -> None:
    """The variable is named, its value is in no form of the output."""
    for words in (("doctor",), ("doctor", "--json")):
        done = planrun(*words, env={"ANTHROPIC_API_KEY": KEY, "PLANRUN_LLM_MODEL": "some-model"})
        assert "present in ANTHROPIC_API_KEY (not shown)" in done.stdout
        assert KEY not in done.stdout + done.stderr
        assert KEY[12:20] not in done.stdout + done.stderr
    none = examine(planrun, ANTHROPIC_API_KEY="", ANTHROPIC_AUTH_TOKEN="")["model credentials"]
    assert (none["status"], "ANTHROPIC_API_KEY" in none["todo"]) == ("none", True)
    bad = planrun("doctor", "--json", env={"ANTHROPIC_BASE_URL": f"https://user:{KEY}@service.example"})
    assert bad.returncode == 1
    assert by_name(bad.stdout)["model credentials"]["status"] == "problem"
    assert KEY not in bad.stdout


@pytest.mark.parametrize(
    ("variables", "system"),
    [
        ({}, "none found"),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, "github"),
        ({"CI": "true", "GITLAB_CI": "true"}, "gitlab"),
        ({"CI": "1"}, "unknown system"),
    ],
)
def test_the_ci_system_is_named(planrun: Command, variables: dict[str, str], system: str) -> None:
    """The variables decide, as for every other verb."""
    assert examine(planrun, **variables)["CI system"]["found"].startswith(system)


def test_files_of_github_that_cannot_be_written(planrun: Command, tmp_path: Path) -> None:
    """A step summary that is not there is a warning: planrun in a container does not have the runner's files."""
    gone = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "gone")}
    found = examine(planrun, **gone)["CI system"]
    assert (found["status"], "GITHUB_STEP_SUMMARY" in found["found"]) == ("warning", True)


def test_a_folder_where_nothing_can_be_written(planrun: Command, tmp_path: Path) -> None:
    """A file in the place of `.planrun` is a problem that `execute` would have."""
    (tmp_path / ".planrun").write_text("", "utf-8")
    done = planrun("doctor", "--json")
    assert done.returncode == 1
    found = by_name(done.stdout)["write permission"]
    assert (found["status"], ".planrun" in found["found"]) == ("problem", True)


def test_container_engines(planrun: Command, tmp_path: Path) -> None:
    """A working engine is shown with its version, one that fails with its last output; a wrong name is a problem."""
    good = stand_in(tmp_path / "docker", "echo 99.1")
    found = examine(planrun, PLANRUN_CONTAINER_ENGINE=good)["container engine"]
    assert (found["status"], "engine 99.1 answers" in found["found"]) == ("ok", True)
    silent = stand_in(tmp_path / "podman", "echo 'the daemon is away' >&2; exit 1")
    found = examine(planrun, PLANRUN_CONTAINER_ENGINE=silent)["container engine"]
    assert (found["status"], "the daemon is away" in found["found"]) == ("warning", True)
    done = planrun("doctor", "--json", env={"PLANRUN_CONTAINER_ENGINE": "no-such-engine"})
    assert done.returncode == 1
    assert by_name(done.stdout)["container engine"]["status"] == "problem"


def test_git_and_its_repository(planrun: Command, tmp_path: Path) -> None:
    """The repository is named; a shallow clone is a warning with what to fetch."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    who = ("-c", "user.name=t", "-c", "user.email=t@t.invalid")
    subprocess.run(["git", "init", "-q", str(origin)], check=True)
    for text in ("one", "two"):
        subprocess.run(
            ["git", "-C", str(origin), *who, "commit", "-q", "--allow-empty", "-m", text], check=True
        )
    assert by_name(planrun("doctor", "--json", cwd=origin).stdout)["git"]["status"] == "ok"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{origin}", str(clone)], check=True)
    found = by_name(planrun("doctor", "--json", cwd=clone).stdout)["git"]
    assert (found["status"], "fetch-depth: 0" in found["todo"]) == ("warning", True)


@pytest.mark.shows("V-81")
def test_runs_that_wait_and_runs_that_are_damaged(planrun: Command, tmp_path: Path) -> None:
    """A waiting run is shown with the command to continue it, a changed ledger with the command to inspect it."""
    ask = "version: 1\nsteps:\n  - {id: go, ask: {question: Go?}}\n"
    (tmp_path / "plan.yml").write_text(ask, "utf-8")
    assert planrun("execute", "plan.yml").returncode == 5
    found = examine(planrun)["runs"]
    assert (found["status"], "is waiting" in found["found"]) == ("warning", True)
    assert "planrun resume RUN" in found["todo"]
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    ledger = run / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"Go?", b"No?", 1))
    found = examine(planrun)["runs"]
    assert f"{run.name} is altered" in found["found"]
    assert "planrun verify RUN" in found["todo"]


def test_a_cache_that_others_may_write(planrun: Command, tmp_path: Path) -> None:
    """Runs do not use it, so doctor reports the reason and the fix."""
    store = tmp_path / "cache" / "store"
    store.mkdir(parents=True)
    os.chmod(store, 0o777)
    found = examine(planrun, PLANRUN_CACHE_DIR=str(tmp_path / "cache"))["cache"]
    assert (found["status"], f"chmod go-w {store}" in found["todo"]) == ("warning", True)
