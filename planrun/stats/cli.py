"""`planrun stats`: durations and failures over many runs."""

from __future__ import annotations

import time
from re import fullmatch

import click

from planrun.cliutil.click import replace_file
from planrun.cliutil.printing import say, say_json, table
from planrun.clock import later
from planrun.errors import InvalidInput
from planrun.reports.escape import line
from planrun.reports.facts import seconds
from planrun.stats.figures import Plans, as_data, count, example, ranked, spread
from planrun.stats.gathering import Gathering, Wanted
from planrun.stats.gathering import rebuild as rebuild_history
from planrun.stats.prometheus import exposition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.stats.figures import Example, PlanFigures, StepFigures
    from planrun.stats.gathering import Broken

_NAMED = 5  # broken runs, most failing steps
_RATES = (("failed", "most failures"), ("flaky", "most flaky"))


@click.command(short_help="Show durations, failures and the critical path over many runs.")
@click.argument("folders", nargs=-1, metavar="[DIR]...", type=click.Path())
@click.option(
    "-n", "--runs", type=click.IntRange(min=0), default=100, show_default=True,
    help="How many, the newest first; 0: all.",
)  # fmt: skip
@click.option("--plan", default="", metavar="NAME", help="Only runs of this plan, by its name or its file.")
@click.option(
    "--since",
    default="",
    metavar="WHEN",
    help="Only runs since a day (2026-01-31), a UTC time, or a duration ago: 7d, 12h.",
)
@click.option(
    "--steps", type=click.IntRange(min=0), default=25, show_default=True,
    help="How many steps of each plan, the slowest first; 0: all.",
)  # fmt: skip
@click.option("--rebuild", is_flag=True, help="Also rebuild the history of this folder from its ledgers.")
@click.option(
    "--prometheus", type=click.Path(readable=False), metavar="FILE",
    help="Write metrics for Prometheus' textfile collector, at once or not at all; - is stdout.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def stats(
    folders: tuple[str, ...], *, steps: int, prometheus: str | None, as_json: bool, **wanted: Any
) -> int:
    """Count the runs in this folder, or in each DIR: a workspace, or a folder of runs from CI.

    For each plan: how its runs ended and how long they took; for each step how long it takes, how often it fails, is
    flaky or repeated, and its share of the critical path. A broken ledger is reported and not counted.

    \b
    Examples:
      planrun stats
      planrun stats --plan release --since 30d
      planrun stats --prometheus /var/lib/node_exporter/planrun.prom
      planrun stats artifacts/run-* --json | jq '.plans[].steps | max_by(.failure_rate)'
    """
    remade = _rebuild(folders) if wanted["rebuild"] else []
    gathering, plans = Gathering(folders or (".",)), Plans()
    chosen = Wanted(most=wanted["runs"], plan=wanted["plan"], since=_moment(wanted["since"]))
    counted = count(gathering, chosen, plans)
    if prometheus is not None:
        _write_metrics(prometheus, exposition(counted, len(gathering.broken)))
        return 0
    examples = [example(figures, gathering, plans) for figures in counted]
    if as_json:
        data = [as_data(figures, path) for figures, path in zip(counted, examples, strict=True)]
        broken = [{"folder": each.folder, "why": each.why} for each in gathering.broken]
        say_json({"plans": data, "broken": broken})
        return 0
    rows = remade + [
        row for figures, path in zip(counted, examples, strict=True) for row in _lines(figures, path, steps)
    ]
    rows += _about_broken(gathering.broken)
    say("\n".join(rows) if rows else "no runs to count")
    return 0


def _write_metrics(file: str, text: str) -> None:
    if file == "-":
        say(text.removesuffix("\n"))
    else:
        replace_file(file, text.encode())


def _rebuild(folders: Sequence[str]) -> list[str]:
    if folders:
        raise InvalidInput("--rebuild works on this folder only, so it takes no DIR")
    return [f"history of {line(text)}" for text in rebuild_history()]


