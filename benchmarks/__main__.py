"""`python -m benchmarks`: measure the goals of speed and size against planrun's peers."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import dags, figures
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.figures import Figure, Row, as_json, from_json, goals_table, medians_table, missed, write_into
from benchmarks.goals import ROWS, with_flood
from benchmarks.measure import MeasureError
from benchmarks.progress import Progress

MARK = "measured"  # where the tables stand in README.md
QUICK_SHARE = 0.07  # of the time of everything


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which goals, as in P1,P4 (default: all)")
    parser.add_argument(
        "--rounds", type=int, help="runs of each program (default: 11 short ones, 5 long ones)"
    )
    parser.add_argument("--quick", action="store_true", help="small and few runs, no verdicts: does it work?")
    parser.add_argument(
        "--full", action="store_true", help="also print 10 GB (P7), which needs 20 GB of disk"
    )
    parser.add_argument(
        "--verify", action="store_true", help="only show that all run each step once, in order"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there too")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="take other rows from an earlier --json")
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the tables there, between its marks if it has them",
    )
    chosen = parser.parse_args()
    chosen.rows = [name.strip().upper() for name in chosen.rows.split(",")]
    unknown = [name for name in chosen.rows if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return chosen


def measure(bench: Bench, row: Row) -> None:
    """Measure one row, or note why it could not be measured; its figures are printed as they come."""
    bench.progress.start(row.goal)
    try:
        ROWS[row.goal](bench, row)
    except MeasureError as error:
        row.notes.append(f"not measured: {error}")
    bench.progress.end()
    bench.progress.clear()
    print(f"\n{figures.noise(row)}")
    if row.medians:
        print(medians_table(row))
    for note in row.notes:
        print(f"note: {note}")
    print(flush=True)


def verified(bench: Bench) -> bool:
    """Print and return whether every tool kept to the graphs."""
    steps = bench.size.steps
    right = True
    graphs = (
        dags.fan(steps, dags.marking),
        dags.layers(10, steps // 10, dags.marking),
        dags.chain(bench.size.chain, dags.marking),
    )
    for dag in graphs:
        tools = (bench.planrun, bench.planrun_sh, *bench.peers.values())
        for tool, faults in bench.verified(dag, tools).items():
            right = right and not faults
            print(f"{dag.name} {tool}: {'; '.join(faults[:3]) or 'each step once, after all it needs'}")
    return right


def report(rows: list[Row], tools: str, *, judged: bool) -> str:
    """All tables as markdown."""
    parts = [f"{tools}.\n", goals_table(rows, judged=judged)]
    for row in rows:
        parts.append(f"\n### {row.goal}\n\n{figures.noise(row)}.\n")
        if row.medians:
            parts.append(medians_table(row) + "\n")
        parts += [f"- {note}" for note in row.notes]
    return "\n".join(parts).replace("\n\n\n", "\n\n") + "\n"


def _version(text: str) -> str:
    found = re.search(r"\d+\.\d+", text)
    return found[0] if found else "of unknown version"


def machine(bench: Bench) -> str:
    """What was measured on: system, processors, versions of the tools."""
    versions = []
    for name in ("make", "ninja", "task", "doit"):
        if name in bench.peers:
            command = [bench.peers[name].argv[0], "--version"]
            shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            versions.append(f"{name} {_version(shown)}")
        else:
            versions.append(f"no {name}")
    system = f"{platform.system()} {_version(platform.release())}, {os.cpu_count()} processors"
    return f"{system}, Python {platform.python_version()}, {', '.join(versions)}"


def measured(bench: Bench, goals: list[str], *, judged: bool) -> tuple[list[Row], bool]:
    """Measure these goals; return what there is, and whether it was stopped by Ctrl-C."""

    def show(goal: str, figure: Figure) -> None:
        bench.progress.clear()
        print(figures.line(goal, figure, judged=judged), flush=True)

    rows: list[Row] = []
    try:
        # P7 leaves the disk gigabytes to write, for which the syncs of others would wait.
        for goal in sorted(goals, key=lambda goal: goal == "P7"):
            rows.append(Row(goal, show=show))
            measure(bench, rows[-1])
    except KeyboardInterrupt:
        bench.progress.clear()
        print("stopped: the rest is not measured")
        return rows, True
    return rows, False


def keep(rows: list[Row], chosen: argparse.Namespace, tools: str) -> None:
    """Write the files that were asked for, with the rows of an earlier run where this one has none."""
    earlier = from_json(chosen.keep.read_text("utf-8")) if chosen.keep else []
    known = {row.goal: row for row in [*earlier, *rows]}
    table = [known[goal] for goal in ROWS if goal in known]
    if chosen.json:
        chosen.json.write_text(as_json(table), encoding="utf-8")
    if chosen.markdown:
        write_into(chosen.markdown, MARK, report(table, tools, judged=not chosen.quick))


def main() -> int:
    """Measure and print; 1 when a promise is missed or a row could not be measured, 130 after Ctrl-C."""
    chosen = arguments()
    size = QUICK if chosen.quick else FULL
    if chosen.rounds:
        size = replace(size, rounds=chosen.rounds, long_rounds=chosen.rounds)
    scale = QUICK_SHARE if chosen.quick else size.long_rounds / FULL.long_rounds
    with tempfile.TemporaryDirectory(prefix="planrun-benchmarks-") as folder:
        bench = Bench(Path(folder).resolve(), size, Progress(chosen.rows, scale))
        if chosen.verify:
            return 0 if verified(bench) else 1
        doubts = bench.doubts()
        if doubts:
            print("planrun does not do its work, so its speed means nothing:", *doubts, sep="\n  ")
            return 1
        if chosen.full:
            with_flood(bench)
        tools = machine(bench)
        rows, is_stopped = measured(bench, chosen.rows, judged=not chosen.quick)
    keep(rows, chosen, tools)
    late = [] if chosen.quick else missed(rows)
    if late:
        print("Missed:", *late, sep="\n")
    broken = any(note.startswith("not measured") for row in rows for note in row.notes)
    return 130 if is_stopped else int(broken or bool(late))


if __name__ == "__main__":
    sys.exit(main())
