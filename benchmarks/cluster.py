"""`python -m benchmarks.cluster`: short steps on a Dask cluster of this machine, against Dask alone and planrun alone.

Workers of one machine share its processors, so this measures what a step costs, and not what more machines bring.
"""

from __future__ import annotations

import argparse
import os
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
    from collections.abc import Callable

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
"""What Dask alone does: all tasks at once, each starts the same program; connecting is not counted."""


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


def medians(rounds: int, *measures: Callable[[], float]) -> list[float]:
    """Return the median of each measure, taken in turns."""
    found = [[measure() for measure in measures] for _ in range(rounds)]
    return [median(values) for values in zip(*found, strict=True)]


def main() -> int:
    """Measure, and print a table in markdown."""
    chosen = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "ws"
        folder.mkdir()
        steps = "".join(f"  - {{id: s{number}, exec: ['true']}}\n" for number in range(chosen.steps))
        (folder / "plan.yml").write_text(f"version: 1\nname: many\nsteps:\n{steps}", "utf-8")
        print(f"{chosen.steps} steps `true`, {chosen.rounds} rounds, {time.strftime('%Y-%m-%d')}\n")
        print(
            "| Workers | planrun on the cluster | Dask alone | ratio | planrun here, same `--jobs` | ratio |"
        )
        print("|---|---|---|---|---|---|")
        for count in map(int, chosen.workers.split(",")):
            names = [f"w{number}" for number in range(count)]
            with DaskCluster(Path(name) / f"dask{count}", names, threads=THREADS) as cluster:
                address, jobs = cluster.address, str(count * THREADS)
                there, alone, here = medians(
                    chosen.rounds,
                    lambda address=address: planrun(folder, "--executor", address),  # type: ignore[misc]
                    lambda address=address: bare(address, chosen.steps),  # type: ignore[misc]
                    lambda jobs=jobs: planrun(folder, "-j", jobs),  # type: ignore[misc]
                )
            print(
                f"| {count} | {there:.1f} s | {alone:.1f} s | {there / alone:.1f} | {here:.1f} s "
                f"| {there / here:.1f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
