"""Completion as a real shell does it: the script is loaded, words are typed, the offers are read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.cli.verbs import names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

PLAN = """\
version: 1
params: {target: {type: string, default: staging, description: Where to}}
steps:
  - {id: build, title: Make it, run: "true", tags: [fast]}
  - {id: bundle, run: "true"}
  - {id: test, run: "true", tags: [slow]}
"""
ASKS = """\
version: 1
steps:
  - {id: sure, ask: {question: Publish?}}
  - id: auth
    decide: {question: Which?, options: [{label: JSON web token, value: jwt}, {label: Sessions, value: session}]}
"""
# What bash does when TAB is pressed: it looks the function up, sets the words, and calls it.
TYPE = """
eval "$(planrun completion bash)"
compopt() { :; }
spec=$(complete -p planrun); spec=${spec##*-F }; function=${spec%% *}
offer() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    "$function" planrun "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "${COMPREPLY[*]}"
}
"""


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """Put the command on a PATH, as an installation does, and write a plan; returns the environment."""
    (tmp_path / "plan.yml").write_text(PLAN)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "planrun").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m planrun "$@"\n')
    (tools / "planrun").chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="this machine has no bash")
def test_bash_completes_verbs_options_steps_and_runs(tmp_path: Path, shell: dict[str, str]) -> None:
    """In bash, TAB offers verbs, options, choices, and the steps, tags, params and runs that are there."""
    (tmp_path / ".planrun" / "runs" / "20260131-093000-1f2e3d").mkdir(parents=True)
    (tmp_path / "ci" / "plans").mkdir(parents=True)
    (tmp_path / "ci" / "plans" / "deep.yml").write_text("version: 1\nsteps: [{id: deep, run: 'true'}]\n")
    typed = {
        "planrun ''": " ".join(names()),
        "planrun ex": "explain execute expand",
        "planrun mo": "modes model",
        "planrun model ''": "generate expand replan tree classify memory errors",
        "planrun runs st": "stats",
        "planrun runs --js": "--json",
        "planrun runs prune --ke": "--keep",
        "planrun runs resume 2026": "20260131-093000-1f2e3d",
        "planrun review pl": "plan plan.yml",
        "planrun review p": "plan plan.yml",
        "planrun help ex": "explain execute expand exit-codes",
        "planrun -C ci run ''": "deep plans/deep.yml",
        "planrun run ''": "build bundle test plan.yml",
        "planrun run te": "test",
        "planrun run plan.yml b": "build bundle",
        "planrun run --only b": "build bundle",
        "planrun run build --param ''": "target=",
        "planrun list --j": "--json",
        "planrun execute plan.yml --fr": "--from",
        "planrun execute plan.yml --only ''": "build bundle test",
        "planrun execute --jobs 2 plan.yml --until bu": "build bundle",
        "planrun execute plan.yml --tag ''": "fast slow",
        "planrun execute plan.yml --param ''": "target=",
        "planrun execute plan.yml --logs ''": "auto all failed none",
        "planrun execute missing.yml --only ''": "",
        "planrun explain plan.yml ''": "build bundle test",
        "planrun report ''": "last 20260131-093000-1f2e3d",
        "planrun resume 2026": "20260131-093000-1f2e3d",
        "planrun report --format j": "junit json",
        "planrun completion ''": "bash zsh fish",
    }
    script = TYPE + "".join(f"offer {words}\n" for words in typed)
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=tmp_path, env=shell,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert dict(zip(typed, done.stdout.split("\n"), strict=False)) == typed


@pytest.mark.skipif(shutil.which("bash") is None, reason="this machine has no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", "plain,plan.yml\nplain,ci/deploy.yaml\n"),
        ("ci/", "plain,ci/deploy.yaml\n"),
        ("notes", "file,notes\n"),
        ("missing/x", "file,missing/x\n"),
    ],
)
def test_bash_is_offered_plans_and_not_every_file(
    tmp_path: Path, shell: dict[str, str], typed: str, offered: str
) -> None:
    """YAML files of the folder and its subfolders are offered; if none fits, bash completes files."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "deploy.yaml").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / ".hidden.yml").touch()
    env = {
        **shell,
        "COMP_WORDS": f"planrun\nvalidate\n{typed}",
        "COMP_CWORD": "2",
        "_PLANRUN_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        ["planrun"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, offered, "")


@pytest.mark.parametrize(("name", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_the_script_is_valid_in_its_shell(
    say: Callable[..., Said], tmp_path: Path, name: str, check: str
) -> None:
    """Each script names our command and our variable, and its shell, where it is installed, can read it."""
    said = say("completion", name)
    assert (said.code, said.err) == (0, "")
    assert f"_PLANRUN_COMPLETE={name}_complete" in said.out
    (tmp_path / "script").write_text(said.out)
    if shutil.which(name) is None:
        pytest.skip(f"this machine has no {name}, so its script was only read by us")
    done = subprocess.run(
        [name, check, "script"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_completing_an_invalid_plan_prints_nothing(tmp_path: Path, shell: dict[str, str]) -> None:
    """A plan with mistakes, or a missing run, completes to nothing and prints nothing."""
    (tmp_path / "bad.yml").write_text("version: 1\nsteps: 3\n")
    for words in ("planrun\nexecute\nbad.yml\n--only\n", "planrun\nexplain\nlast\n"):
        place = str(words.count("\n"))
        env = {**shell, "COMP_WORDS": words, "COMP_CWORD": place, "_PLANRUN_COMPLETE": "bash_complete"}
        done = subprocess.run(
            ["planrun"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="this machine has no bash")
def test_bash_completes_what_is_asked(
    tmp_path: Path, shell: dict[str, str], say: Callable[..., Said]
) -> None:
    """In bash, TAB offers the questions of a plan with their options, and the waiting steps of a run."""
    (tmp_path / "asks.yml").write_text(ASKS)
    assert say("execute", "asks.yml", "--decide", "sure=yes").code == 5
    typed = {
        "planrun execute asks.yml --decide ''": "sure= auth=jwt auth=session",
        "planrun decide last ''": "auth=jwt auth=session",
        "planrun decide last auth=s": "auth=session",
        "planrun approve last ''": "auth",
    }
    script = TYPE + "".join(f"offer {words}\n" for words in typed)
    found = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=shell, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == list(typed.values()), found.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ru"], ["run", "runs"]),
        (["run", "bu"], ["build", "bundle"]),
        (["runs", "pr"], ["prune"]),
        (["model", "ge"], ["generate"]),
        (["help", "exit"], ["exit-codes"]),
        (["list", "--js"], ["--json"]),
    ],
)
@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_zsh_and_fish_are_offered_verbs_groups_and_steps(
    tmp_path: Path, shell: dict[str, str], name: str, words: list[str], offered: list[str]
) -> None:
    """What the scripts of zsh and fish ask for, with a description where there is one."""
    line = ["planrun", *words]
    asked = {
        "zsh": {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)},
        "fish": {"COMP_WORDS": " ".join(line), "COMP_CWORD": words[-1]},
    }[name]
    env = {**shell, **asked, "_PLANRUN_COMPLETE": f"{name}_complete"}
    done = subprocess.run(
        ["planrun"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=True
    )
    rows = done.stdout.split("\n")
    found = rows[1::3] if name == "zsh" else [row.partition(",")[2].partition("\t")[0] for row in rows[:-1]]
    assert (found, done.stderr) == (offered, "")
