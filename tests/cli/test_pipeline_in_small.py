"""The whole pipeline in small: matrix, a plan in use, a service, cached results, artifacts and cleanup in one plan.

Everything is real: the plan of the examples in a folder of its own, its service, and what it leaves behind.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LIMIT

EXAMPLE = Path(__file__).parents[2] / "plans" / "examples" / "pipeline"
CACHED = {
    "test[module=words]", "test[module=count]", "package/zip", "stage", "use[world]", "use[you]", "publish",
}  # fmt: skip
ALWAYS = {"server", "tidy"}


class Pipeline:
    """The example in a folder, a port that was free, and a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self.port = listening.getsockname()[1]
        shutil.copytree(
            EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "planrun-out", ".planrun")
        )

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call planrun in the folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI"))}
        env |= {"PLANRUN_CACHE_DIR": str(self.folder / ".store"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "planrun", *words]
        return subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    def run(self, code: int = 0) -> dict[str, dict[str, Any]]:
        """Execute the plan, and return each step of ledger.json that is no group."""
        done = self.call("execute", "pipeline.yml", "--param", f"port={self.port}")
        assert done.returncode == code, done.stdout + done.stderr
        ledger = json.loads((self.folder / "planrun-out" / "ledger.json").read_text("utf-8"))
        steps = [*ledger["steps"], *ledger["rollback"]["steps"]]
        return {step["id"]: step for step in steps if step["kind"] != "group"}

    def ran(self) -> set[str]:
        """Execute the plan, and return which of its cached steps ran."""
        found = self.run()
        assert {name for name in found if found[name]["status"] == "completed"} == CACHED | ALWAYS
        return {name for name in CACHED if found[name]["reason"] != "cached"}

    def change(self, path: str, old: str, new: str) -> None:
        """Change one file."""
        file = self.folder / path
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def is_served(self) -> bool:
        """Say whether anything listens at the port."""
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Give the test a pipeline that ran once."""
    made = Pipeline(tmp_path / "pipeline")
    assert made.ran() == CACHED
    return made


def test_only_what_depends_on_a_change_runs_again(pipeline: Pipeline) -> None:
    """A second run uses all results; after a change of one file only its readers and their dependents run."""
    assert pipeline.ran() == set()
    pipeline.change("greet/words.py", "Hello", "Welcome")
    assert pipeline.ran() == CACHED - {"test[module=count]"}
    assert (pipeline.folder / "build" / "said-you.txt").read_text() == "Welcome, you! (10 letters)\n"
    output = pipeline.call("explain", "last", "test[module=words]").stdout
    assert "input greet/words.py changed" in output
    pipeline.change("tests/test_count.py", "Blanks", "Spaces")
    assert pipeline.ran() == {"test[module=count]"}  # its result is the same: nothing else has a reason
    assert not list((pipeline.folder / "build").glob("*.pyz"))
    assert not pipeline.is_served()


def test_a_failure_is_undone_and_cleaned_up_and_fixed(pipeline: Pipeline) -> None:
    """Changes of the run are undone, the service ends, cleanup runs, and a resume runs only missing steps."""
    pipeline.change("greet/words.py", "Hello, {who}", "Hello, nobody")
    found = pipeline.run(code=1)
    assert found["test[module=words]"]["status"] == "failed"
    assert (found["publish"]["status"], found["tidy"]["status"]) == ("blocked", "completed")
    assert found["undo:stage"]["status"] == "completed"
    assert not (pipeline.folder / "build" / "public" / "greet.pyz").exists()
    assert not pipeline.is_served()
    again = pipeline.run(code=1)["test[module=words]"]
    assert again["cache"]["why"] == "no result of the last time is in the store"
    pipeline.change("greet/words.py", "Hello, nobody", "Hello, {who}")
    assert pipeline.call("resume", "last").returncode == 0
    assert (pipeline.folder / "build" / "public" / "greet.pyz").exists()
    assert (pipeline.folder / "build" / "results.tar").exists()
    assert not pipeline.is_served()
