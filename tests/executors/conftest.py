"""What the tests of executors share: a folder for a run, jobs to run in it, and a loop with a limit."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.executors import attempt, local, owners
from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.model.job import Job, Outcome
from planrun.secrets.masker import Masker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planrun.model.events import Event

LIMIT = 120.0
"""Seconds after which something that should have ended is said to hang."""
SHORT = (0.3, 1.0, 4.0, 16.0)
"""Timeouts in seconds, for those who have to do something before it: the first one that is long enough counts."""

SECRET = "correct-horse-battery"


class Masks(Masker):
    """Masks over one secret, for executors, which want streams alone."""

    def __init__(self) -> None:
        super().__init__({"SECRET": SECRET})

    def mask_event(self, event: Event) -> Event:
        """Never asked for by an executor."""
        raise AssertionError(event)


class Bench:
    """A run's folder, from which jobs are made and in which their logs lie."""

    def __init__(self, folder: Path, *, masked: bool = False) -> None:
        self.folder = folder
        self.masks = Masks() if masked else None
        self.run_id = f"{folder.name}-{os.urandom(6).hex()}"  # the same test may run in another shell, too
        self.logs = folder / "logs"
        self.executor: LocalExecutor

    def make(self, *, grace: float = 0.5) -> LocalExecutor:
        """An executor for this folder."""
        return LocalExecutor(logs=str(self.logs), masks=self.masks, options=ExecutorOptions(grace=grace))

    def job(self, step: str, *argv: str, **fields: Any) -> Job:
        """A job with this step id and command; `fields` replace the defaults."""
        env = {
            "PATH": os.environ["PATH"],
            "PLANRUN_RUN": self.run_id,
            "PLANRUN_STEP": step,
            "PLANRUN_ATTEMPT": "1",
        }
        given: dict[str, Any] = {"attempt": 1, "env": env, "cwd": str(self.folder), "timeout": LIMIT}
        return Job(step=step, argv=argv, **{"log": str(self.logs / step / "1.log")} | given | fields)

    def shell(self, step: str, script: str, **fields: Any) -> Job:
        """A job that runs a script with `sh`."""
        return self.job(step, "sh", "-c", script, **fields)

    def python(self, step: str, program: str, **fields: Any) -> Job:
        """A job that runs a Python program without site packages."""
        return self.job(step, sys.executable, "-I", "-S", "-c", program, **fields)

    def finish(self, *jobs: Job) -> dict[str, Outcome]:
        """Start these jobs and wait until nothing runs any more; return the outcomes by step."""
        for job in jobs:
            self.executor.start(job)
        return self.outcomes(len(jobs))

    def outcomes(self, count: int) -> dict[str, Outcome]:
        """Wait for so many outcomes, and fail when they do not come."""
        found: dict[str, Outcome] = {}
        limit = time.monotonic() + LIMIT
        while len(found) < count:
            assert time.monotonic() < limit, f"still running: {self.executor.running}"
            found.update((job.step, outcome) for job, outcome in self.executor.wait(1.0))
        return found

    def run(self, job: Job) -> Outcome:
        """Run one job to its end."""
        return self.finish(job)[job.step]

    def in_time(self, job: Callable[[float], Job], ready: Callable[[], bool]) -> Outcome:
        """Run the job with longer and longer timeouts until its process was ready when the time was over.

        The kernel decides when a process gets a processor: on a busy machine 0.3 s can pass before its first command.
        """
        for timeout in SHORT:
            trial = job(timeout)
            outcome = self.run(trial)
            if ready():
                return outcome
            Path(trial.log).unlink(missing_ok=True)
        raise AssertionError(f"it did not even begin in {SHORT[-1]:g} s")

    def log(self, step: str) -> str:
        """Return the output of the step's first attempt; empty when there is no file."""
        path = self.logs / step / "1.log"
        return path.read_text("utf-8") if path.exists() else ""

    def until(self, fact: Callable[[], bool]) -> None:
        """Keep the executor's loop going until something is true."""
        limit = time.monotonic() + LIMIT
        while not fact():
            assert time.monotonic() < limit, "it never came true"
            assert self.executor.wait(0.01) == []


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return not stat.exists() or stat.read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait without a limit for a killed process: a dying process needs processor time, too."""
    monkeypatch.setattr(attempt, "UNKILLABLE", LIMIT)
    monkeypatch.setattr(local, "UNKILLABLE", LIMIT)
    monkeypatch.setattr(owners, "_LIMIT", LIMIT)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Give the test a folder with a local executor whose grace time is short."""
    bench = Bench(tmp_path)
    with bench.make() as bench.executor:
        yield bench


@pytest.fixture(params=["log of its own", "through masks"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Give the test the same twice: children that write into the log, and children that write into a pipe."""
    bench = Bench(tmp_path, masked=request.param == "through masks")
    with bench.make() as bench.executor:
        yield bench


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """Read the process ids that steps noted in the file `pids`; whatever survived the test is killed."""
    path = tmp_path / "pids"

    def noted() -> list[int]:
        return [int(line) for line in path.read_text("ascii").split()] if path.exists() else []

    yield noted
    for pid in noted():
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
