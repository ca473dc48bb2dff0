"""docs/agents.sh, docs/walk.sh and docs/story.sh are started as their pages say, from a checkout in any state.

That they find the planrun of their checkout, the tests of these pages show: they play them in one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT
from tests.docs.playing import checked_out, install, start

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("agents", "walk", "story")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without an environment."""
    return checked_out(tmp_path)


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


def test_the_guarantees_have_the_command_of_the_story() -> None:
    """What the page says is what is tested here."""
    assert "\n```sh\nbash docs/story.sh\n```\n" in (ROOT / "docs" / "guarantees.md").read_text("utf-8")
