"""How a run differs from the last good one: slower steps, flaky ones, new failures and those that last."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planrun.model.progress import StepState
    from planrun.model.state import RunState

SLOWER = 1.25
"""Times as long as in the last good run."""
LEAST = 1.0
"""Seconds: what is less is noise."""


class Baseline(Record):
    """Earlier runs of the plan: the last good one, and how each step ended in all that are known, oldest first."""

    run: str  # "": none of them was good
    seconds: Mapping[str, float] = {}  # in the last good run, of the steps that ran in it
    endings: Mapping[str, tuple[str, ...]] = {}  # completed, flaky or failed
    runs: int = 0


class Difference(Record):
    """What is different about a step; times in seconds, None where it did not run."""

    step: str
    kind: str  # failure, slower, flaky or new
    text: str
    before: float | None = None
    now: float | None = None


_ORDER = ("failure", "flaky", "slower", "new")


def differences(state: RunState, baseline: Baseline) -> list[Difference]:
    """Return what is different, failures first, then what became slowest."""
    found = [each for step in facts.listed(state) for each in _of(step, baseline)]
    return sorted(found, key=lambda each: (_ORDER.index(each.kind), -((each.now or 0) - (each.before or 0))))


def _of(step: StepState, baseline: Baseline) -> Iterator[Difference]:
    name = step.step.id
    if not step.tries or step.status not in ("completed", "failed") or step.step.service is not None:
        return
    before, now = baseline.seconds.get(name), facts.duration(step)
    known = baseline.endings.get(name, ())
    if step.status == "failed":
        yield Difference(step=name, kind="failure", text=_failing(known), before=before, now=now)
        return
    if step.flaky or "flaky" in known:
        yield Difference(step=name, kind="flaky", text=_flaky(step, known), before=before, now=now)
    if before is not None and now >= before * SLOWER and now - before >= LEAST:
        times = f", {now / before:.1f} times as long" if before >= 0.05 else ""
        yield Difference(
            step=name, kind="slower", text=f"{seconds(now - before)} slower{times}", before=before, now=now
        )
    if not known and baseline.run:
        yield Difference(
            step=name, kind="new", text="did not run in the known earlier runs", before=None, now=now
        )


def _failing(known: tuple[str, ...]) -> str:
    """Say whether a failure is new."""
    if not known:
        return "failed, and did not run in the known earlier runs"
    row = 0
    for ending in reversed(known):
        if ending != "failed":
            break
        row += 1
    if row:
        return f"failed in the {row} run{'' if row == 1 else 's'} before, too"
    return "new failure: it completed the last time it ran"


def _flaky(step: StepState, known: tuple[str, ...]) -> str:
    times = known.count("flaky")
    earlier = f"flaky in {times} of {len(known)} earlier runs" if times else ""
    return ", ".join(filter(None, ["flaky: passed after a retry" if step.flaky else "", earlier]))
