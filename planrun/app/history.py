"""When a run will probably end: by what its steps took before, what they say themselves, and the order to come.

What a run goes by of how long its steps took before: read at its start, put on record, and added to at its end. HOT.

Only plans of several steps load this.
"""

from __future__ import annotations

import os

from planrun.model.record import Record
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

_MESSAGE = 60  # characters of what a step says


def progress_forecast(
    state: RunState, rundir: str, expected: Mapping[str, float], mask: Callable[[str], str] | None = None
) -> Estimates:
    """Return what is known of a run's future; `expected` are seconds of its steps from earlier runs.

    `mask`: lies over what steps say; where it is None nothing of what the steps of a plan with secrets say is shown.
    """

    def forecast(left: Mapping[str, float], usual: float) -> float:
        from planrun.engine.forecast import remaining  # only who watches a run asks

        return remaining(state, jobs_of(state), state.plan.schedule, left, usual)

    def said(names: Iterable[str]) -> dict[str, tuple[float, str]]:
        found = {}
        for name in names:
            step = state.steps[name]
            attempt = step.attempts[-1].n if step.attempts else 0
            told = read_progress(rundir, step.step.folder or name, attempt) if attempt else None
            if told is not None:
                found[name] = (told.share, shown(told.message))
        return found

    def shown(message: str) -> str:
        if mask is None:
            return "" if state.plan.secrets else line(message, _MESSAGE)
        return line(mask(message), _MESSAGE)

    return Estimates(expected=expected, forecast=forecast, said=said)


GRAIN = 0.1
"""Seconds, and the least that a step weighs: what differs by less is noise, and must not change the order of steps."""


class KnownDurations(Record):
    """Seconds by step; `data` is the same as a run keeps it, empty where the order of steps does not go by it."""

    seconds: Mapping[str, float] = {}
    data: bytes = b""

    @property
    def weights(self) -> dict[str, float]:
        """What the steps weigh on the longest path."""
        return weights(self.seconds) if self.data else {}

    def recorded(self) -> dict[str, Any]:
        """What the first event of a run says: how many steps are known, and which file of the run says of each how."""
        if not self.data:
            return {}
        return {"history": {"steps": len(self.seconds), "sha256": sha256(self.data).hexdigest()}}

    def keep(self, rundir: str) -> None:
        """Keep in a run's folder what the order of its steps goes by; a replay says so where it is missing."""
        if self.data:
            try:
                write_new(os.path.join(rundir, file_of(sha256(self.data).hexdigest())), self.data)
            except OSError:  # it is there, or the disk is full, which whatever counts will say
                return


def known_durations(home: str, plan: Plan, jobs: int, *, shown: bool) -> KnownDurations:
    """Return what is known of a plan's steps, as far as this run has a use for it.

    The order of steps can only matter where some have to wait, for others or for a free place, and several run at
    once. `shown`: somebody watches, who wants to know when it will be over.
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
    """Return the name of a run's copy of what was known, by its sha256."""
    return f"durations.{digest[:16]}"


def kept(rundir: str, options: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the seconds that a run went by, {} where it went by none, None where they are gone or altered.

    `options` are those of the event with which it started, or went on.
    """
    named = options.get("history")
    if not named:
        return {}
    try:
        with open(os.path.join(rundir, file_of(str(named["sha256"]))), "rb") as file:
            data = file.read(history.MAX_BYTES)
    except (OSError, KeyError, TypeError):
        return None
    if sha256(data).hexdigest() != named["sha256"]:
        return None
    rows = [row.partition("\t") for row in data.decode().splitlines()]
    return {name: float(seconds) for seconds, _, name in rows}


def weights(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return what steps weigh that took so long before, in tenths of a second."""
    return {name: max(GRAIN, round(value, 1)) for name, value in seconds.items()}


def remember(home: str, run: str, state: RunState) -> None:
    """Add a run that ended to the history of its plan; what cannot be written is left out."""
    if state.ended:
        history.record(history.path_of(home, state.plan), run, state)
