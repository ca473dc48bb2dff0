"""A queue whose runner is killed at any moment loses no entry, runs nothing twice and keeps its order.

Each trial queues some plans with priorities, folders and dependences drawn by chance, and works them off by runners
that are killed at random moments: alone, or together with the processes of the plans that run. Every step adds a line
to a file outside of the workspaces; from these files and the queue's own it is judged.
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
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 2
LIMIT = 120.0
"""Seconds for one runner that nobody kills; only one that hangs needs them."""
FOLDERS = ("a", "b")
_PLAN = """\
version: 1
defaults: {{shell: sh}}
steps:
  - {{id: first, run: "echo {number} first >> {effects}"}}
  - {{id: last, depends_on: [first], idempotent: true, run: "sleep 0.{number}; echo {number} last >> {effects}"}}
"""
_DRIVER = "import os\n{fault}from planrun.cli import run\nrun()\n"
FAULTS = {
    "": "",
    # A process begins at once, whether or not the queue's file names it.
    "no-gate": "from planrun.queue import workers as w\nw._GATE = 'exec \"$@\" </dev/null'\n"
    "import planrun.queue.serve as s\nimport time\n"
    "old = s._spawn\n"
    "s._spawn = lambda *a, **k: (old(*a, **k), time.sleep(0.3))[0]\n",
    # What runs and is not ours counts as lost, and begins anew: going on with it would wait for it.
    "no-adoption": "from planrun.queue import workers as s, serve as v\n"
    "s.is_lost = v.is_lost = lambda _workspace, entry: entry.worker is not None\n"
    "s.began = v.began = lambda _rundir: False\n",
    # What was lost begins anew instead of going on.
    "no-resume": "from planrun.queue import workers as s, serve as t\n"
    "s.began = t.began = lambda _rundir: False\n",
    # Priorities and dependence do not count.
    "no-order": "from planrun.model.queue import Queue as Q\n"
    "Q.startable = lambda self: iter([e for e in reversed(self.entries.values()) if e.status == 'queued'])\n",
    # An entry that was running when its runner died is forgotten.
    "forgetful": "from planrun.queue import serve as v\nv.is_lost = lambda *_: False\n"
    "v.Runner._running = lambda self: []\n",
}
"""Faults to plant, as what is run before a runner starts; the empty name is planrun as it is."""


@dataclass(frozen=True)
class Trial:
    """What is tried: entries as (priority, folder, entries before), and when runners are killed and how.

    `kills`: seconds after its start, and whether the processes of plans are killed with the runner.
    """

    number: int
    entries: tuple[tuple[int, str, tuple[int, ...]], ...]
    kills: tuple[tuple[float, bool], ...]
    most: int
    fault: str = ""


@dataclass
class Finding:
    """What a trial came to; `struck`: how many runners died of their kill."""

    trial: Trial
    struck: int = 0
    adopted: int = 0
    resumed: int = 0
    problems: list[str] = field(default_factory=list)


class Scene:
    """The folder of one trial."""

    def __init__(self, folder: Path, trial: Trial) -> None:
        self.folder = folder
        self.trial = trial
        self.effects = folder / "effects"
        self.workspace = folder / "ws"
        self.workspace.mkdir(parents=True)
        for name in FOLDERS:
            (self.workspace / name).mkdir()
        for number in range(1, len(trial.entries) + 1):
            text = _PLAN.format(number=number, effects=self.effects)
            (self.workspace / f"{number}.yml").write_text(text, "utf-8")

    def start(self, *words: str, fault: str = "") -> subprocess.Popen[bytes]:
        """Start a planrun in the workspace."""
        caches = {"PYTHONPATH": str(ROOT), "PLANRUN_CACHE_DIR": str(self.folder.parent / "cache")}
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _DRIVER.format(fault=FAULTS[fault]), "queue", *words],
            cwd=self.workspace,
            env=os.environ | caches,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def events(self) -> list[dict[str, Any]]:
        """Return the whole lines of the queue's file, read without any code of planrun's."""
        try:
            data = (self.workspace / ".planrun" / "queue" / "queue.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    def kill_workers(self) -> None:
        """Kill the processes of all plans that were started, where they still live."""
        for event in self.events():
            if event["type"] == "entry_started":
                pid, born = event["worker"]["pid"], event["worker"]["born"]
                try:
                    stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
                    if stat.rpartition(") ")[2].split()[19] == born:
                        os.kill(pid, signal.SIGKILL)
                except (OSError, IndexError):
                    continue


def carry_out(trial: Trial, folder: Path) -> Finding:
    """Queue, run, kill, run to the end, judge."""
    finding = Finding(trial)
    scene = Scene(folder, trial)
    for number, (priority, where, after) in enumerate(trial.entries, 1):
        words = [f"--after={before}" for before in after]
        add = scene.start("add", f"{number}.yml", f"--priority={priority}", f"--folder={where}", *words)
        if add.wait(LIMIT):
            finding.problems.append(f"entry {number} cannot be added")
    for seconds, both in trial.kills:
        runner = scene.start("run", f"--max-concurrent={trial.most}", fault=trial.fault)
        try:
            runner.wait(seconds)
        except subprocess.TimeoutExpired:
            finding.struck += 1
        runner.kill()
        runner.wait()
        if both:
            scene.kill_workers()
    runner = scene.start("run", f"--max-concurrent={trial.most}", fault=trial.fault)
    try:
        code = runner.wait(LIMIT)
        if code:
            finding.problems.append(f"the last runner ended with {code}")
    except subprocess.TimeoutExpired:
        finding.problems.append("the last runner does not end")
        runner.kill()
        runner.wait()
    finding.problems += _judge(scene, finding)
    scene.kill_workers()
    if not finding.problems:
        shutil.rmtree(folder)
    return finding


def _judge(scene: Scene, finding: Finding) -> Iterator[str]:
    trial, events = scene.trial, scene.events()
    entries = range(1, len(trial.entries) + 1)
    starts = [event for event in events if event["type"] == "entry_started"]
    ends = Counter(event["entry"] for event in events if event["type"] == "entry_ended")
    finding.resumed = sum(event["verb"] == "resume" for event in starts)
    finding.adopted = _adopted(events)
    yield from (f"entry {number} ended {ends[number]} times" for number in entries if ends[number] != 1)
    lines = scene.effects.read_text("utf-8").splitlines() if scene.effects.exists() else []
    done = Counter(lines)
    for number in entries:
        if not done[f"{number} last"]:
            yield f"entry {number} never came to its end"
    yield from _judge_runs(scene, starts, done)
    yield from _judge_order(trial, starts)


def _judge_runs(scene: Scene, starts: Sequence[dict[str, Any]], done: Counter[str]) -> Iterator[str]:
    """No step that completed ran again, and each entry has one run that came to its end."""
    ledgers = list(scene.workspace.glob("*/.planrun/runs/*/ledger.jsonl"))
    named = {event["run"] for event in starts}
    completed: Counter[int] = Counter()
    attempts: Counter[str] = Counter()
    successes: Counter[str] = Counter()
    for path in ledgers:
        found = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
        if not found:
            continue
        if path.parent.name not in named:
            yield f"the run {path.parent.name} is not in the queue"
        number = int(Path(found[0]["plan"]["file"]).stem)
        completed[number] += any(event["type"] == "run_ended" and event["exit_code"] == 0 for event in found)
        ended: set[str] = set()
        for event in found:
            if event["type"] == "attempt_started":
                attempts[f"{number} {event['step']}"] += 1
                if event["step"] in ended:
                    yield f"{event['step']} of entry {number} had ended and ran again"
            elif event["type"] == "attempt_ended" and event["status"] == "completed":
                ended.add(event["step"])
                successes[f"{event['step']} of entry {number}"] += 1
    yield from (f"{name} completed {count} times" for name, count in successes.items() if count > 1)
    yield from (
        f"entry {number} completed in {count} runs" for number, count in completed.items() if count != 1
    )
    yield from (
        f"{name} ran {count} times, {attempts[name]} recorded"
        for name, count in done.items()
        if count > attempts[name]
    )


def _judge_order(trial: Trial, starts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """When an entry first starts, none that could start in its folder goes before it."""
    begun: set[int] = set()
    for event in starts:
        number = event["entry"]
        if number in begun:
            continue
        priority, folder, after = trial.entries[number - 1]
        if not begun.issuperset(after):
            yield f"entry {number} began before what it comes after"
        for other, (rank, where, before) in enumerate(trial.entries, 1):
            ahead = (-rank, other) < (-priority, number)
            # Others in its folder have ended by now; of entries elsewhere it is not known.
            settled = all(trial.entries[b - 1][1] == folder for b in before)
            if other not in begun and where == folder and ahead and settled and begun.issuperset(before):
                yield f"entry {number} began before entry {other}"
        begun.add(number)


def _adopted(events: Sequence[dict[str, Any]]) -> int:
    """How many entries ended whose last start was recorded by a runner that was gone by then; a lower bound."""
    return sum(event["type"] == "entry_queued" for event in events)


def draw(count: int, seed: int, fault: str = "") -> list[Trial]:
    """Draw trials by chance."""
    chance = random.Random(seed)
    trials = []
    for number in range(count):
        entries = []
        for entry in range(1, chance.randint(4, 7)):
            after = tuple(before for before in range(1, entry) if chance.random() < 0.25)
            entries.append((chance.choice((0, 0, 5, -2)), chance.choice(FOLDERS), after))
        kills = tuple((chance.uniform(0.1, 0.8), chance.random() < 0.5) for _ in range(chance.randint(3, 5)))
        trials.append(Trial(number, tuple(entries), kills, chance.choice((1, 2, 2)), fault))
    return trials


def prove(folder: Path, trials: Sequence[Trial], most: int = 10) -> list[Finding]:
    """Carry trials out, some at once, and print what they came to."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        findings = list(
            pool.map(lambda trial: carry_out(trial, folder / f"{trial.fault}-{trial.number}"), trials)
        )
    bad = [finding for finding in findings if finding.problems]
    print(
        f"{len(findings)} queues, {sum(len(t.entries) for t in trials)} entries, "
        f"{sum(f.struck for f in findings)} runners killed, "
        f"{sum(f.adopted for f in findings)} entries lost and queued again, "
        f"{sum(f.resumed for f in findings)} runs gone on with; {len(bad)} queues went wrong"
    )
    for finding in bad[:most]:
        print(f"queue {finding.trial.number}{finding.trial.kills}:", *finding.problems, sep="\n  ")
    return findings


