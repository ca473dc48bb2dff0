"""Many starts at once in one workspace: one runs, the others refuse and name it, and a dead holder holds nothing."""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.trials import LIMIT, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

REFUSED_IN = 2.0
"""Seconds within which each refusal has to come; this proof uses every processor it gets."""
FREE_IN = 1.0
"""Seconds after SIGKILL of its holder within which the lock has to be free."""

FAULTS = {
    "": "",
    "no-lock": "import fcntl\nfcntl.flock = lambda *_: None\n",
    "nameless": "import os\nos.pwrite = lambda fd, data, at: len(data)\n",
    "lasting": "import os, time\nfrom planrun.records.lock import WorkspaceLock as L\n"
    "L.acquire = lambda self, owner, o=L.acquire: (o(self, owner), os.fork() or (time.sleep(20), os._exit(0)))\n",
}
"""Faults to plant, as what is run before planrun starts. lasting: a process that outlives planrun has the lock, too."""
_DRIVER = "{fault}from planrun.cli import run\nrun()\n"
_PLAN = """\
version: 1
defaults: {shell: sh}
steps:
  - {id: hold, run: "echo >> ran; until test -e go; do sleep 0.05; done"}
"""
_REFUSAL = re.compile(
    r"^planrun: error: another run holds this workspace: run (\S+), process (\d+) on \S+, since \S+Z$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Round:
    """What one round came to: seconds of the slowest refusal, seconds until the dead holder's lock was free."""

    slowest: float
    free: float
    problems: tuple[str, ...]

    @property
    def late(self) -> bool:
        """Whether anything took longer than it may."""
        return self.slowest > REFUSED_IN or self.free > FREE_IN


class Start:
    """One `planrun execute` in a folder."""

    def __init__(self, folder: Path, number: int, fault: str) -> None:
        self.errors = folder / f"errors-{number}"
        self.began = time.monotonic()
        self.seconds = 0.0
        env = {
            name: value for name, value in os.environ.items() if not name.startswith(("PLANRUN_", "PYTHON"))
        }
        caches = {
            "PLANRUN_CACHE_DIR": str(folder.parent / "plans"),
            "PYTHONPYCACHEPREFIX": str(folder.parent / "code"),
        }
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _DRIVER.format(fault=FAULTS[fault]), "execute", "plan.yml"],
                cwd=folder,
                env=env | caches | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def ended(self) -> bool:
        """Whether it has ended; notes when that was seen."""
        if self.process.poll() is None:
            return False
        self.seconds = self.seconds or time.monotonic() - self.began
        return True


def play(folder: Path, count: int, fault: str = "") -> Round:
    """Start so many at once in an empty folder, and kill the one that runs."""
    (folder / "plan.yml").write_text(_PLAN, "utf-8")
    starts = [Start(folder, number, fault) for number in range(count)]
    try:
        limit = time.monotonic() + LIMIT
        # Once two steps run nothing needs to be waited for: more than one got in.
        while sum(start.ended() for start in starts) < count - 1 and _ran(folder) < 2:
            if time.monotonic() > limit:
                break
            time.sleep(0.005)
        running = [start for start in starts if not start.ended()]
        problems = _judge([start for start in starts if start.ended()], running)
        if len(running) == 1 and not _appears(folder / "ran"):
            problems.append("the one that runs did not start its step")
        free = _kill(folder, running, problems)
        return Round(max([start.seconds for start in starts], default=0.0), free, tuple(problems))
    finally:
        (folder / "go").touch()
        for start in starts:
            start.process.kill()
            start.process.wait()


def is_caught(top: Path, fault: str) -> bool:
    """Plant a fault in a few starts, in a folder of its own below `top`; return whether they show it."""
    folder = top / fault
    folder.mkdir()
    problems = play(folder, 4, fault).problems
    print(f"planted fault {fault}: {(*problems, 'NOT CAUGHT')[0][:150]}")
    return bool(problems)


def _judge(ended: list[Start], running: list[Start]) -> list[str]:
    problems = [] if len(running) == 1 else [f"{len(running)} run"]
    names = {str(start.process.pid) for start in running}
    for start in ended:
        said = start.errors.read_text("utf-8")
        found = _REFUSAL.search(said)
        if start.process.returncode != 2:
            problems.append(f"one ended with {start.process.returncode}: {said.strip()[-200:]}")
        elif not found or found.group(2) not in names:
            problems.append(f"a refusal that does not name the holder: {said.strip()[-200:]}")
    return problems


def _ran(folder: Path) -> int:
    """Return how many steps have begun."""
    ran = folder / "ran"
    return ran.read_bytes().count(b"\n") if ran.exists() else 0


def _appears(path: Path) -> bool:
    limit = time.monotonic() + LIMIT
    while not path.exists():
        if time.monotonic() > limit:
            return False
        time.sleep(0.005)
    return True


def _kill(folder: Path, running: list[Start], problems: list[str]) -> float:
    """Kill who runs and return after how many seconds the lock was free; LIMIT when it never was."""
    began = time.monotonic()
    for start in running:
        start.process.send_signal(signal.SIGKILL)
    fd = os.open(folder / ".planrun" / "lock", os.O_RDONLY)
    try:
        while time.monotonic() - began < 5 * FREE_IN:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.002)
            else:
                return time.monotonic() - began
    finally:
        os.close(fd)
    problems.append("the lock outlives its holder")
    return LIMIT


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a round had any problem or anything came too late."""
    parser = argparse.ArgumentParser(prog="python -m proofs starts", description=__doc__)
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fault", choices=sorted(FAULTS), default="", help="plant this fault")
    chosen = parser.parse_args(words)
    found = []
    with tempfile.TemporaryDirectory(prefix="starts-") as top:
        for number in range(-1, chosen.rounds):
            folder = Path(top) / f"round{number}"
            folder.mkdir()
            if number < 0:  # once alone, so that all rounds find compiled code
                play(folder, 1, chosen.fault)
                continue
            found.append(play(folder, chosen.starts, chosen.fault))
            slowest, free = found[-1].slowest, found[-1].free * 1000
            print(f"round {number}: slowest refusal {slowest:.2f} s, lock free after {free:.1f} ms")
            for problem in found[-1].problems[:3]:
                print(f"  {problem}")
        missed = [fault for fault in FAULTS if fault and not chosen.fault and not is_caught(Path(top), fault)]
    wrong = sum(bool(one.problems) or one.late for one in found)
    print(f"{chosen.rounds} rounds of {chosen.starts} starts; {wrong} of them wrong")
    return int(bool(wrong or missed))
