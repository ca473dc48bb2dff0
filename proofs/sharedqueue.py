"""Three machines run one queue while they are killed and stopped: no entry runs twice at once, none is lost silently.

The machines are processes with a name, a workspace and caches of their own on one host; they share the folder of the
queue alone. At random moments one of them is hit: its runner is killed or stopped for longer than a lease, or all its
processes are, keepers and steps included. Steps add a line to a file ten times a second, so two that run at once show.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 2
LEASE = 4.0
LIMIT = 90.0
"""Seconds for the machines to settle after the last hit; only ones that hang need them."""
WAKING = 1.0
"""Seconds after a whole machine went on in which its keepers end what it runs."""
MACHINES = ("a", "b", "c")
HOLDER = "holder"
"""Stands for the machine that started an entry last."""
HITS = ("kill-runner", "gone", "kill-all", "off", "stop-runner", "stop-all")
_TICKS = "for i in $(seq {count}); do echo {number} tick $MACH $$ $(date +%s%N) >> {effects}; sleep 0.1; done"
_ONCE = """\
version: 1
defaults: {{shell: sh}}
steps:
  - {{id: once, idempotent: false, run: "echo {number} once $MACH >> {effects}"}}
  - {{id: work, depends_on: [once], run: "{ticks}"}}
  - {{id: last, depends_on: [work], run: "{ticks}; echo {number} done $MACH >> {effects}"}}
"""
_REPEATABLE = """\
version: 1
defaults: {{shell: sh}}
steps:
  - {{id: work, run: "{ticks}"}}
  - {{id: last, depends_on: [work], run: "{ticks}; echo {number} done $MACH >> {effects}"}}
"""
_DRIVER = "import os, sys\n{fault}from planrun.cli import run\nrun()\n"
_KEEPER = (
    "from planrun.queue import keeper as k\nimport sys\nk._Keeper._enforce = lambda self: None\n"
    "k._die_with = lambda _: None\nsys.exit(k.main(sys.argv[1:]))\n"
)
FAULTS = {
    "": "",
    # What a machine runs goes on when its lease is over.
    "no-keeper": f"from planrun.queue import workers as w\nw._KEEPER = (sys.executable, '-P', '-c', {_KEEPER!r})\n",
    # Whatever another machine runs counts as lost.
    "no-lease": "from planrun.queue.leases import Watch\nWatch.is_over = lambda *_: True\n",
    # Two machines may write one event.
    "no-create": "from planrun.places.folder import Folder as F\n"
    "F.create = lambda self, key, data: (__import__('time').sleep(0.2), self.write(key, data), True)[2]\n",
    # An entry of a lost machine starts again, whatever it is.
    "careless": "from planrun.queue import sharing as s\nfrom planrun.model.queue import EntryQueued\n"
    "s.settle_lost = lambda file, change, entry: change.add(\n"
    "    EntryQueued(at=s.SystemClock().stamp(), entry=entry.number))\n",
}
"""Faults to plant, as what is run before a runner starts; the empty name is planrun as it is."""


@dataclass(frozen=True)
class Trial:
    """What is tried: whether each entry is repeatable, and hits as (seconds to wait, machine, what is done)."""

    number: int
    entries: tuple[bool, ...]
    hits: tuple[tuple[float, str, str], ...]
    fault: str = ""
    ticks: int = 25  # of each of two steps, ten a second


@dataclass
class Finding:
    """What a trial came to."""

    trial: Trial
    lost: int = 0
    failed: int = 0
    moved: int = 0
    problems: list[str] = field(default_factory=list)


class Scene:
    """The folder of one trial: a workspace for each machine, the queue, and the file of effects."""

    def __init__(self, folder: Path, trial: Trial) -> None:
        self.folder = folder
        self.trial = trial
        self.effects = folder / "effects"
        self.queue = folder / "queue"
        self.runners: dict[str, subprocess.Popen[bytes]] = {}
        self.off: dict[str, float] = {}  # until when a machine does not start again
        self.woken: dict[str, list[int]] = defaultdict(list)  # when whole machines went on, in nanoseconds
        for machine in MACHINES:
            workspace = folder / machine
            workspace.mkdir(parents=True)
            for number, repeatable in enumerate(trial.entries, 1):
                ticks = _TICKS.format(number=number, effects=self.effects, count=trial.ticks)
                text = (_REPEATABLE if repeatable else _ONCE).format(
                    number=number, effects=self.effects, ticks=ticks
                )
                (workspace / f"{number}.yml").write_text(text, "utf-8")

    def start(self, machine: str, *words: str, fault: str = "") -> subprocess.Popen[bytes]:
        """Start a planrun on a machine."""
        own = {
            "PYTHONPATH": str(ROOT),
            "PLANRUN_CACHE_DIR": str(self.folder / machine / ".cache"),
            "PLANRUN_MACHINE": machine,
            "PLANRUN_QUEUE_AT": str(self.queue),
            "PLANRUN_QUEUE_LEASE": str(LEASE),
            "MACH": self.mark(machine),
        }
        with (self.folder / f"{machine}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _DRIVER.format(fault=FAULTS[fault]), "queue", *words],
                cwd=self.folder / machine,
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def mark(self, machine: str) -> str:
        """Return what the processes of a machine have in their environment."""
        return f"{machine}-{self.folder.name}"

    def run(self, machine: str) -> None:
        """Start the runner of a machine, where none works and the machine is on."""
        if time.monotonic() < self.off.get(machine, 0.0):
            return
        if machine not in self.runners or self.runners[machine].poll() is not None:
            self.runners[machine] = self.start(machine, "run", "--wait", fault=self.trial.fault)

    def signal_all(self, machine: str, signum: int) -> None:
        """Signal all processes of a machine, also those that begin meanwhile."""
        for _ in range(1 if signum == signal.SIGCONT else 3):
            self._signal_all(machine, signum)

    def _signal_all(self, machine: str, signum: int) -> None:
        wanted = f"MACH={self.mark(machine)}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signum)
            except OSError:
                continue

    def hit(self, machine: str, how: str) -> None:
        """Hit a machine; what was killed starts again, and only after two leases where it is `gone` or `off`."""
        runner = self.runners[machine]
        if how in ("kill-runner", "gone"):
            runner.kill()
            self.off[machine] = time.monotonic() + (LEASE * 2 if how == "gone" else 0.0)
        elif how in ("kill-all", "off"):
            runner.kill()  # first: it would record how the others ended
            self.signal_all(machine, signal.SIGKILL)
            self.off[machine] = time.monotonic() + (LEASE * 2 if how == "off" else 0.0)
        elif how == "stop-runner":
            runner.send_signal(signal.SIGSTOP)
            time.sleep(LEASE * 1.4)
            runner.send_signal(signal.SIGCONT)
        else:
            self.signal_all(machine, signal.SIGSTOP)
            time.sleep(LEASE * 1.4)
            self.woken[self.mark(machine)].append(time.time_ns())
            self.signal_all(machine, signal.SIGCONT)

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the queue, read without any code of planrun's."""
        return [
            json.loads(line)
            for path in sorted((self.queue / "events").glob("0*"))
            for line in path.read_bytes().splitlines()[1:]
        ]

    def holder(self) -> str:
        """Return the machine that started an entry last."""
        started = [event for event in self.events() if event["type"] == "entry_started"]
        return str(started[-1]["worker"]["host"]) if started else MACHINES[0]

    def statuses(self) -> dict[int, str]:
        """Return what each entry is."""
        found: dict[int, str] = {}
        for event in self.events():
            kind = event["type"]
            if kind in ("entry_added", "entry_queued"):
                found[event["entry"]] = "queued"
            elif kind == "entry_started":
                found[event["entry"]] = "running"
            elif kind == "entry_ended":
                found[event["entry"]] = event["status"]
        return found


