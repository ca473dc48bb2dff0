"""What a sandbox costs for each step, on each backend of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import dags
from planrun.executors.sandbox.probe import BACKENDS, why_not

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.figures import Row
    from benchmarks.measure import Contender, Usage

MS_MORE = 5.0
"""Milliseconds that a sandbox may add to a step, by the backend that is taken first."""


def sandboxes(bench: Bench, row: Row) -> None:
    """S3: the same steps with `sandbox: low` and without."""
    dag = dags.fan(bench.size.steps, dags.program)
    plain = bench.contender(bench.planrun, dag)
    confined = {backend: _confined(bench, dag, backend) for backend in BACKENDS if _is_here(backend, row)}
    bench.compare(f"{dag.name}, sandboxes", [plain, *confined.values()], bench.size.long_rounds)
    count = len(dag.steps)

    def more(mine: Usage, other: Usage) -> float:
        return 1000 * (mine.wall - other.wall) / count

    for number, (backend, contender) in enumerate(confined.items()):
        row.compute(
            f"{dag.name}, {backend}", "ms a step more", None if number else MS_MORE, more, contender, plain
        )
        row.ratio(f"{dag.name}, {backend}", contender, plain, None)
    row.keep(dag.name, [plain, *confined.values()], plain)


def _is_here(backend: str, row: Row) -> bool:
    missing = why_not(backend)
    if missing:
        row.notes.append(f"{backend} is left out: {missing}")
    return not missing


def _confined(bench: Bench, dag: dags.Dag, backend: str) -> Contender:
    contender = bench.contender(bench.planrun, dag, name=f"planrun, {backend}")
    plan = contender.workspace.folder / bench.planrun.file
    plan.write_text(f"defaults: {{sandbox: low}}\n{plan.read_text('utf-8')}", "utf-8")
    contender.env["PLANRUN_SANDBOX_BACKEND"] = backend
    return contender
