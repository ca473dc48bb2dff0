"""Known durations of a run's steps: read at its start, recorded, and extended at its end. HOT.

The ETA of a run follows from these durations, the progress that steps report, and the schedule. Only plans of several
steps load this.
"""

from __future__ import annotations

import os

from planrun.model.record import Record
from planrun.opening import open_record
from planrun.records import history
from planrun.records.history import read_progress
from planrun.records.rundir import write_new
from planrun.reports.escape import line
from planrun.reports.progress import Estimates, jobs_of
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.model.state import RunState

_MESSAGE = 60  # characters of a progress message


def progress_forecast(
    state: RunState, rundir: str, expected: Mapping[str, float], mask: Callable[[str], str] | None = None
) -> Estimates:
    """Return the ETA of a run; `expected` are seconds of its steps from earlier runs.

    `mask` redacts progress messages; where it is None, messages of a plan with secrets are not shown.
    """

    def forecast(left: Mapping[str, float], usual: float) -> float:
        from planrun.engine.forecast import remaining  # only a watched run needs it

        return remaining(state, jobs_of(state), state.plan.schedule, left, usual)

    def reported(names: Iterable[str]) -> dict[str, tuple[float, str]]:
        result = {}
        for name in names:
            step = state.steps[name]
            attempt = step.attempts[-1].n if step.attempts else 0
            progress = read_progress(rundir, step.step.folder or name, attempt) if attempt else None
            if progress is not None:
                result[name] = (progress.share, shown(progress.message))
        return result

    def shown(message: str) -> str:
        if mask is None:
            return "" if state.plan.secrets else line(message, _MESSAGE)
        return line(mask(message), _MESSAGE)

    return Estimates(expected=expected, forecast=forecast, reported=reported)


GRAIN = 0.1
"""Seconds, and the least weight of a step: smaller differences are noise, and must not change the order of steps."""


class KnownDurations(Record):
    """Seconds by step; `data` is the run's copy, empty where the order of steps does not depend on it."""

    seconds: Mapping[str, float] = {}
    data: bytes = b""

    @property
    def weights(self) -> dict[str, float]:
        """The weights of the steps on the longest path."""
        return weights(self.seconds) if self.data else {}

    def recorded(self) -> dict[str, Any]:
        """Return the fields of the run's first event: how many durations are known, and the digest of their file."""
        if not self.data:
            return {}
        return {"history": {"steps": len(self.seconds), "sha256": sha256(self.data).hexdigest()}}

    def keep(self, rundir: str) -> None:
        """Keep the durations that order the steps in the run's folder; a replay reports when they are missing."""
        if self.data:
            try:
                write_new(os.path.join(rundir, file_of(sha256(self.data).hexdigest())), self.data)
            except OSError:  # the file exists, or the disk is full, which the ledger will report
                return


def known_durations(home: str, plan: Plan, jobs: int, *, shown: bool) -> KnownDurations:
    """Return the known durations of a plan's steps, as far as this run needs them.

    The order of steps matters only where some wait, for others or for a free slot, and several run at once. `shown`:
    the console shows an ETA.
    """
    matters = plan.schedule == "dag" and jobs > 1
    matters = matters and (len(plan.steps) > jobs or any([step.edges for step in plan.steps]))  # noqa: C419 - half the time
    if not matters and not shown:
        return KnownDurations()
    found = history.estimates(history.path_of(home, plan))
    if found:
        names = {step.id for step in plan.steps}
        found = {name: seconds for name, seconds in found.items() if name in names}
    if not matters or not found:
        return KnownDurations(seconds=found)
    rows = [f"{seconds:.3f}\t{name}\n" for name, seconds in found.items()]
    return KnownDurations(seconds=found, data="".join(rows).encode())


def file_of(digest: str) -> str:
    """Return the name of a run's copy of the durations, by its sha256."""
    return f"durations.{digest[:16]}"


def kept(rundir: str, options: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the durations that a run used, {} where it used none, None where they are missing or altered.

    `options` are those of the event with which it started or resumed.
    """
    named = options.get("history")
    if not named:
        return {}
    try:
        with open(open_record(os.path.join(rundir, file_of(str(named["sha256"])))), "rb") as file:
            data = file.read(history.MAX_BYTES)
    except (OSError, KeyError, TypeError):
        return None
    if sha256(data).hexdigest() != named["sha256"]:
        return None
    rows = [row.partition("\t") for row in data.decode().splitlines()]
    return {name: float(seconds) for seconds, _, name in rows}


def weights(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of steps from their durations, in tenths of a second."""
    return {name: max(GRAIN, round(value, 1)) for name, value in seconds.items()}


def remember(home: str, run: str, state: RunState) -> None:
    """Add an ended run to the history of its plan; a write error is ignored."""
    if state.ended:
        history.record(history.path_of(home, state.plan), run, state)
