"""The figures of many runs as metrics for Prometheus' textfile collector.

All are gauges and summaries over the runs on record: a run that is pruned leaves them, so nothing may count upwards
for ever. Durations are in seconds. Names and labels follow the conventions of Prometheus.
"""

from __future__ import annotations

from planrun.reports.facts import epoch
from planrun.stats.figures import spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planrun.stats.figures import PlanFigures, StepFigures

    Labels = Mapping[str, str]
    Sample = tuple[str, Labels, float]
    Metric = tuple[str, str, str, list[Sample]]

_ENDS = ("completed", "partial", "failed", "cancelled", "unfinished")
_GOOD = ("completed", "partial")


def exposition(counted: Sequence[PlanFigures], broken: int) -> str:
    """Return the text of a metrics file; `broken`: runs that could not be read."""
    rows = []
    for name, kind, about, samples in (*_of_plans(counted), *_of_steps(counted), _broken(broken)):
        if samples:
            rows += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            rows += [
                f"{name}{suffix}{_labels(labels)} {(str(int(value)) if value == int(value) else repr(round(value, 6)))}"
                for suffix, labels, value in samples
            ]
    return "\n".join(rows) + "\n"


def _of_plans(counted: Sequence[PlanFigures]) -> Iterator[Metric]:
    named = [(figures, {"plan": figures.name, "file": figures.file}) for figures in counted]
    latest = [(figures, labels, max(figures.runs, key=lambda run: run.started)) for figures, labels in named]
    ends: list[Sample] = []
    for figures, labels in named:
        verdicts = figures.verdicts()
        ends += [("", {**labels, "verdict": end}, verdicts.get(end, 0)) for end in _ENDS]
    yield "planrun_runs", "gauge", "Runs on record, by how they ended.", ends
    durations: list[Sample] = []
    for figures, labels in named:
        durations += _summary(labels, [run.busy for run in figures.ended])
    yield "planrun_run_duration_seconds", "summary", "Durations of the runs that ended.", durations
    yield (
        "planrun_last_run_timestamp_seconds",
        "gauge",
        "When the newest run started, in seconds since 1970.",
        [("", labels, epoch(last.started)) for _, labels, last in latest],
    )
    yield (
        "planrun_last_run_success",
        "gauge",
        "Whether the newest run completed: 1, or 0.",
        [("", labels, float(last.verdict in _GOOD)) for _, labels, last in latest],
    )
    yield (
        "planrun_last_run_duration_seconds",
        "gauge",
        "How long a process worked on the newest run.",
        [("", labels, last.busy) for _, labels, last in latest],
    )
    yield (
        "planrun_gate_wait_seconds",
        "gauge",
        "How long the runs on record waited for approvals and answers, in total.",
        [("", labels, sum(run.gate for run in figures.runs)) for figures, labels in named],
    )


def _of_steps(counted: Sequence[PlanFigures]) -> Iterator[Metric]:
    steps = [
        (step, {"plan": figures.name, "file": figures.file, "step": name})
        for figures in counted
        for name, step in figures.steps.items()
    ]
    durations: list[Sample] = []
    for step, labels in steps:
        durations += _summary(labels, list(step.seconds))
    yield (
        "planrun_step_duration_seconds",
        "summary",
        "Durations of the step, all attempts of a run.",
        durations,
    )
    outcomes: list[Sample] = []
    for step, labels in steps:
        outcomes += [("", {**labels, "outcome": name}, value) for name, value in _outcomes(step).items()]
    yield "planrun_step_runs", "gauge", "Runs on record in which the step ended so.", outcomes
    for name, about, attribute in (
        ("planrun_step_flaky_runs", "Runs in which it completed only after a failed attempt.", "flaky"),
        ("planrun_step_retries", "Attempts after the first one, in all runs on record.", "retries"),
        ("planrun_step_tokens", "Tokens of language models that it used.", "tokens"),
        ("planrun_step_cost_usd", "What these tokens cost, in US dollars.", "usd"),
    ):
        yield name, "gauge", about, [("", labels, float(getattr(step, attribute))) for step, labels in steps]


def _outcomes(step: StepFigures) -> dict[str, int]:
    return {
        "completed": max(0, step.ended - step.failed - step.cached),
        "failed": step.failed,
        "cached": step.cached,
        "left_out": step.left_out,
    }


def _broken(number: int) -> Metric:
    return "planrun_runs_unreadable", "gauge", "Runs whose records are broken.", [("", {}, float(number))]


def _summary(labels: Labels, values: list[float]) -> list[Sample]:
    found = spread(values)
    if found is None:
        return []
    quantiles = (("0.5", found.median), ("0.95", found.p95), ("1", found.most))
    samples: list[Sample] = [("", {**labels, "quantile": part}, value) for part, value in quantiles]
    return [*samples, ("_sum", labels, sum(values)), ("_count", labels, float(len(values)))]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escaped(value)}"' for name, value in labels.items()]) + "}"


def _escaped(text: str) -> str:
    plain = text.encode("utf-8", "replace").decode()
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