def _moment(text: str) -> str:
    """Return the moment that a text names, as a stamp; raises InvalidInput."""
    if not text:
        return ""
    if match := fullmatch(r"(\d{1,5})([dh])", text):
        span = int(match[1]) * (86400 if match[2] == "d" else 3600)
        return later("1970-01-01T00:00:00.000Z", max(0.0, time.time() - span))
    if fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?", text):
        return text.removesuffix("Z")
    raise InvalidInput(
        f'--since takes a day such as 2026-01-31, a UTC time, or a duration such as 7d or 12h; not "{text}"'
    )


def _lines(figures: PlanFigures, path: Example | None, most: int) -> Iterator[str]:
    ends = ", ".join(f"{number} {verdict}" for verdict, number in figures.verdicts().items())
    times = "1 run" if len(figures.runs) == 1 else f"{len(figures.runs)} runs"
    yield f"{line(figures.name)} ({line(figures.file)}): {times}, {ends}"
    took = spread(run.busy for run in figures.ended)
    if took:
        yield f"  duration: median {seconds(took.median)}, p95 {seconds(took.p95)}, max {seconds(took.most)}"
    sped = spread(run.speedup for run in figures.ended if run.speedup)
    if sped:
        yield f"  median speed-up {sped.median:.1f}×"  # noqa: RUF001 - the sign of the field
    waited = sum(run.gate for run in figures.runs)
    if waited:
        yield f"  waited for approvals and answers: {seconds(waited)} in total"
    yield ""
    head = ("Step", "Ran", "Median", "p95", "Max", "Failed", "Flaky", "Retries", "Critical")
    rows = [_cells(name, step, figures) for name, step in ranked(figures, most)]
    yield table(head, rows, right=range(1, len(head)))
    if len(rows) < len(figures.steps):
        yield f"{len(figures.steps) - len(rows)} more; --steps 0 shows all"
    for field, title in _RATES:
        ordered = sorted(
            figures.steps.items(), key=lambda pair: -getattr(pair[1], field) / (pair[1].ended or 1)
        )
        named = [
            f"{line(name)} {_rate(getattr(step, field), step.ended)}"
            for name, step in ordered[:_NAMED]
            if getattr(step, field)
        ]
        if named:
            yield f"{title}: {', '.join(named)}"
    yield from _path(path)
    yield ""


def _cells(name: str, step: StepFigures, figures: PlanFigures) -> tuple[str, ...]:
    durations = spread(step.seconds)
    took = (
        [seconds(value) for value in (durations.median, durations.p95, durations.most)]
        if durations
        else ["-"] * 3
    )
    share = step.path / figures.path if figures.path else 0.0
    return (
        line(name), str(len(step.seconds)), *took, _rate(step.failed, step.ended), _rate(step.flaky, step.ended),
        str(step.retries or "-"), f"{share:.0%}" if step.on_path else "-",
    )  # fmt: skip


def _rate(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if part else "-"


def _path(path: Example | None) -> Iterator[str]:
    if path is None:
        return
    yield f"\nCritical path of run {path.run} (median duration):"
    for stretch in path.path:
        waited = f", after {seconds(stretch.waited)} of waiting" if stretch.waited >= 0.1 else ""
        saved = path.saved.get(stretch.step, 0.0)
        gain = f"; without it the run would be up to {seconds(saved)} shorter" if saved >= 0.1 else ""
        yield f"  {line(stretch.step)} {seconds(stretch.seconds)}{waited}{gain}"


def _about_broken(broken: Sequence[Broken]) -> Iterator[str]:
    if broken:
        yield f"{len(broken)} broken, not counted:"
        yield from [f"  {line(each.folder)}: {line(each.why, 200)}" for each in broken[:_NAMED]]
        if len(broken) > _NAMED:
            yield f"  and {len(broken) - _NAMED} more"
