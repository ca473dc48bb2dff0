"""Start programs, note what they use, and compare medians of runs that took turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.calm import CALM, Load, wait_for_calm

MIB_IN_KIB = 1024
TRIES = 2  # for a run on an otherwise idle machine


class MeasureError(Exception):
    """A program that could not be measured; the message says which and why."""


@dataclass(frozen=True)
class Usage:
    """What one run used, all its children included."""

    wall: float  # seconds
    cpu: float  # seconds, user and system
    rss: float  # MiB of the largest process
    own: float = 0.0  # seconds of the process itself, without its children; 0 where that is unknown
    status: int = 0
    foreign: float | None = None  # share of the processors that other work used meanwhile


@dataclass
class Workspace:
    """A folder with one input file; the files that a run creates are moved away before the next one."""

    folder: Path
    trash: Path
    keep: frozenset[str]

    def reset(self) -> None:
        """Move everything but the inputs away; renaming leaves the disk no work during the run."""
        for entry in list(self.folder.iterdir()):
            if entry.name not in self.keep:
                entry.rename(self.trash / f"{time.monotonic_ns()}-{entry.name}")


@dataclass
class Contender:
    """One program on one input."""

    name: str
    argv: Sequence[str]
    workspace: Workspace
    env: dict[str, str]
    terminal: bool = False  # whether its output goes to a terminal
    before: Callable[[dict[str, str]], None] | None = None  # changes the environment of the next run
    runs: list[Usage] = field(default_factory=list)

    def median(self) -> Usage:
        """The median of each figure over the runs."""
        if not self.runs:
            raise MeasureError(f"{self.name} was not measured")
        return Usage(
            statistics.median(run.wall for run in self.runs),
            statistics.median(run.cpu for run in self.runs),
            statistics.median(run.rss for run in self.runs),
            statistics.median(run.own for run in self.runs),
        )


def run_once(launcher: Path, contender: Contender, *, may_fail: bool = False) -> Usage:
    """Run a contender in a clean workspace; MeasureError with the end of its output if it fails."""
    contender.workspace.reset()
    env = dict(contender.env)
    if contender.before is not None:
        contender.before(env)
    trash = contender.workspace.trash
    result, output = trash / "launch.result", trash / "launch.output"
    result.unlink(missing_ok=True)
    output.unlink(missing_ok=True)  # freeing a large file belongs to no run
    subprocess.run(
        [launcher, result, "-" if contender.terminal else output, *contender.argv],
        cwd=contender.workspace.folder,
        env=env,
        check=True,
    )
    wall_ns, user_us, system_us, own_us, kib, status = map(int, result.read_text().split())
    if status != 0 and not may_fail:
        raise MeasureError(f"{contender.name} ended with {status}: {_tail(output)}")
    return Usage(wall_ns / 1e9, (user_us + system_us) / 1e6, kib / MIB_IN_KIB, own_us / 1e6, status)


def _tail(output: Path) -> str:
    if not output.exists():
        return "its output went to a terminal"
    with output.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 2000))
        return file.read().decode("utf-8", "replace").strip()


def _calm_run(launcher: Path, contender: Contender, tries: int) -> Usage:
    """Run until the machine is calm meanwhile, `tries` times at most, and return the calmest run."""
    runs: list[Usage] = []
    while len(runs) < tries and not (runs and _calm(runs[-1])):
        if tries > 1:
            wait_for_calm()
        begin = Load.now()
        usage = run_once(launcher, contender)
        runs.append(replace(usage, foreign=Load.now().foreign_since(begin)))
    return min(runs, key=lambda run: run.foreign or 0)


def _calm(run: Usage) -> bool:
    # The counters move in steps of 10 ms: for a shorter run they are meaningless.
    return run.foreign is None or run.foreign <= CALM or run.wall < 0.2


Show = Callable[[int, str], None]  # is called with the round, from 0, and the name of the next program


def take_turns(
    launcher: Path,
    contenders: Sequence[Contender],
    rounds: int,
    *,
    tries: int = TRIES,
    show: Show | None = None,
) -> None:
    """Run every contender once to warm it up, then `rounds` times in turn, when the machine is calm.

    The order moves on by one each round, so that none always follows the same neighbour. With one try a run counts
    whatever else the machine does.
    """
    for number in range(rounds + 1):
        shift = number % len(contenders)
        for contender in (*contenders[shift:], *contenders[:shift]):
            if show is not None:
                show(number, contender.name)
            if number:
                contender.runs.append(_calm_run(launcher, contender, tries))
            else:
                run_once(launcher, contender)
