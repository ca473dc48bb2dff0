"""`planrun validate`: every problem of every file, in the form its reader wants, and no trace left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

GOOD = "version: 1\nsteps:\n  - {id: a, run: 'true'}\n"
BAD = "version: 1\nsteps:\n  - {id: a, rum: 'true'}\n  - {id: b, depends_on: [c], run: 'true'}\n"


@pytest.fixture
def plans(tmp_path: Path) -> None:
    """Write one good and one bad plan."""
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "bad.yml").write_text(BAD)


@pytest.mark.usefixtures("plans")
def test_a_valid_plan_is_one_line(say: Callable[..., Said]) -> None:
    """A valid plan is named with the number of its steps, and the exit code is 0."""
    assert say("validate", "good.yml") == (0, "good.yml: ok, 1 step\n", "")


@pytest.mark.usefixtures("plans")
def test_all_problems_of_all_files_in_one_go(say: Callable[..., Said]) -> None:
    """Several files are checked, valid ones named, every problem of the others shown with excerpt and caret."""
    said = say("validate", "bad.yml", "good.yml", "missing.yml")
    assert (said.code, said.err) == (2, "for details: planrun explain E104\n")
    assert "good.yml: ok, 1 step\n" in said.out
    assert "bad.yml:3:13: error[E104]:" in said.out
    assert 'did you mean "run"?' in said.out
    assert "bad.yml:4:26: error[" in said.out
    assert "missing.yml:1:1: error[E001]:" in said.out
    assert "  - {id: a, rum: 'true'}" in said.out


@pytest.mark.usefixtures("plans")
def test_json_and_sarif_are_one_document_each(say: Callable[..., Said]) -> None:
    """`--format json` (and --json) and `sarif` print one document, for valid plans, too."""
    for words in (["--format", "json"], ["--json"]):
        said = say("validate", "bad.yml", "good.yml", *words)
        assert said.code == 2
        problems = json.loads(said.out)["problems"]
        assert [(one["file"], one["line"]) for one in problems] == [("bad.yml", 3), ("bad.yml", 4)]
    assert json.loads(say("validate", "good.yml", "--json").out)["problems"] == []
    assert json.loads(say("validate", "bad.yml", "--format", "sarif").out)["version"] == "2.1.0"
    assert len(json.loads(say("validate", "good.yml", "--format", "sarif").out)["runs"]) == 1


@pytest.mark.usefixtures("plans")
def test_junit_has_a_case_for_every_problem_and_every_valid_file(say: Callable[..., Said]) -> None:
    """`--format junit` fails one case per problem and passes one per valid file."""
    said = say("validate", "bad.yml", "good.yml", "--format", "junit")
    suite = ET.fromstring(said.out.encode())
    assert said.code == 2
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")


@pytest.mark.usefixtures("plans")
def test_github_gets_annotations(say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--format github` prints workflow commands alone; text under GitHub prints them beside the text."""
    only = say("validate", "bad.yml", "--format", "github").out.strip().split("\n")
    assert len(only) == 2
    assert all(row.startswith("::error file=bad.yml,line=") for row in only)
    assert say("validate", "good.yml", "--format", "github").out == ""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    both = say("validate", "bad.yml").out
    assert "::error file=bad.yml,line=3" in both
    assert "bad.yml:3:13: error[E104]" in both


@pytest.mark.parametrize("words", [["validate", "./bad.yml"], ["execute", "./bad.yml"]])
def test_annotations_count_from_the_root_of_the_checkout(
    words: list[str], say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a subfolder annotations and SARIF name the file as GitHub knows it, the text as the user does."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "bad.yml").write_text(BAD)
    monkeypatch.chdir(tmp_path / "app")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    said = say(*words)
    assert "::error file=app/bad.yml,line=3" in said.out
    assert "./bad.yml:3:13: error[E104]" in said.out + said.err
    sarif = json.loads(say("validate", "bad.yml", "--format", "sarif").out)
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "app/bad.yml"


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every name below a folder with its size and time of change."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
    }


