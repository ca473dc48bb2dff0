"""On a cluster whose processes are killed and stalled, no step with effects runs twice, and nothing that finished.

Each trial runs a plan on three workers of a Dask cluster. At a random moment a process is killed, or stopped for a
while: a worker, the process that runs steps beside it, the scheduler, planrun, or its client; or the network of a
worker is cut, or a disk is full. What is dead is started again, and the run is resumed to its end. Each attempt adds a
line to a file when it begins; from this file and the ledger it is judged. In half of the trials the workers do not
share planrun's folder, and files are sent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import ROOT
from tests.fakes.dask import DaskCluster
from tests.fakes.networks import Networks, missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKERS = ("north", "east", "south")
LIMIT = 180.0
"""Seconds for one planrun; only one that hangs needs them."""
LEASE = 3.0
"""Seconds of the lease in this proof: ten would make each trial with a stalled worker longer, and no other."""
_DRIVER = "import planrun.cluster as c\nc.LEASE = {lease}\n{fault}from planrun.cli import run\nrun()\n"
_STEPS = (
    # id, what it waits for, whether it may run again
    ("fetch", (), True),
    ("charge", (), False),
    ("build", ("fetch",), True),
    ("deploy", ("fetch",), False),
    ("test", ("build",), True),
    ("announce", ("charge", "build"), False),
)
HARMS = ("worker", "scheduler", "planrun", "stall", "runner", "client", "long stall", "stalled client")
DISKS = ("full disk of a worker", "full disk of planrun")
"""They need root, for small disks."""
CUTS = ("cut", "long cut")
"""They need root and network namespaces; the connections have TLS."""
DISK = 24 << 20
"""Bytes of a small disk."""
FULL = 1.5
"""Seconds for which a disk of a worker is full."""
FAULTS = {
    "": "",
    # What was lost counts as failed for another reason, and steps that are not idempotent are repeated.
    "repeats": "import planrun.engine.failures as f\n"
    "f.retries = lambda step, attempt, outcome, failure: attempt < 4\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""


@dataclass(frozen=True)
class Trial:
    """What is tried: the process that is harmed, `after` so many seconds from the first effect, and which worker.

    `worker`: empty: the one that runs the step `charge`.
    """

    number: int
    harm: str
    after: float
    worker: str
    fault: str = ""
    sends: bool = False  # files are sent to workers


@dataclass
class Finding:
    """What a trial came to."""

    trial: Trial
    lost: int = 0
    resumed: int = 0
    problems: list[str] = field(default_factory=list)


def draw(count: int, *, seed: int, harms: Sequence[str] = HARMS, fault: str = "") -> list[Trial]:
    """Draw trials; each harm comes as often as the others."""
    chance = random.Random(seed)
    return [
        Trial(
            number=number,
            harm=harms[number % len(harms)],
            after=chance.uniform(0, 1.2),
            worker=chance.choice(WORKERS),
            fault=fault,
            sends=bool(number // len(harms) % 2),
        )
        for number in range(count)
    ]


def plan_text(effects: Path) -> str:
    """Return the plan of every trial; `charge` does not end before something is harmed. Each step makes a file."""
    rows = ["version: 1", "name: cluster", "defaults: {on_failure: continue}", "steps:"]
    for name, before, again in _STEPS:
        charges = f"until test -e {effects.parent}/harmed; do sleep 0.05; done"
        wait = charges if name == "charge" else "sleep 0.4"
        reads = "".join([f"test -s made-{each}; " for each in before if each != "charge"])  # it may be lost
        gives = f"echo value={name} >> $PLANRUN_OUTPUT"
        makes = f"head -c 200000 /dev/zero > made-{name}"
        rows += [
            f"  - id: {name}",
            f"    depends_on: [{', '.join(before)}]" if before else "",
            "    retries: {max: 5, backoff: {initial: 100ms}}" if again else "    idempotent: false",
            f"    produces: [made-{name}]",
            f"    run: {reads}echo {name} >> {effects}; echo began; {wait}; {makes}; {gives}",
            "    outputs: {value: string}",
        ]
    return "\n".join(row for row in rows if row) + "\n"


class Scene:
    """The workspace of one trial."""

    def __init__(self, folder: Path, trial: Trial, cluster: DaskCluster) -> None:
        outside = folder.with_name(f"{folder.name}-outside")
        outside.mkdir(parents=True)
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.trial = trial
        self.cluster = cluster
        self.effects = outside / "effects"
        (folder / "plan.yml").write_text(plan_text(self.effects), "utf-8")

    @property
    def _words(self) -> tuple[str, ...]:
        more = ("--cluster-store", "connection") if self.trial.sends else ()
        return ("-q", "--executor", self.cluster.address, *more)

    def execute(self) -> subprocess.Popen[bytes]:
        """Start the run."""
        return self.start("execute", "plan.yml", *self._words)

    def resume(self) -> subprocess.Popen[bytes]:
        """Continue the run."""
        return self.start("resume", "last", *self._words)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a planrun in the workspace."""
        driver = _DRIVER.format(lease=LEASE, fault=FAULTS[self.trial.fault])
        with (self.effects.parent / "printed").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", driver, *words],
                cwd=self.folder,
                env={
                    **self.cluster.env,
                    "PYTHONPATH": str(ROOT),
                    "PLANRUN_CACHE_DIR": str(self.effects.parent / "cache"),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def begun(self) -> Counter[str]:
        """Return how often each step began."""
        try:
            return Counter(self.effects.read_text("utf-8").split())
        except FileNotFoundError:
            return Counter()

    def events(self) -> list[dict[str, Any]]:
        """Return the ledger, read without any code of planrun's."""
        (ledger,) = self.folder.glob(".planrun/runs/*/ledger.jsonl")
        data = ledger.read_bytes()
        return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    def harm(self, planrun: subprocess.Popen[bytes]) -> None:
        """Wait for the first effect and for the moment, and then harm what the trial says."""
        limit = time.monotonic() + LIMIT
        while not self.effects.exists() and planrun.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        time.sleep(self.trial.after)
        kind, worker = self.trial.harm, self.trial.worker or self._with_charge()
        if kind in ("worker", "scheduler"):
            self.cluster.kill(worker if kind == "worker" else kind)
        elif kind == "planrun":
            planrun.kill()
        elif kind in ("stall", "long stall"):
            self._stall(self.cluster.pid(worker), 1.0 if kind == "stall" else LEASE + 3.0)
        elif kind in CUTS:
            self._cut(worker, 1.0 if kind == "cut" else LEASE + 4.0)
        elif kind in DISKS:
            self._fill(planrun, "" if kind == "full disk of planrun" else worker)
        else:
            self._harm_helper(planrun, kind, worker)

    def _harm_helper(self, planrun: subprocess.Popen[bytes], kind: str, worker: str) -> None:
        """Stall the client, or kill it or the process beside a worker."""
        parent = self.cluster.pid(worker) if kind == "runner" else planrun.pid
        for pid in children(parent, f"planrun.cluster.{'runner' if kind == 'runner' else 'client'}"):
            if kind == "stalled client":
                self._stall(pid, LEASE + 3.0)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _fill(self, planrun: subprocess.Popen[bytes], worker: str) -> None:
        """Fill the disk of a worker for a while, or planrun's until it ends."""
        with filled(self.cluster.folder / worker if worker else self.folder):
            (self.effects.parent / "harmed").touch()
            if worker:
                time.sleep(FULL)
            else:
                planrun.wait(LIMIT)

    def _with_charge(self) -> str:
        """Wait until `charge` has had its effect, and return the worker that runs it."""
        while not self.begun()["charge"]:
            time.sleep(0.005)
        runners = {
            pid: name
            for name in WORKERS
            for pid in children(self.cluster.pid(name), "planrun.cluster.runner")
        }
        return next(name for pid, name in runners.items() if children(pid, "charge"))

    def _cut(self, worker: str, seconds: float) -> None:
        assert self.cluster.networks is not None
        self.cluster.networks.cut(worker)
        time.sleep(seconds)
        self.cluster.networks.mend(worker)

    @staticmethod
    def _stall(pid: int, seconds: float) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)


