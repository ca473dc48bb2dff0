"""A run with a step that runs until somebody opens its gate, for tests of what is done to a run meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The step `gate` runs until there is a file `go`, or a signal that it heeds.
PLAN = """\
version: 1
name: gated
steps:
  - {id: before, run: echo before >> ran}
  - {id: gate, depends_on: [before], run: "echo gate >> ran; until test -e go; do sleep 0.02; done"}
  - {id: after, depends_on: [gate], run: echo after >> ran}
finally:
  - {id: tidy, run: echo tidy >> ran}
"""
COMMAND = (sys.executable, "-m", "planrun")


def until(fact: Callable[[], bool]) -> None:
    """Wait for a fact."""
    limit = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < limit
        time.sleep(0.02)


class Going:
    """A run whose step `gate` runs."""

    def __init__(self, folder: Path, plan: str) -> None:
        (folder / "plan.yml").write_text(plan)
        self.folder = folder
        self.process = self.start("execute", "plan.yml")
        until(lambda: "gate" in self.ran())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in the folder of the run."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ran(self) -> list[str]:
        """Return the steps that began, in their order."""
        path = self.folder / "ran"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def ledger(self) -> str:
        """Return the text of the ledger."""
        (path,) = self.folder.glob(".planrun/runs/*/ledger.jsonl")
        return path.read_text()

    def asked(self, why: str) -> bool:
        """Whether the run has recorded that it is asked to end or to pause."""
        return f'"why":"{why}"' in self.ledger()

    def open(self) -> None:
        """Let the gate end."""
        (self.folder / "go").touch()

    def end(self) -> tuple[int, str]:
        """Return exit code and stderr of the run."""
        _, said = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, said
