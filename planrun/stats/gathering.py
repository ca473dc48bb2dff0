"""The runs that statistics count: found in workspaces, in folders of CI or one by one, and read without their plans.

Damaged runs are reported and not counted. `rebuild` writes the history of a workspace anew from its ledgers.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.clock import between
from planrun.errors import InternalError, InvalidInput
from planrun.model import events as ev
from planrun.model.plan import Plan
from planrun.model.progress import PATCH
from planrun.model.record import Record
from planrun.records.history import RUNS_KEPT, History, Past, path_of, write
from planrun.records.lock import WorkspaceLock
from planrun.records.reading import REFUSED, read_ledger
from planrun.records.rundir import HOME, LEDGER, RUNS, home
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from planrun.model.events import Event

_TOKENS = ("input_tokens", "output_tokens")


class StepTrace:
    """One step of a run; moments are stamps, durations seconds.

    `seconds`: of its attempts since it last became pending; `retries`: the attempts after the first one of these.
    `failures`: how often it had failed when a resume or retry ran it again. `gate`: how long it was at gates.
    `ran`: whether it came to an end of its own.
    """

    __slots__ = (
        "attempts",
        "ended",
        "failures",
        "gate",
        "opened",
        "reason",
        "seconds",
        "started",
        "status",
        "tokens",
        "usd",
    )

    def __init__(self) -> None:
        self.attempts = self.failures = 0
        self.seconds = self.gate = self.usd = 0.0
        self.tokens = 0
        self.started = self.ended = self.opened = ""
        self.status = "pending"
        self.reason = ""

    def reset(self) -> None:
        """Make it pending again, as a resume does; what it cost and that it failed stays."""
        self.failures += self.status == "failed"
        self.attempts, self.seconds, self.started, self.ended = 0, 0.0, "", ""
        self.status, self.reason = "pending", ""

    @property
    def ran(self) -> bool:
        """Whether it ran to an end of its own."""
        return self.attempts > 0 and self.status in ("completed", "failed")

    @property
    def retries(self) -> int:
        """How many attempts came after the first one."""
        return max(0, self.attempts - 1)

    @property
    def flaky(self) -> bool:
        """Whether it completed after a failed attempt."""
        return self.status == "completed" and self.reason == "flaky"


class Trace:
    """One run, folded event by event; unknown events of a newer planrun are ignored.

    `busy`: seconds in which a process worked on the run; `work`: seconds of all attempts together.
    """

    def __init__(self) -> None:
        self.run = self.started = self.verdict = ""
        self.plan: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.exit_code: int | None = None
        self.steps: dict[str, StepTrace] = {}
        self.busy = self.work = self.gate = 0.0
        self._asked = ""  # since when the whole plan waits
        self._since = self._last = ""  # the process that works on it: its first event, its last one

    def fold(self, events: Iterable[ev.Event]) -> Trace:
        """Fold all events and return the trace itself."""
        for event in events:
            fold = _FOLDS.get(type(event))
            if isinstance(event, ev.RunStarted | ev.RunResumed):
                self._rest()
                self._since = event.at
            # What is answered while no process works on the run is no part of the time that it took.
            if not isinstance(event, ev.GateAnswered):
                self._last = event.at
            if fold is not None:
                fold(self, event)
        self._rest()
        return self

    def _rest(self) -> None:
        if self._since:
            self.busy += max(0.0, between(self._since, self._last))
        self._since = ""

    def _step(self, name: str) -> StepTrace:
        return self.steps.setdefault(name, StepTrace())

    def _run_started(self, event: ev.RunStarted) -> None:
        self.run, self.started, self.plan, self.options = event.run, event.at, event.plan, event.options

    def _run_resumed(self, event: ev.RunResumed) -> None:
        self.plan, self.options, self.verdict, self.exit_code = event.plan, event.options, "", None
        for name in event.rerun:
            self._step(name).reset()

    def _attempt_started(self, event: ev.AttemptStarted) -> None:
        step = self._step(event.step)
        if not event.fingerprint.startswith(PATCH):  # applying a patch repeats nothing
            step.attempts += 1
        step.started = step.started or event.at
        step.status = "running"

    def _attempt_ended(self, event: ev.AttemptEnded) -> None:
        step = self._step(event.step)
        step.seconds += event.duration
        self.work += event.duration
        step.tokens += int(sum(event.usage.get(name, 0) for name in _TOKENS))
        step.usd += event.usage.get("usd", 0.0)
        self._moved(step, event.step_status, event.step_reason or event.reason, event.at)

    def _step_moved(self, event: ev.StepMoved) -> None:
        self._moved(self._step(event.step), event.status, event.reason, event.at)

    def _step_restored(self, event: ev.StepRestored) -> None:
        self._moved(self._step(event.step), "completed", "cached", event.at)

    def _moved(self, step: StepTrace, status: str, reason: str, at: str) -> None:
        step.status, step.reason, step.ended = status, reason, at
        self._let_in(step, at)

    def _gate_opened(self, event: ev.GateOpened) -> None:
        if event.step:
            self._step(event.step).opened = event.at
        else:
            self._asked = event.at

    def _gate_answered(self, event: ev.GateAnswered) -> None:
        if event.step:
            self._let_in(self._step(event.step), event.at)
        elif self._asked:
            self.gate += max(0.0, between(self._asked, event.at))
            self._asked = ""

    def _let_in(self, step: StepTrace, at: str) -> None:
        if step.opened:
            waited = max(0.0, between(step.opened, at))
            step.gate += waited
            self.gate += waited
            step.opened = ""

    def _planning_ended(self, event: ev.PlanningEnded) -> None:
        if event.plan:
            self.plan = event.plan

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.verdict, self.exit_code = event.verdict, event.exit_code

    @property
    def speedup(self) -> float | None:
        """How many times longer its steps would have taken one after the other; None where nothing took time."""
        return self.work / self.busy if self.busy and self.work else None


_FOLDS: dict[type[ev.Event], Callable[[Trace, Any], None]] = {
    ev.RunStarted: Trace._run_started,
    ev.RunResumed: Trace._run_resumed,
    ev.AttemptStarted: Trace._attempt_started,
    ev.AttemptEnded: Trace._attempt_ended,
    ev.StepMoved: Trace._step_moved,
    ev.StepRestored: Trace._step_restored,
    ev.GateOpened: Trace._gate_opened,
    ev.GateAnswered: Trace._gate_answered,
    ev.PlanningEnded: Trace._planning_ended,
    ev.RunEnded: Trace._run_ended,
}


MAX_BYTES = 512 << 20  # of one ledger; 100,000 steps need 60 MiB
# What a ledger that is no ledger does to code that believes it.
_MISFITS = (InternalError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class Broken(Record):
    """A run that is not counted, and why."""

    folder: str
    why: str


class Wanted(Record):
    """Which runs count: the newest `most` (0: all) of a plan's name or file ("": any) since a moment ("": ever)."""

    most: int = 0
    plan: str = ""
    since: str = ""  # RFC 3339 UTC

    def takes(self, trace: Trace) -> bool:
        """Whether a run is of the plan that is wanted."""
        named = (str(trace.plan.get("name", "")), str(trace.plan.get("file", "")))
        return (
            not self.plan or self.plan in named or os.path.normpath(self.plan) in map(os.path.normpath, named)
        )