@pytest.mark.skipif(
    shutil.which("strace") is None, reason="needs strace to see what the kernel was asked for"
)
@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
@pytest.mark.usefixtures("plans")
def test_validating_runs_nothing_and_writes_nothing(tmp_path: Path, form: str) -> None:
    """Whatever the form, no process is started and no file is opened for writing, made, moved or removed."""
    trace = tmp_path.parent / f"{tmp_path.name}.trace"
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    before = snapshot(tmp_path)
    calls = "trace=execve,fork,vfork,clone,clone3,openat,open,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat2"
    words = ["strace", "-f", "-qq", "-e", calls, "-o", str(trace), sys.executable, "-m", "planrun"]
    done = subprocess.run(
        [*words, "validate", "good.yml", "bad.yml", "--format", form],
        cwd=tmp_path, env={**os.environ, **home}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode == 1 and "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 2
    # Files may be called anything: only its system call and its flags decide what a row is about.
    rows = re.sub(r'"[^"]*"(?<!"/dev/null")', '""', trace.read_text()).split("\n")
    assert [row for row in rows if "execve(" in row][1:] == []
    assert [row for row in rows if "fork(" in row or "clone" in row] == []
    changing = ("O_WRONLY", "O_RDWR", "O_CREAT", "creat(", "mkdir", "unlink", "rename")
    assert [row for row in rows if any(word in row for word in changing) and "/dev/null" not in row] == []
    assert snapshot(tmp_path) == before


def test_a_warning_is_shown_and_fails_nothing(say: Callable[..., Said], tmp_path: Path) -> None:
    """A plan with a warning is valid: exit 0, the warning is shown, and in JUnit the file passes."""
    (tmp_path / "odd.yml").write_text(
        "version: 1\nparams: {x: {type: string, default: y}}\n"
        "steps:\n  - {id: a, title: 'to ${{ params.x }}', run: 'true'}\n"
    )
    said = say("validate", "odd.yml")
    assert said.code == 0
    assert "odd.yml: ok, 1 step\n" in said.out
    assert "odd.yml:4:20: warning[W301]: " in said.out
    suite = ET.fromstring(say("validate", "odd.yml", "--format", "junit").out.encode())
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")


@pytest.mark.parametrize("verb", ["validate", "lint"])
def test_colours_follow_the_environment(verb: str, tmp_path: Path) -> None:
    """FORCE_COLOR paints severity and carets of the text form alone; NO_COLOR turns that off."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, rnu: x}\n")

    def printed(form: str, **variables: str) -> str:
        argv = [sys.executable, "-m", "planrun", verb, "--format", form, "plan.yml"]
        env = {**{name: value for name, value in os.environ.items() if "COLOR" not in name}, **variables}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False).stdout

    plain = printed("text")
    painted = printed("text", FORCE_COLOR="1")
    assert "\x1b[1;31merror[E104]\x1b[0m" in painted
    assert "\x1b[32m^^^\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain
    assert "\x1b" not in plain + printed("text", FORCE_COLOR="1", NO_COLOR="1") + printed(
        "json", FORCE_COLOR="1"
    )


def test_a_policy_file_is_checked(say: Callable[..., Said], tmp_path: Path) -> None:
    """A policy file needs no plan beside it, and each problem has its line and column."""
    (tmp_path / "good.yml").write_text("auto_approve: low\nrules: [{deny: {effect: destroys}}]\n")
    assert say("validate", "--policy", "good.yml") == (0, "good.yml: ok, a policy\n", "")
    (tmp_path / "bad.yml").write_text("auto_aprove: low\nrules: [{deny: {effect: destroy}}]\n")
    said = say("validate", "--policy", "good.yml", "--policy", "bad.yml")
    assert said.code == 2
    assert "good.yml: ok, a policy\n" in said.out
    assert "bad.yml:1:1: error[E104]" in said.out
    assert say("validate", "--policy", "missing.yml").code == 2
    assert say("validate").code == 2


@pytest.mark.shows("GP-22")
def test_a_schedule_of_a_step_is_no_timer(say: Callable[..., Said], tmp_path: Path) -> None:
    """The hint names the place of the key, and that planrun has no scheduler."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, run: 'true', schedule: '0 3 * * *'}\n"
    )
    said = say("validate", "plan.yml")
    assert said.code == 2
    assert 'plan.yml:3:26: error[E104]: unknown key "schedule" in step "a"; ' in said.out
    assert "write it at the top level, as the order of all steps; planrun has no scheduler\n" in said.out
