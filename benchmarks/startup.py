"""`python -m benchmarks.startup`: what a start costs, and what each device of the start-up path saves of it.

Each variant runs the same one-step plan, through the same `planrun.cli.run`, with one device switched off: an import
that the device avoids stands before it, or the device is replaced. The variants take turns; a figure is the
difference of medians of processor time to the unchanged start, of a plan that was executed before or of a new one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks import dags, peers
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.measure import Contender, take_turns

RUN = "from planrun.cli import run\nrun()\n"
CLICK = """
import planrun.cli as cli

cli._dispatch = lambda words: __import__("planrun.cli.group", fromlist=["grouped"]).grouped
cli.run()
"""
VARIANTS = {
    "options of `execute` parsed without click": CLICK,
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
NEW = {
    "libyaml's parser without the rest of PyYAML": "import yaml\n" + RUN,
    "names and numbers checked without re": "import re\n" + RUN,
    "expressions and groups loaded where there are some": """
import planrun.plan.compile.groups, planrun.plan.compile.conflicts, planrun.plan.check.quoting
import planrun.plan.check.references, planrun.expressions.parse, planrun.plan.keys.uses
"""
    + RUN,
}
"""The same for a new plan; the cost of a start is then that of one."""
CACHE = "compiled plans kept between runs"
START = "a start"
BARE = "`python -c pass`"


def main() -> int:
    """Measure and print a markdown table; exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds: does it work?")
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else replace(FULL, rounds=31)
    with tempfile.TemporaryDirectory(prefix="startup-") as folder:
        bench = Bench(Path(folder), size)
        dag = dags.one("true")
        usual, new = bench.contender(bench.planrun, dag), bench.new_plan(dag)
        commands = _commands(bench, [usual, new])
        words = [*usual.argv]
        operands = words[words.index("execute") :]
        made = {name: _variant(usual, text, operands) for name, text in {START: RUN, **VARIANTS}.items()}
        fresh = {name: _variant(new, text, operands) for name, text in {START: RUN, **NEW}.items()}
        take_turns(bench.launcher, [*commands.values(), *made.values(), *fresh.values()], size.rounds)
        _print_commands(commands)
        _print_saved("Device", made, fresh[START])
        _print_saved("Device, for a new plan", fresh)
    return 0


def _variant(usual: Contender, text: str, operands: list[str]) -> Contender:
    return replace(usual, argv=[sys.executable, "-c", text, *operands], runs=[])


def _commands(bench: Bench, runs: list[Contender]) -> dict[str, Contender]:
    """Return the whole programs: Python alone, with what a `site-packages` adds to it, planrun and task."""
    python = [sys.executable, "-c", "pass"]
    made = {
        BARE: bench.program(BARE, python),
        "the same without `site` and its .pth files (`-I -S`)": bench.program(
            "python -I -S", [python[0], "-I", "-S", *python[1:]]
        ),
    }
    for option in ("--version", "--help"):
        made[f"`planrun {option}`"] = bench.program(option, [*peers.planrun_command(), option])
    made |= {"`planrun execute`, cached plan": runs[0], "`planrun execute`, new plan": runs[1]}
    if task := bench.peers.get("task"):
        made["`task --version`"] = bench.program("task --version", [task.argv[0], "--version"])
        made["`task`"] = bench.contender(task, dags.one("true"))
    return made


def _print_commands(commands: dict[str, Contender]) -> None:
    print(f"| Command | least, median x {BARE}, wall | processor |\n|---|---|---|")
    bare = commands[BARE]
    for name, contender in commands.items():
        figures = []
        for kind in ("wall", "cpu"):
            mine, other = ([getattr(run, kind) for run in each.runs] for each in (contender, bare))
            figures.append(f"{min(mine) / min(other):.2f}, {median(mine) / median(other):.2f}")
        print(f"| {name} | {' | '.join(figures)} |")
    print()


def _print_saved(title: str, made: dict[str, Contender], new: Contender | None = None) -> None:
    base = made.pop(START).median().cpu
    saved = {name: contender.median().cpu / base - 1 for name, contender in made.items()}
    if new is not None:
        saved[CACHE] = new.median().cpu / base - 1
    print(f"| {title} | Saves, of a start |\n|---|---|")
    for name, share in sorted(saved.items(), key=lambda entry: -entry[1]):
        print(f"| {name} | {share:.0%} |")
    print()


if __name__ == "__main__":
    sys.exit(main())
