"""A power cut takes nothing that was synced, and leaves nothing that a resume cannot handle.

The system calls of a run, and of the resume of one, say what the disk may hold after each of them. Each such state is
made, verified and resumed. No event that was synced may be missing, none be called altered; a resume completes, or
says why not before anything runs; what had ended by a synced event and what must not be repeated does not run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planrun.errors import PlanrunError
from proofs.crashing import Kill, Scene, account, known
from proofs.disk import TRACED, Contents, Disk, calls
from proofs.killplans import CLEANUP, CUT, ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ASLEEP = """\
import os

def patch(name, skip):
    sync = getattr(os, name)
    def quietly(fd):
        if not skip(os.readlink(f"/proc/self/fd/{fd}")):
            sync(fd)
    setattr(os, name, quietly)

for name in ("fsync", "fdatasync"):
    patch(name, lambda path: %s)
"""
FAULTS = {
    "": "",
    "nothing-synced": _ASLEEP % "True",
    "plan-not-synced": _ASLEEP % 'path.endswith("plan.yml")',
    "names-not-synced": _ASLEEP % "os.path.isdir(path)",
    "reserve-too-early": "from planrun.records import rundir\nrundir.NEW = ''\n",
    "start-not-synced": "from planrun.engine.scheduler import Scheduler\nScheduler.sync = lambda self: None\n",
    "torn-end-kept": """\
from planrun.app import resume
from planrun.records import reading
resume.repair = lambda path, discard=False: reading.read_ledger(path)
""",
    "zeros-altered": """\
from planrun.records import reading
verify = reading.verify

def strictly(data, head=""):
    found = verify(data, head)
    return found.but(condition="altered") if found.condition == "torn" and b"\\0" in data else found

reading.verify = strictly
""",
}
"""Faults as what is run when planrun starts, in the run that is traced and in what comes after the power cut."""
RUN, RESUME, SECOND = "a run", "the resume of a torn run", "a run after one that was killed"
"""What it is whose power is cut."""
_JOBS = "2"
_STRACE = ("-y", "-xx", "-s", "1000000")


@dataclass(frozen=True)
class State:
    """What a power cut left, and what must be true of it.

    `sure`: the bytes of the ledger that were synced. `once`: the step that must not be repeated may have run.
    """

    number: int
    contents: Contents
    sure: bytes
    once: bool


@dataclass(frozen=True)
class Verdict:
    """What became of a state: how verify called its ledger, what resume said when it refused, what was wrong."""

    number: int
    condition: str
    refusal: str
    problem: str


class Cut:
    """A run, or a resume, whose power may be cut at any moment."""

    def __init__(self, folder: Path, fault: str = "", kind: str = RUN) -> None:
        self.scene = Scene(folder, folder / "shared", CUT, FAULTS[fault])
        self._trace = ""
        strace = (*_STRACE, "-e", f"trace={','.join(known(TRACED))}")
        words: tuple[str, ...] = ("execute", "plan.yml", "--jobs", _JOBS)
        if kind == RESUME:
            self.scene.planrun(*words, kill=Kill(seen=ONCE))
            self._tear()
            words = ("resume", "last", "--jobs", _JOBS)
        self._before = held(self.scene.workspace)
        if kind == SECOND:  # killed before anything of it is sure to be on the disk
            self.scene.planrun(*words, trace=(*strace, "-e", "inject=fsync:signal=KILL:when=1"))
            self._trace = self._traced()
        if self.scene.planrun(*words, trace=strace):
            raise RuntimeError(f"an undisturbed run does not end well:\n{''.join(self.scene.said)}")
        self._trace += self._traced()
        self._ledger = str(self.scene.ledger().relative_to(self.scene.workspace))

    def _traced(self) -> str:
        return (self.scene.folder / "trace").read_text("ascii")

    def _tear(self) -> None:
        """Leave half a line at the end, as a power cut before would have."""
        ledger = self.scene.ledger()
        ledger.write_bytes(ledger.read_bytes() + b'{"seq":99,"type":"attempt_started","at":"' + bytes(700))

    def states(self) -> Iterator[State]:
        """Yield every state that the disk may be in after one of the system calls, each once."""
        disk = Disk.holding(self._before, held(self.scene.workspace))
        told: set[int] = set()
        sure, once = b"", False
        made = calls(self._trace, str(self.scene.workspace))
        for place, call in enumerate(made):
            if call.name not in (
                "fsync",
                "fdatasync",
                "openat",
            ):  # what was synced counts when planrun goes on
                sure = _lines(disk.file(self._ledger).durable)
            disk.make(call)
            full = _lines(disk.file(self._ledger).full)
            once = once or (call.name == "spawn" and ONCE in dict(account(full).started))
            if place == len(made) - 1:  # it has said how it ended
                sure = _lines(full)
            for contents in disk.states():
                key = hash((frozenset(contents.items()), len(sure), once))
                if key not in told:
                    told.add(key)
                    yield State(len(told), contents, sure, once)


def _lines(data: bytes) -> bytes:
    """Return the sound lines of a ledger: a torn end is zeros here."""
    sound = data.partition(b"\0")[0]
    return sound[: sound.rfind(b"\n") + 1]


def held(folder: Path) -> Contents:
    """Return everything below a folder."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