def carry_out(trial: Trial, folder: Path) -> Finding:
    """Queue, run, hit, let it settle, judge."""
    finding = Finding(trial)
    scene = Scene(folder, trial)
    for number, repeatable in enumerate(trial.entries, 1):
        add = scene.start("a", "add", f"{number}.yml", *(["--repeatable"] if repeatable else []))
        if add.wait(LIMIT):
            finding.problems.append(f"entry {number} cannot be added")
    for machine in MACHINES:
        scene.run(machine)
    for seconds, machine, how in trial.hits:
        time.sleep(seconds)
        scene.hit(scene.holder() if machine == HOLDER else machine, how)
        time.sleep(seconds)
        for each in MACHINES:
            scene.run(each)
    finding.problems += _ended(scene)
    finding.problems += _judge(scene, finding)
    if not finding.problems:
        shutil.rmtree(folder)
    return finding


def _ended(scene: Scene) -> Iterator[str]:
    """Let the queue settle, and end all machines."""
    until = time.monotonic() + LIMIT
    for machine in MACHINES:
        time.sleep(max(0.0, scene.off.get(machine, 0.0) - time.monotonic()))
        scene.run(machine)
    while not set(scene.statuses().values()) <= {"completed", "lost", "failed"}:
        if time.monotonic() > until:
            yield f"entries do not settle: {scene.statuses()}"
            break
        time.sleep(0.5)
    time.sleep(LEASE * 0.5)  # what must not run any more would still show
    for runner in scene.runners.values():
        runner.terminate()
    for machine, runner in scene.runners.items():
        try:
            runner.wait(30.0)
        except subprocess.TimeoutExpired:
            yield f"the runner of {machine} does not end"
    for machine in MACHINES:
        scene.signal_all(machine, signal.SIGKILL)


def _judge(scene: Scene, finding: Finding) -> Iterator[str]:
    statuses = scene.statuses()
    finding.lost = sum(status == "lost" for status in statuses.values())
    finding.failed = sum(status == "failed" for status in statuses.values())
    rows = [line.split() for line in scene.effects.read_text("utf-8").splitlines()]
    counts = Counter((int(row[0]), row[1]) for row in rows)
    for number, repeatable in enumerate(scene.trial.entries, 1):
        status = statuses.get(number, "missing")
        if status == "completed" and not counts[number, "done"]:
            yield f"entry {number} is completed and did not run to its end"
        if not repeatable and counts[number, "once"] > 1:
            yield f"entry {number} had its effect {counts[number, 'once']} times"
        if not repeatable and status == "completed" and counts[number, "once"] != 1:
            yield f"entry {number} is completed without its effect"
        if repeatable and status != "completed":
            yield f"entry {number} is repeatable and {status}"
    yield from _judge_times(scene, rows)
    yield from _judge_events(scene.events(), finding)


