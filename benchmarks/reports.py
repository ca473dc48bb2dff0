"""P8: a run of many steps that print and partly fail, and how much of its logs is in each of its reports."""

from __future__ import annotations

from pathlib import Path

from benchmarks import dags

LINE = b"a line that a step prints, found nowhere in a report but in what is shown of its log"
LINES = 30  # of each step: 10,000 of them print 25 MB, more than any report shows
FAILING = 10  # one of so many steps fails
FILE = "printed.txt"
FORMATS = {"text": None, "markdown": 4 * 2**20, "junit": 8 * 2**20, "json": None}
"""Format -> bytes of logs that may be in it, as in docs/records.md."""
SUMMARY_BYTES = 900 * 1024
"""The whole step summary of GitHub, as in docs/records.md."""


def inputs(steps: int) -> dict[str, str]:
    """The files of a run: steps in layers, and beside them the failing ones, which nothing waits for."""
    failing = steps // FAILING
    passing = dags.layers((steps - failing) // 30, 30, lambda _: f"cat {FILE}").steps
    rows = [f"  - {{id: {step.name}, run: {step.command}{_needs(step.needs)}}}\n" for step in passing]
    for number in range(steps - len(passing)):
        script = f"cat {FILE}; echo 'Error: step {number} gives up'; exit 1"
        rows.append(f'  - {{id: f{number}, run: "{script}"{_needs((number,))}}}\n')
    printed = (LINE.decode() + "\n") * LINES
    return {"plan.yml": "version: 1\nlimits: {max_parallel: 2}\nsteps:\n" + "".join(rows), FILE: printed}


def _needs(numbers: tuple[int, ...]) -> str:
    return f", depends_on: [{', '.join(f's{number}' for number in numbers)}]" if numbers else ""


def log_bytes(report: Path) -> int:
    """Bytes of a report that are lines of logs."""
    return report.read_bytes().count(LINE) * (len(LINE) + 1)
