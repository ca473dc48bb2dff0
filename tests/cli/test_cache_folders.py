"""The user's own cache under any umask: private folders, results that are used again, a refusal that is reported."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
steps:
  - {id: make, cache: {key: x}, produces: [out], run: "echo o > out; echo made >> ran"}
"""


def execute(folder: Path, umask: int = 0o022) -> str:
    """Run the plan with a cache below `folder` that is not there yet, and return what was printed."""
    (folder / "plan.yml").write_text(PLAN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=folder,
        env={**os.environ, "PLANRUN_CACHE_DIR": "", "XDG_CACHE_HOME": str(folder / "xdg")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
        umask=umask,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("umask", [0o002, 0o000, 0o027])
def test_a_result_is_used_again_under_any_umask(tmp_path: Path, umask: int) -> None:
    """Each folder of the cache is the user's alone, so that the store is trusted by the next run."""
    execute(tmp_path, umask)
    assert "cached, of run" in execute(tmp_path, umask)
    assert (tmp_path / "ran").read_text() == "made\n"
    folders = [tmp_path / "xdg", *[path for path in (tmp_path / "xdg").rglob("*") if path.is_dir()]]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert len(folders) > 5


def test_a_store_that_others_can_write_is_refused_and_reported(tmp_path: Path) -> None:
    """It names the folder and what to do, and the step runs."""
    execute(tmp_path)
    store = tmp_path / "xdg" / "planrun" / "store"
    store.chmod(0o775)
    said = execute(tmp_path)
    assert (
        f"the step cache is not used: other users can write to {store}; remove it, or run chmod go-w on it"
        in said
    )
    assert (tmp_path / "ran").read_text() == "made\nmade\n"
    store.chmod(0o755)
    assert "cached, of run" in execute(tmp_path)


def test_a_store_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "xdg").write_text("")
    assert f"the step cache is not used: {tmp_path}/xdg" in execute(tmp_path)
