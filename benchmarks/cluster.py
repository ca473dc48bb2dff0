"""`python -m benchmarks.cluster`: short steps on a Dask cluster of this machine, against Dask alone and planrun alone.

Workers of one machine share its processors, so this measures what a step costs, and not what more machines bring.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.fakes.dask import DaskCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

THREADS = 2
_BARE = """\
import subprocess, sys, time
from distributed import Client
def step(number):
    return subprocess.run(["true"], stdin=subprocess.DEVNULL).returncode
client = Client(sys.argv[1])
client.gather(client.map(step, range(8), pure=False))
began = time.perf_counter()
client.gather(client.map(step, range(int(sys.argv[2])), pure=False))
print(time.perf_counter() - began)
"""
"""What Dask alone does, by a bare submit: one task for each step, all submitted at once by `client.map`, then gathered.

Each starts the same program by `subprocess.run` in a thread of a worker. Connecting and first tasks are not counted.
"""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers, each with two threads")
    return parser.parse_args()


def planrun(folder: Path, *words: str) -> float:
    """Run the plan; returns the seconds of the run itself, as its record says: start and connecting are not counted."""
    for name in (".planrun", "planrun-out"):
        shutil.rmtree(folder / name, ignore_errors=True)
    argv = [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q", *words]
    subprocess.run(
        argv, cwd=folder, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    last = ledger.read_text("utf-8").splitlines()[-1]
    return float(last.partition('"duration":')[2].partition(",")[0])


def bare(address: str, steps: int) -> float:
    """Let Dask start the same program as often."""
    argv = [sys.executable, "-c", _BARE, address.replace("dask://", "tcp://"), str(steps)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=True, encoding="utf-8")
    return float(done.stdout)


def processor_time(cluster: DaskCluster, names: Sequence[str]) -> float:
    """Return the processor time so far of a cluster, of what ended under it, and of what ended under this process."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = found.ru_utime + found.ru_stime
    for name in ("scheduler", *names):
        stat = Path(f"/proc/{cluster.pid(name)}/stat").read_text("utf-8")
        total += sum(map(int, stat.rpartition(") ")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def pairs(
    rounds: int, used: Callable[[], float], *measures: Callable[[], float]
) -> tuple[list[list[float]], list[list[float]]]:
    """Take each measure in turns; returns seconds and processor times, a list for each measure."""
    seconds: list[list[float]] = [[] for _ in measures]
    processor: list[list[float]] = [[] for _ in measures]
    for turn in range(rounds):
        order = list(enumerate(measures))
        for number, measure in order if turn % 2 == 0 else reversed(order):
            before = used()
            seconds[number].append(measure())
            processor[number].append(used() - before)
    return seconds, processor


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the median of the ratios of pairs, with the smallest and the largest."""
    found = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    return f"{median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


def main() -> int:
    """Measure, and print a table in markdown."""
    chosen = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ws"
        folder.mkdir()
        steps = "".join(f"  - {{id: s{number}, exec: ['true']}}\n" for number in range(chosen.steps))
        (folder / "plan.yml").write_text(f"version: 1\nname: many\nsteps:\n{steps}", "utf-8")
        print(f"{chosen.steps:,} steps `true`, {chosen.rounds} rounds, {time.strftime('%Y-%m-%d')}\n")
        print(
            "| Workers | planrun on the cluster | Dask alone | ratio | of processor time | planrun here | ratio |"
        )
        print("|---|---|---|---|---|---|---|")
        for count in map(int, chosen.workers.split(",")):
            print(row(Path(name) / f"dask{count}", folder, count, chosen), flush=True)
    return 0


def row(place: Path, folder: Path, count: int, chosen: argparse.Namespace) -> str:
    """Measure with a number of workers."""
    names = [f"w{number}" for number in range(count)]
    with DaskCluster(place, names, threads=THREADS) as cluster:
        (there, alone, here), processor = pairs(
            chosen.rounds,
            lambda: processor_time(cluster, names),
            lambda: planrun(folder, "--executor", cluster.address),
            lambda: bare(cluster.address, chosen.steps),
            lambda: planrun(folder, "-j", str(count * THREADS)),
        )
    return (
        f"| {count} | {median(there):.1f} s | {median(alone):.1f} s | {ratio(there, alone)} "
        f"| {ratio(processor[0], processor[1])} | {median(here):.1f} s | {ratio(there, here)} |"
    )


if __name__ == "__main__":
    sys.exit(main())
