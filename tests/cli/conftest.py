"""The command line, and a folder with a run in it that went wrong in every harmless way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from planrun.cli import main
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAN = """\
version: 1
name: mixed
description: One step of each end.
params:
  target: {type: string, enum: [staging, prod], default: staging}
defaults: {timeout: 30s}
limits: {max_parallel: 2}
steps:
  - {id: lint, title: Look at the code, run: exit 3, on_failure: continue, estimated_tokens: 1200}
  - id: test
    run: echo first line; echo Connection refused >&2; exit 75
    retries: {max: 1, backoff: {initial: 10ms}}
  - {id: build, run: echo size=3 >> "$PLANRUN_OUTPUT", outputs: {size: integer}}
  - {id: pack, run: "true", depends_on: [test, build], estimated_tokens: 800}
  - {id: ship, run: "true", depends_on: [pack], timeout: 2m}
  - {id: prod, run: "true", depends_on: [build], condition: params.target == 'prod' and steps.build.outputs.size > 2}
  - {id: mourn, run: "true", depends_on: {test: failed}}
finally:
  - {id: tidy, run: "true"}
"""


class Said(NamedTuple):
    """The result of a command line."""

    code: int
    out: str
    err: str


@pytest.fixture
def say(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Said]:
    """Give the test the command line, standing in the test's folder.

    A test that shows a row of docs/features.md starts the command as a user does; others call it in this process, which
    is faster.
    """
    monkeypatch.chdir(tmp_path)

    def call(*words: str | Path) -> Said:
        code = main([str(word) for word in words])
        return Said(code, *capsys.readouterr())

    def start(*words: str | Path) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "planrun", *map(str, words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return start if request.node.get_closest_marker("shows") else call


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which PLAN, as plan.yml, was executed once; never change it."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "plan.yml").write_text(PLAN)
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--quiet"]
    subprocess.run(
        words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False
    )
    return folder


@pytest.fixture
def mixed(recorded: Path, tmp_path: Path) -> Path:
    """Put a copy of the recorded run into the test's folder and return the run's folder."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    return run
