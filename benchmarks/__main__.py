"""`python -m benchmarks`: measure the goals of speed and size against planrun's peers."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import dags
from benchmarks.bench import FULL, QUICK, Bench
from benchmarks.calm import CALM
from benchmarks.figures import Row, as_json, goals_table, medians_table, missed
from benchmarks.goals import ROWS, with_flood
from benchmarks.measure import MeasureError


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which goals, as in P1,P4 (default: all)")
    parser.add_argument("--quick", action="store_true", help="small and few runs, no verdicts: does it work?")
    parser.add_argument("--full", action="store_true", help="also print 10 GB (P7), which needs free disk")
    parser.add_argument(
        "--verify", action="store_true", help="only show that all run each step once, in order"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there too")
    chosen = parser.parse_args()
    chosen.rows = [name.strip().upper() for name in chosen.rows.split(",")]
    unknown = [name for name in chosen.rows if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return chosen


def measured(bench: Bench, name: str) -> Row:
    """One row, or why it could not be measured."""
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        row = ROWS[name](bench)
    except MeasureError as error:
        row = Row(name, notes=[f"not measured: {error}"])
    return row


def show(rows: list[Row], *, judged: bool) -> None:
    """Print medians, notes and the table of goals."""
    for row in rows:
        others = "unknown" if row.foreign is None else f"{row.foreign:.0%}"
        noise = " (noisy: measure again)" if (row.foreign or 0) > CALM else ""
        print(f"\n{row.goal}: other work used {others} of the processors meanwhile{noise}")
        if row.medians:
            print(medians_table(row))
        for note in row.notes:
            print(f"note: {note}")
    print("\n" + goals_table(rows, judged=judged))


def verified(bench: Bench) -> bool:
    """Print and return whether every tool kept to the graphs."""
    steps = bench.size.steps
    right = True
    for dag in (dags.fan(steps, dags.marking), dags.layers(10, steps // 10, dags.marking)):
        for tool, faults in bench.verified(dag, (bench.planrun, *bench.peers.values())).items():
            right = right and not faults
            print(f"{dag.name} {tool}: {'; '.join(faults[:3]) or 'each step once, after all it needs'}")
    return right


def main() -> int:
    """Measure and print; 1 when a promise is missed or a row could not be measured."""
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="planrun-benchmarks-") as folder:
        bench = Bench(Path(folder).resolve(), QUICK if chosen.quick else FULL)
        if chosen.verify:
            return 0 if verified(bench) else 1
        doubts = bench.doubts()
        if doubts:
            print("planrun does not do its work, so its speed means nothing:", *doubts, sep="\n  ")
            return 1
        if chosen.full:
            with_flood(bench)
        rows = [measured(bench, name) for name in chosen.rows]
    show(rows, judged=not chosen.quick)
    if chosen.json:
        chosen.json.write_text(as_json(rows), encoding="utf-8")
    broken = any(note.startswith("not measured") for row in rows for note in row.notes)
    return 1 if broken or (missed(rows) and not chosen.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