class Gathering:
    """The runs of some places, newest first, read one at a time; `broken` grows while they are."""

    def __init__(self, places: Sequence[str]) -> None:
        self.broken: list[Broken] = []
        folders: dict[str, str] = {}
        for place in places:
            for folder in _in(place):
                folders.setdefault(os.path.realpath(folder), folder)
        self.folders = sorted(folders.values(), key=os.path.basename, reverse=True)

    def traces(self, wanted: Wanted) -> Iterator[tuple[str, Trace]]:
        """Yield folder and trace of each run that counts; what cannot be counted is added to `broken`.

        A run without an end counts as far as it got, whatever became of its process.
        """
        left = wanted.most or len(self.folders)
        for folder in self.folders:
            if not left:
                return
            trace = self.trace(folder)
            if trace is None or not wanted.takes(trace):
                continue
            if wanted.since and trace.started < wanted.since:
                continue
            left -= 1
            yield folder, trace

    def trace(self, folder: str) -> Trace | None:
        """Return the trace of the run in a folder; None when it cannot be counted, which `broken` then says."""
        try:
            trace = Trace().fold(_read(os.path.join(folder, LEDGER)))
        except OSError as error:
            self.broken.append(Broken(folder=folder, why=str(error.strerror)))
        except InvalidInput as error:
            self.broken.append(Broken(folder=folder, why=str(error)))
        except _MISFITS:
            self.broken.append(Broken(folder=folder, why="not a ledger"))
        else:
            if trace.run:
                return trace
            self.broken.append(Broken(folder=folder, why="the ledger is empty"))
        return None