class Aftermath:
    """What is done with states: each is made in a folder, verified and resumed by planrun's own functions."""

    def __init__(self, folder: Path, fault: str) -> None:
        self._folder = folder / str(os.getpid())
        os.environ["PLANRUN_CACHE_DIR"] = str(folder / "shared")
        exec(FAULTS[fault], {})

    def judge(self, state: State) -> Verdict:
        """Return what became of a state."""
        workspace = self._folder / "ws"
        effects = self._folder / "effects"
        shutil.rmtree(self._folder, ignore_errors=True)
        _make(workspace, state.contents)
        effects.touch()
        os.chdir(workspace)
        condition = refusal = ""
        try:
            condition = _verified()
            refusal = _resumed(workspace)
            problems = list(_wrong(state, condition, refusal, _done(effects), workspace))
        except Exception as error:  # noqa: BLE001 - it would have been a traceback
            problems = [f"{type(error).__name__}: {error}"]
        return Verdict(state.number, condition, refusal, "; ".join(problems))


def _make(folder: Path, contents: Contents) -> None:
    folder.mkdir(parents=True)
    for name, content in contents.items():
        if content is None:
            (folder / name).mkdir(mode=0o700)
        else:
            (folder / name).write_bytes(content)


def _verified() -> str:
    from planrun.app import inspect  # here, after a fault was planted

    inspect.listing(inspect.known_runs())
    try:
        return inspect.read("last")[1].condition
    except PlanrunError:
        return "none"


def _resumed(workspace: Path) -> str:
    """Resume the run; returns why it refuses, else nothing."""
    from planrun.app.resume import ResumeRequest, resume
    from planrun.cli.run import changes, planner
    from planrun.settings import Settings

    try:
        result = resume(
            "last",
            Settings(adopt=True, output="quiet", jobs=2),
            ResumeRequest(report=str, planner=planner, changes=changes, workspace=str(workspace)),
        )
    except PlanrunError as error:
        return str(error)
    return f"exit code {result.exit_code}" if result and result.exit_code else ""


def _done(effects: Path) -> set[str]:
    return {row.split()[0] for row in effects.read_text("ascii").splitlines()}


def _wrong(state: State, condition: str, refusal: str, done: set[str], workspace: Path) -> Iterator[str]:
    """Say everything that is not as it has to be."""
    if condition in ("altered", "truncated") or (condition == "none" and state.sure):
        yield f"verify says {condition}"
    if refusal:
        if state.sure:
            yield f"resume refuses: {refusal}"
        if done:
            yield f"resume refuses after {sorted(done)} ran: {refusal}"
        return
    known = account(state.sure)
    if again := done & (known.settled - {CLEANUP}):
        yield f"{sorted(again)} had ended and ran again"
    if state.once and ONCE in done:
        yield f"{ONCE} may have run before and ran again"
    ledgers = sorted(workspace.glob(".planrun/runs/*/ledger.jsonl"))
    data = ledgers[-1].read_bytes()
    if not data.startswith(state.sure):
        yield "events that were synced are gone"
    if b'"type":"run_ended"' not in data.splitlines()[-1] or _verified() != "intact":
        yield "the resumed run has no end"
    places = (ledgers[-1].parent, workspace / "planrun-out")
    hidden = [path.name for place in places for path in place.rglob(".*")]
    left = [name for name in hidden if name.endswith(".part") or name == ".slots"]
    if left:
        yield f"left behind: {left}"


_workers: list[Aftermath] = []  # the one of this process


def _begin(folder: Path, fault: str) -> None:
    """Make a worker of this process."""
    out = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    _workers.append(Aftermath(folder, fault))


def _judge(state: State) -> Verdict:
    return _workers[0].judge(state)


@dataclass(frozen=True)
class Report:
    """What a proof came to."""

    states: int
    conditions: dict[str, int]
    refusals: dict[str, int]
    problems: list[str]


def prove(kind: str = RUN, fault: str = "", every: int = 1) -> Report:
    """Try so manyth state of a run, or of the resume of one, and print what they came to."""
    with tempfile.TemporaryDirectory(prefix="powercut-") as name:
        folder = Path(name).resolve()
        cut = Cut(folder / "traced", fault, kind)
        states = [state for state in cut.states() if state.number % every == 0]
        with multiprocessing.get_context("spawn").Pool(2, _begin, (folder, fault)) as pool:
            verdicts = list(pool.imap_unordered(_judge, states, 8))
    report = Report(
        len(states),
        dict(Counter(verdict.condition for verdict in verdicts)),
        dict(Counter(re.sub(r"\S*/\S*", "PATH", verdict.refusal) for verdict in verdicts if verdict.refusal)),
        [f"state {verdict.number}: {verdict.problem}" for verdict in verdicts if verdict.problem],
    )
    print(f"{kind}: {report.states} states, {report.conditions}, {len(report.problems)} wrong")
    for refusal, count in report.refusals.items():
        print(f"  {count} refused: {refusal}")
    return report


CAUGHT_BY = {
    "nothing-synced": (RUN, 30),
    "plan-not-synced": (RUN, 30),
    "names-not-synced": (RUN, 15),
    "start-not-synced": (RUN, 15),
    "reserve-too-early": (SECOND, 13),
    "torn-end-kept": (RESUME, 15),
    "zeros-altered": (RUN, 30),
}
"""Where each fault shows, and which states of it are enough."""


def is_caught(fault: str) -> bool:
    """Plant a fault and say whether the proof finds something wrong."""
    kind, every = CAUGHT_BY[fault]
    report = prove(kind, fault, every)
    print(f"planted fault {fault}: {(*report.problems, 'NOT CAUGHT')[0]}")
    return bool(report.problems)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a state was not handled or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs powercut", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try each so manyth state")
    parser.add_argument("--fault", choices=list(CAUGHT_BY), default="", help="plant one")
    chosen = parser.parse_args(words)
    began = time.monotonic()
    problems = []
    for kind in (RUN, RESUME, SECOND):
        problems += prove(kind, chosen.fault, chosen.every).problems
    print(*problems[:20], sep="\n")
    missed = [] if chosen.fault else [fault for fault in CAUGHT_BY if not is_caught(fault)]
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(problems or missed))