def prove_faults(folder: Path, count: int, seed: int) -> bool:
    """Plant each fault; returns whether every one was caught."""
    missed = False
    for fault in filter(None, FAULTS):
        trials = draw(count, seed, fault)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            findings = list(
                pool.map(lambda trial: carry_out(trial, folder / f"{trial.fault}-{trial.number}"), trials)
            )
        told = [problem for finding in findings for problem in finding.problems]
        print(f"planted fault {fault}: {told[0] if told else 'NOT CAUGHT'}")
        missed = missed or not told
    return not missed


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a queue went wrong or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs queue", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="how many queues; each has 3 to 5 kills")
    parser.add_argument(
        "--faults", type=int, default=6, help="how many queues for each planted fault; 0: none"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began = time.monotonic()
    global LIMIT  # noqa: PLW0603 - a planted fault may have a runner wait for ever
    with tempfile.TemporaryDirectory(prefix="queue-") as name:
        folder = Path(name).resolve()
        print(f"seed {chosen.seed}: ", end="", flush=True)
        findings = prove(folder, draw(chosen.rounds, chosen.seed))
        LIMIT = 30.0
        caught = not chosen.faults or prove_faults(folder, chosen.faults, chosen.seed)
    print(f"{time.monotonic() - began:.0f} s")
    return int(not caught or any(finding.problems for finding in findings))
