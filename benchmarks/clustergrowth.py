"""`python -m benchmarks.clustergrowth`: what a step on a cluster costs planrun itself, up to 100,000 steps.

Workers are simulated: a client process answers each attempt at once, by the lines of the real one. So the processor
time of planrun's process is its own work for a step on a cluster: to schedule, to record, to send and to take.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
_DRIVER = """\
import os, resource, sys
from planrun import entry
entry.PATH = sys.argv.pop(1)
import planrun.app.clusters as clusters
clusters.scheduler_address = lambda given: given
from planrun.cli import run
def report():
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open(os.environ["USED"], "w") as file:
        file.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
leave = os._exit
def leaving(code):
    report()
    leave(code)
os._exit = leaving
try:
    run()
finally:
    report()
"""


def measured(folder: Path, steps: int, slots: int) -> tuple[float, float, int]:
    """Return the seconds of the run, the processor time of planrun, and its largest memory in KiB."""
    folder.mkdir()
    rows = "".join(f"  - {{id: s{number}, exec: ['true']}}\n" for number in range(steps))
    (folder / "plan.yml").write_text(f"version: 1\nname: many\nsteps:\n{rows}", "utf-8")
    env = {**os.environ, "DASK_PLANRUN": str(ROOT), "DASK_SLOTS": str(slots), "USED": str(folder / "used")}
    words = [
        str(Path(__file__).with_name("answering.py")),
        "execute",
        "plan.yml",
        "-q",
        "--executor",
        "dask://x:1",
    ]
    subprocess.run(
        [sys.executable, "-c", _DRIVER, *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    last = ledger.read_bytes().splitlines()[-1].decode()
    processor, memory = (folder / "used").read_text("utf-8").split()
    return float(last.partition('"duration":')[2].partition(",")[0]), float(processor), int(memory)


def main() -> int:
    """Measure, and print a table in markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clustergrowth", description=__doc__)
    parser.add_argument("--steps", default="1000,10000,100000")
    parser.add_argument("--slots", type=int, default=8)
    chosen = parser.parse_args()
    print(f"simulated workers, {chosen.slots} threads, {time.strftime('%Y-%m-%d')}\n")
    print("| Steps | run | a step | planrun's own processor time a step | memory |")
    print("|---|---|---|---|---|")
    for steps in map(int, chosen.steps.split(",")):
        with tempfile.TemporaryDirectory() as name:
            base = measured(Path(name) / "one", 1, chosen.slots)[1]
            seconds, processor, memory = measured(Path(name) / "many", steps, chosen.slots)
        own = 1000 * (processor - base) / steps
        each = 1000 * seconds / steps
        print(f"| {steps:,} | {seconds:.1f} s | {each:.2f} ms | {own:.2f} ms | {memory / 1024:.0f} MiB |")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