def children(parent: int, words: str) -> list[int]:
    """Return the child processes whose command line has these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text("utf-8", "replace")
            line = (path / "cmdline").read_text("utf-8", "replace")
        except OSError:
            continue
        if int(stat.rpartition(") ")[2].split()[1]) == parent and words in line:
            found.append(int(path.name))
    return found


def carry_out(trial: Trial, folder: Path, cluster: DaskCluster) -> Finding:
    """Carry out one trial and judge it."""
    finding = Finding(trial)
    scene = Scene(folder, trial, cluster)
    planrun = scene.execute()
    scene.harm(planrun)
    (scene.effects.parent / "harmed").touch()
    code = planrun.wait(LIMIT)
    while code in (-signal.SIGKILL, 5, 74) and finding.resumed < 5:
        finding.resumed += 1
        cluster.revive(WORKERS)
        code = scene.resume().wait(LIMIT)
    cluster.revive(WORKERS)
    verified = scene.start("verify").wait(LIMIT)
    finding.problems = [*judge(scene, code), *(["the ledger does not verify"] if verified else [])]
    finding.lost = sum(event.get("reason") == "lost" for event in scene.events())
    return finding


def judge(scene: Scene, code: int) -> list[str]:
    """Return what a trial should not have come to."""
    problems = [] if code in (0, 1) else [f"exit code {code}"]
    began, events = scene.begun(), scene.events()
    ends: dict[str, dict[str, Any]] = {}
    for event in events:
        name = event.get("step", "")
        if event["type"] == "attempt_started" and ends.get(name, {}).get("status") == "completed":
            problems.append(f"{name} had completed and ran again")
        elif event["type"] in ("attempt_ended", "step_moved"):
            ends[name] = event
    started = Counter(event["step"] for event in events if event["type"] == "attempt_started")
    for name, _, again in _STEPS:
        if not again and began[name] > 1:
            problems.append(f"{name} is not idempotent and ran {began[name]} times")
        if began[name] > started[name]:
            problems.append(f"{name} began {began[name]} times, and the ledger knows of {started[name]}")
        problems += judge_end(name, ends.get(name, {}), began[name], again=again, harm=scene.trial.harm)
    if (scene.folder / ".planrun" / "cluster").exists():
        problems.append("something is left in .planrun/cluster")
    return problems


def judge_end(name: str, end: dict[str, Any], began: int, *, again: bool, harm: str) -> list[str]:
    """Return what is wrong with the end of a step: it completes as without harm, or its attempt was lost for good.

    On a full disk a step may also fail to start, to write its file, or to hand it over. While planrun's is full the
    run ends, and what fails then is not repeated, as in a run on one machine.
    """
    if end.get("status") == "completed":
        is_whole = began and end["outputs"] == {"value": name}
        return [] if is_whole else [f"{name} completed without its effect or its output"]
    full = ("spawn", "exit", "outputs", "records") if harm in DISKS else ()
    allowed = ("exit", "outputs") if again and harm == "full disk of planrun" else ()
    if end.get("reason") not in (allowed if again else ("lost", "upstream", *full)):
        return [f"{name} ended as {end.get('status')}: {end.get('reason')}"]
    return []


def prove(folder: Path, trials: Sequence[Trial]) -> list[Finding]:
    """Carry out trials one after the other, on one cluster; those with cuts on one that has networks."""
    findings: list[Finding] = []
    for is_cut in (False, True):
        chosen = [trial for trial in trials if (trial.harm in CUTS) is is_cut]
        if chosen:
            findings += _prove(folder / ("networks" if is_cut else "loopback"), chosen)
    return findings


def _prove(folder: Path, trials: Sequence[Trial]) -> list[Finding]:
    with contextlib.ExitStack() as stack:
        networks = None
        if any(trial.harm in CUTS for trial in trials):
            networks = stack.enter_context(Networks(folder / "certificates", WORKERS))
        if any(trial.harm == "full disk of a worker" for trial in trials):
            for name in WORKERS:
                stack.enter_context(small_disk(folder / "dask" / name))
        cluster = stack.enter_context(DaskCluster(folder / "dask", WORKERS, threads=1, networks=networks))
        findings = []
        for trial in trials:
            place = folder / f"trial{trial.number}"
            with small_disk(place) if trial.harm == "full disk of planrun" else contextlib.nullcontext():
                findings.append(carry_out(trial, place, cluster))
            if findings[-1].problems:
                print(f"{trial}: {'; '.join(findings[-1].problems)}", flush=True)
        return findings


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Have a folder be a disk of a few megabytes."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill the disk of a folder to its last byte."""
    path = folder / "ballast"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)
    try:
        yield
    finally:
        path.unlink()


