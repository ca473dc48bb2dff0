"""Files of other tools, converted in this process or by the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from planrun.convert.convert import Converted, Order, convert
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Converted]:
    """Give the test a conversion of a text, which is written to a file before."""

    def make(text: str, *accepted: str, source: str = "", jobs: tuple[str, ...] = ()) -> Converted:
        path = tmp_path / "source.yml"
        path.write_text(dedent(text), encoding="utf-8")
        return convert(Order(file=str(path), source=source, accepted=accepted, jobs=jobs))

    return make


class Ended(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str


class Workspace:
    """A folder with one workflow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def planrun(self, *words: str, **env: str) -> Ended:
        """Run planrun in the folder."""
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GITHUB_", "CI", "PLANRUN_"))
        }
        done = subprocess.run(
            [sys.executable, "-m", "planrun", *words],
            cwd=self.folder,
            env={**environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def convert(self, text: str, *words: str) -> Ended:
        """Convert a workflow to plan.yml."""
        (self.folder / "ci.yml").write_text(dedent(text))
        return self.planrun("convert", "ci.yml", "-o", "plan.yml", "--force", *words)

    def execute(self, *words: str, **env: str) -> Ended:
        """Execute plan.yml."""
        return self.planrun("execute", "plan.yml", "--quiet", "--report-dir", "out", *words, **env)

    def play(self, text: str, *words: str) -> list[str]:
        """Convert and execute a workflow; returns the lines that its steps wrote to `said`."""
        ended = self.convert(text, *words)
        assert ended.code == 0, ended.err
        ended = self.execute()
        assert ended.code == 0, ended.out + ended.err
        return self.said

    @property
    def said(self) -> list[str]:
        """The lines that steps wrote."""
        path = self.folder / "said"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """The steps of the plan."""
        plan = yaml.safe_load((self.folder / "plan.yml").read_text())
        return {str(step["id"]): step for step in plan["steps"]}


@pytest.fixture
def there(tmp_path: Path) -> Workspace:
    """Give the test a folder of its own."""
    return Workspace(tmp_path)
