"""What every test shares: a clean environment, the installed command, and honest proof marks."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a CI system says about itself: a test that wants it sets it, no test inherits it.
CI_MARKS = re.compile(r"CI|CI_.*|GITHUB_.*|GITLAB_.*|RUNNER_.*|ACT|TF_BUILD|JENKINS_URL|BUILDKITE|PLANRUN_.*")
TERMINAL_MARKS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS")
ROW = re.compile(r"[A-Z]{1,3}-\d{2}|P\d{1,2}|R\d{1,2}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--update-goldens` write the golden files of tests/cases anew."""
    parser.addoption(
        "--update-goldens", action="store_true", help="write the golden files of tests/cases anew"
    )


class Command:
    """The planrun command, run as a person runs it: in its own process, from a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `planrun WORDS…` in `cwd` (default: the test's folder) to its end and return what it said.

        `env` is added to the test's environment. No input is given; 60 s are allowed.
        """
        return subprocess.run(
            [sys.executable, "-m", "planrun", *map(str, words)],
            cwd=cwd or self.folder,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the outcome of a test independent of the CI, the terminal and the caches around it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if CI_MARKS.fullmatch(name) or name in TERMINAL_MARKS:
                patch.delenv(name)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def collector_on() -> Iterator[None]:
    """Undo what `execute` does to a process that it thinks its own: it turns garbage collection off."""
    yield
    gc.enable()


@pytest.fixture
def planrun(tmp_path: Path) -> Command:
    """Give the test the planrun command, standing in the test's own folder."""
    return Command(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a `shows` mark that names no row: a proof of nothing would count as one."""
    for item in items:
        for mark in item.iter_markers("shows"):
            if not mark.args or not all(isinstance(row, str) and ROW.fullmatch(row) for row in mark.args):
                raise pytest.UsageError(f"{item.nodeid}: shows{mark.args} must name rows such as 'GP-34'")