def possible() -> tuple[tuple[str, ...], list[str]]:
    """Return the harms that this machine allows, and why others are left out."""
    if why := missing():
        disks = DISKS if os.geteuid() == 0 and sys.platform == "linux" else ()
        left = [harm for harm in (*DISKS, *CUTS) if harm not in disks]
        return (*HARMS, *disks), [f"left out: {', '.join(left)}: {why}"]
    return (*HARMS, *DISKS, *CUTS), []


def main(words: Sequence[str]) -> int:
    """Run the long form."""
    parser = argparse.ArgumentParser(prog="python -m proofs cluster", description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=[name for name in FAULTS if name], default="")
    parser.add_argument("--harms", default="", help="only these, with commas between them")
    chosen = parser.parse_args(words)
    harms, left = possible()
    if chosen.harms:
        harms = tuple(chosen.harms.split(","))
    for row in left:
        print(row)
    with tempfile.TemporaryDirectory() as folder:
        trials = draw(chosen.trials, seed=chosen.seed, harms=harms, fault=chosen.fault)
        findings = prove(Path(folder), trials)
    for harm in harms:
        group = [finding for finding in findings if finding.trial.harm == harm]
        lost, resumed = sum(each.lost for each in group), sum(each.resumed for each in group)
        print(f"{harm}: {len(group)} trials, {lost} events of loss, {resumed} resumes")
    wrong = [finding for finding in findings if finding.problems]
    print(f"seed {chosen.seed}: {len(findings)} trials, {len(wrong)} with problems")
    return 1 if wrong else 0
