"""docs/walk.sh and docs/story.sh are started as their pages say, from a checkout in any state."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import LIMIT
from tests.docs.pages import DOCS, ROOT
from tests.docs.playing import install

NAMES = ("walk", "story")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What of a source archive the scripts use, without modes and without git."""
    for name in ("docs", "action"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for script in (tmp_path / "docs").glob("*.sh"):
        script.chmod(0o644)
    return tmp_path


def start(
    name: str, checkout: Path, *, without: tuple[str, ...] = ("planrun",)
) -> subprocess.CompletedProcess[str]:
    """Type the command of a page, where no folder of PATH has one of these programs."""
    (command,) = re.findall(
        rf"^bash docs/{name}\.sh$", (DOCS / f"{name}.md").read_text("utf-8"), re.MULTILINE
    )
    programs = checkout / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        if not os.access(folder, os.R_OK | os.X_OK):  # a folder of somebody else, or none
            continue
        for program in Path(folder).glob("*"):
            if program.name not in without and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=os.environ | {"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT * 4,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_without_planrun_a_script_stops_at_once_and_says_how_to_install_it(name: str, checkout: Path) -> None:
    """One line and exit code 127, and no part of it was played."""
    done = start(name, checkout)
    assert (done.returncode, done.stdout) == (127, "")
    assert re.fullmatch(
        rf"docs/{name}\.sh: planrun is not on the PATH; install it: .+ install \.\n", done.stderr
    )


@pytest.mark.parametrize("name", NAMES)
def test_without_git_a_script_stops_at_once(name: str, checkout: Path) -> None:
    """The program that lacks is named."""
    install(checkout / ".venv")
    done = start(name, checkout, without=("planrun", "git"))
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == f"docs/{name}.sh: git is not on the PATH\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_script_finds_the_planrun_of_its_checkout(name: str, checkout: Path) -> None:
    """After the page's first command the second one works, in a shell that has activated nothing."""
    install(checkout / ".venv")
    done = start(name, checkout)
    assert (done.returncode, done.stderr) == (0, "")
    assert "planrun: command not found" not in done.stdout
    assert "=== r" in done.stdout


def test_readme_has_the_command_of_the_story() -> None:
    """What README says is what is tested here."""
    assert "\n```sh\nbash docs/story.sh\n```\n" in (ROOT / "README.md").read_text("utf-8")
