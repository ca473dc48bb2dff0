"""`python -m benchmarks.startup`: what each device of the start-up path saves, as a share of a start.

Each variant runs the same one-step plan that was executed before, through the same `planrun.cli.run`, with one device
switched off: an import that the device avoids stands before it, or the device is replaced. The variants take turns;
a figure is the difference of medians of processor time to the unchanged start.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import dags
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.measure import take_turns

RUN = "from planrun.cli import run\nrun()\n"
CLICK = """
import planrun.cli as cli

cli._dispatch = lambda words: __import__("planrun.cli.group", fromlist=["grouped"]).grouped
cli.run()
"""
VARIANTS = {
    "import finder": "import planrun.finder as f\nf.install = lambda: None\n" + RUN,
    "options of `execute` parsed without click": CLICK,
    "console script instead of an entry point (re)": "import re\n" + RUN,
    "`Record` instead of dataclasses": "import dataclasses\n" + RUN,
    "`model.jsontext` instead of json": "import json\n" + RUN,
    "`TYPE_CHECKING = False` instead of typing": "import typing\n" + RUN,
    "`_signal` instead of signal": "import signal\n" + RUN,
    "`_sha2` instead of hashlib": "import hashlib\n" + RUN,
    "posix_spawn instead of subprocess": "import subprocess\n" + RUN,
    "own JUnit writer instead of junit-xml": "import junit_xml\n" + RUN,
    "generated tables instead of pydantic": "import pydantic\n" + RUN,
    "no garbage collection": "import gc\ngc.disable = lambda: None\n" + RUN,
}
"""Device -> a program that starts planrun without it."""
CACHE = "compiled plans kept between runs"


def main() -> int:
    """Measure and print a markdown table; exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds: does it work?")
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else replace(FULL, rounds=31)
    with tempfile.TemporaryDirectory(prefix="startup-") as folder:
        bench = Bench(Path(folder), size)
        dag = dags.one("true")
        usual = bench.contender(bench.planrun, dag)
        words = [*usual.argv]
        operands = words[words.index("execute") :]
        made = {"start": replace(usual, argv=[sys.executable, "-c", RUN, *operands], runs=[])}
        for name, text in VARIANTS.items():
            made[name] = replace(usual, argv=[sys.executable, "-c", text, *operands], runs=[])
        made[CACHE] = bench.new_plan(dag)
        made["bare"] = bench.program("python -c pass", [sys.executable, "-c", "pass"])
        take_turns(bench.launcher, list(made.values()), size.rounds)
        base, bare = made["start"].median().cpu, made["bare"].median().cpu
        print(f"one step, cached plan: {base / bare:.2f} x `python -c pass` in processor time\n")
        print("| Device | Saves, of a start |\n|---|---|")
        saved = {name: made[name].median().cpu / base - 1 for name in (*VARIANTS, CACHE)}
        for name, share in sorted(saved.items(), key=lambda entry: -entry[1]):
            print(f"| {name} | {share:.0%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