def _judge_times(scene: Scene, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """No two processes work on one entry at the same time.

    When all processes of a machine were stopped, its steps go on when its keepers do, and end a moment later.
    """
    spans: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[1] == "tick":
            spans[row[0]][row[2], row[3]].append(int(row[4]))
    for number, processes in spans.items():
        ordered = sorted((min(times), times, name) for name, times in processes.items())
        for (_, times, (machine, _pid)), (begun, others, (other, _other)) in pairwise(ordered):
            late = [tick for tick in times if tick > begun]
            waking = _is_waking(times, scene.woken[machine]) or _is_waking(others, scene.woken[other])
            if late and not waking:
                yield f"entry {number} ran at once on {machine} and {other}, {len(late)} ticks"


def _is_waking(ticks: Sequence[int], woken: Sequence[int]) -> bool:
    """Return whether a process ended a moment after its machine went on."""
    return any(0 <= max(ticks) - moment < WAKING * 1e9 for moment in woken)


def _judge_events(events: Sequence[dict[str, Any]], finding: Finding) -> Iterator[str]:
    """A result follows the start that it belongs to, and an entry starts only where it is queued."""
    state: dict[int, str] = {}
    for event in events:
        number, kind = event.get("entry", 0), event["type"]
        if kind == "entry_started":
            if state.get(number) != "queued":
                yield f"entry {number} started while it was {state.get(number)}"
            state[number] = "running"
        elif kind == "entry_queued":
            finding.moved += 1
            state[number] = "queued"
        elif kind == "entry_added":
            state[number] = "queued"
        elif kind == "entry_ended":
            if state.get(number) not in ("running", "lost"):  # the machine of a lost one may come back
                yield f"entry {number} ended while it was {state.get(number)}"
            state[number] = event["status"]


def draw(count: int, seed: int, hits: int = 6) -> list[Trial]:
    """Draw trials by chance."""
    chance = random.Random(seed)
    trials = []
    for number in range(count):
        entries = tuple(chance.random() < 0.5 for _ in range(chance.randint(6, 8)))
        hit = tuple(
            (chance.uniform(0.2, 1.2), chance.choice(MACHINES), chance.choice(HITS)) for _ in range(hits)
        )
        trials.append(Trial(number, entries, hit))
    return trials


def prove(folder: Path, trials: Sequence[Trial], at_once: int = AT_ONCE) -> list[Finding]:
    """Carry trials out, some at once, and print what they came to."""
    with ThreadPoolExecutor(at_once) as pool:
        findings = list(
            pool.map(lambda trial: carry_out(trial, folder / f"{trial.fault or 'q'}{trial.number}"), trials)
        )
    bad = [finding for finding in findings if finding.problems]
    print(
        f"{len(findings)} queues, {sum(len(t.entries) for t in trials)} entries on {len(MACHINES)} machines, "
        f"{sum(len(t.hits) for t in trials)} hits: {sum(f.moved for f in findings)} entries queued again, "
        f"{sum(f.lost for f in findings)} left to a person as lost, "
        f"{sum(f.failed for f in findings)} failed; {len(bad)} queues went wrong"
    )
    for finding in bad[:10]:
        print(f"queue {finding.trial.number}{finding.trial.hits}:", *finding.problems, sep="\n  ")
    return findings


def prove_faults(folder: Path, count: int) -> bool:
    """Plant each fault; returns whether every one was caught."""
    missed = False
    for fault in filter(None, FAULTS):
        # An entry that takes longer than a lease, and a runner that leaves it alone while others are free.
        hits, kinds = ((1.5, HOLDER, "gone"),), (fault != "careless",)
        trials = [Trial(number, kinds, hits, fault, ticks=45) for number in range(count)]
        findings = prove(folder, trials)
        reported = [problem for finding in findings for problem in finding.problems]
        print(f"planted fault {fault}: {reported[0] if reported else 'NOT CAUGHT'}")
        missed = missed or not reported
    return not missed


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a queue went wrong or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs sharedqueue", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how many queues; each has 6 hits")
    parser.add_argument(
        "--faults", type=int, default=1, help="how many queues for each planted fault; 0: none"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began = time.monotonic()
    global LIMIT  # noqa: PLW0603 - a planted fault may have a queue that never settles
    with tempfile.TemporaryDirectory(prefix="sharedqueue-") as name:
        folder = Path(name).resolve()
        print(f"seed {chosen.seed}: ", end="", flush=True)
        findings = prove(folder, draw(chosen.rounds, chosen.seed))
        LIMIT = 60.0
        caught = not chosen.faults or prove_faults(folder, chosen.faults)
    print(f"{time.monotonic() - began:.0f} s")
    return int(not caught or any(finding.problems for finding in findings))
