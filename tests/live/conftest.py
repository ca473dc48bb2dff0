"""Runs that go on while a test watches them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Going:
    """A folder with a plan, and the run of it that was started last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def starts(self, plan: str, *words: str) -> subprocess.Popen[bytes]:
        """Start the plan in the background; return when its first attempt or gate is in the ledger."""
        (self.folder / "plan.yml").write_text(plan)
        process = subprocess.Popen(
            [sys.executable, "-m", "planrun", "run", "plan.yml", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._started.append(process)
        until(lambda: any(event["type"] in ("attempt_started", "gate_opened") for event in self.events()))
        return process

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the newest run; a line that is being written is left out."""
        ledgers = sorted(self.folder.glob(".planrun/runs/*/ledger.jsonl"))
        rows = ledgers[-1].read_bytes().split(b"\n")[:-1] if ledgers else []
        return [json.loads(row) for row in rows]

    def answers(self) -> list[tuple[str, Any, str]]:
        """Return what was answered: step, answer, who."""
        found = [event for event in self.events() if event["type"] == "gate_answered"]
        return [(event["step"], event["answer"], event["by"]) for event in found]

    @property
    def run(self) -> str:
        """The id of the newest run."""
        return max(path.name for path in (self.folder / ".planrun" / "runs").iterdir())

    def ends(self) -> str:
        """Wait for the end of the newest run; return its verdict."""
        until(lambda: self.events()[-1]["type"] == "run_ended")
        return str(self.events()[-1]["verdict"])

    def close(self) -> None:
        """End what still runs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()


def until(is_so: Callable[[], object]) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Going]:
    """Give the test a folder in which runs are started."""
    found = Going(tmp_path)
    yield found
    found.close()
