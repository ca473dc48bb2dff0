"""`python -m benchmarks.calls`: the system calls that planrun itself makes for one more step, by name.

strace counts those of planrun's process without its children, in a run of 20 steps and in one of 120; a figure is a
hundredth of the difference. Runs are repeated, and the one with the fewest calls counts: processes that others start
meanwhile make planrun look at them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks import dags
from benchmarks.bench import QUICK, Bench
from benchmarks.figures import write_into
from benchmarks.measure import run_once

FEW, MANY = 20, 120
TRIES = 3
MARK = "calls"  # where the table stands in README.md
KINDS = {"`true`": dags.silent, "`/usr/bin/true`": dags.program, "`echo`": dags.printing}


def parsed(summary: str) -> Counter[str]:
    """Calls by name from a summary of `strace -c`, whose columns are share, seconds, each, calls, errors, name."""
    rows = [line.split() for line in summary.splitlines()]
    return Counter(
        {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"}
    )


def counted(bench: Bench, dag: dags.Dag) -> Counter[str]:
    """Calls of planrun's process in a run of a plan that was seen before."""
    contender = bench.contender(bench.planrun, dag)
    run_once(bench.launcher, contender)
    trace = bench.trash / "trace"
    contender.argv = [shutil.which("strace") or "strace", "-c", "-qq", "-o", str(trace), *contender.argv]
    runs = []
    for _ in range(TRIES):
        run_once(bench.launcher, contender)
        runs.append(parsed(trace.read_text("utf-8")))
    return min(runs, key=Counter.total)


def a_step(many: Counter[str], few: Counter[str]) -> dict[str, float]:
    """Calls by name that each step more adds; none of those that do not depend on their number."""
    found = {name: (many[name] - few[name]) / (MANY - FEW) for name in many | few}
    return {name: calls for name, calls in found.items() if abs(calls) >= 0.05}


def table(kinds: dict[str, dict[str, float]]) -> str:
    """All kinds of steps side by side, the most frequent calls first."""
    names = sorted(
        {name for calls in kinds.values() for name in calls},
        key=lambda name: (-max(calls.get(name, 0) for calls in kinds.values()), name),
    )
    totals = [f"**{sum(calls.values()):.1f}**" for calls in kinds.values()]
    rows = [[name, *(f"{calls.get(name, 0):.1f}" for calls in kinds.values())] for name in names]
    lines = [["Call", *kinds], ["---", *("---:" for _ in kinds)], *rows, ["**all**", *totals]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Count and print a markdown table; exit code 0, 1 without strace."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the table there, between its marks if it has them",
    )
    chosen = parser.parse_args()
    if shutil.which("strace") is None:
        print("strace is not installed", file=sys.stderr)
        return 1
    kinds = {}
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        bench = Bench(Path(folder).resolve(), QUICK)
        for name, command in KINDS.items():
            few, many = (counted(bench, dags.fan(count - 1, command)) for count in (FEW, MANY))
            kinds[name] = a_step(many, few)
    print(table(kinds))
    if chosen.markdown:
        write_into(chosen.markdown, MARK, table(kinds) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