def _read(path: str) -> Sequence[Event]:
    """Return the events of a ledger; raises OSError, InvalidInput."""
    status = os.stat(path)
    if not S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise InvalidInput("its ledger is not a regular file, or too large")
    reading = read_ledger(path)
    if reading.condition in REFUSED:
        raise InvalidInput(reading.problem)
    return reading.events


def _in(place: str) -> list[str]:
    """A place may be a workspace, its `.planrun`, a folder of runs, or the folder of one run."""
    if os.path.lexists(os.path.join(place, LEDGER)):
        return [place]
    for inner in (os.path.join(place, HOME, RUNS), os.path.join(place, RUNS), place):
        try:
            names = os.listdir(inner)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidInput(f"cannot read {inner}: {error.strerror}") from None
        folders = [os.path.join(inner, name) for name in names]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, LEDGER))]
    raise InvalidInput(f"no such folder: {place}")


def rebuild() -> Iterator[str]:
    """Write the history of every plan that has runs in this folder; yields a line for each.

    Raises InvalidInput while a run has the workspace, RecordsLost when it cannot be written to.
    """
    workspace = current_folder()
    folder = home(workspace)
    lock = WorkspaceLock(folder)
    lock.acquire(f"run -, process {os.getpid()} on {os.uname().nodename}, since it rebuilds the history")
    try:
        for plan, traces in _by_plan(workspace).items():
            history = History()
            for trace in traces:
                history = history.with_run(trace.run, pasts_of(trace))
            path = path_of(folder, _plan(*plan))
            if not write(path, history):
                yield f"{plan[0]}: its history cannot be written: {path}"
            else:
                yield f"{plan[0]}: {len(history.cells)} steps known from {len(history.runs)} runs"
    finally:
        lock.release()


def _by_plan(workspace: str) -> dict[tuple[str, str], list[Trace]]:
    """Return the newest runs of each plan that have an end, as its history remembers them."""
    traces: dict[tuple[str, str], list[Trace]] = {}
    for _, trace in Gathering((workspace,)).traces(Wanted()):
        plan = (str(trace.plan["name"]), str(trace.plan["file"]))
        if trace.verdict and len(trace.steps) > 1 and len(traces.setdefault(plan, [])) < RUNS_KEPT:
            traces[plan].append(trace)
    return traces


def pasts_of(trace: Trace) -> dict[str, Past]:
    """Return what became of the steps of a run that ran to an end of their own."""
    return {
        name: Past(ending="flaky" if step.flaky else step.status, seconds=step.seconds)
        for name, step in trace.steps.items()
        if step.ran
    }


def _plan(name: str, file: str) -> Plan:
    return Plan(name=name, file=file, digest="", steps=())
