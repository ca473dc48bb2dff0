"""The processes of queued plans: how they start, how a later runner identifies them, and how they end.

A process waits at a gate until the queue's file names it. A runner that is killed in between closes the gate for good,
so no plan runs without an entry in the file, and none twice. The outcome of an entry is the exit code of its process,
or comes from the ledger of its run if its end was not observed.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys

from planrun.app.summaries import resting_status
from planrun.clock import SystemClock
from planrun.errors import (
    EXIT_DEADLINE,
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_INTERNAL,
    EXIT_INVALID,
    EXIT_OK,
    EXIT_RECORDS,
    EXIT_WAITING,
    Denied,
    InvalidInput,
)
from planrun.executors.attempt import signal_name
from planrun.executors.scan import signal_exactly, start_time
from planrun.executors.tree import HAS_PROC
from planrun.model.events import RunEnded
from planrun.model.queue import EntryEnded, EntryQueued, Worker
from planrun.model.record import Record
from planrun.queue.keeper import FORM
from planrun.records.lock import holder
from planrun.records.reading import read_ledger
from planrun.records.rundir import HOME, LEDGER, RUNS
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from planrun.model.plan import Plan
    from planrun.model.queue import Entry, QueueEvent
    from planrun.queue.leases import Lease
    from planrun.records.queuefile import Change
    from planrun.records.queueplace import PlaceChange
    from planrun.records.reading import Reading
    from planrun.settings import Settings

VARIABLE = "PLANRUN_QUEUED"
"""Gives a queued `planrun execute` its run id and, behind a colon, the SHA-256 of the plan that was queued."""
_DIGITS = frozenset("0123456789abcdef-")


def as_queued(plan: Plan, settings: Settings) -> Settings:
    """Return the settings with the id that the queue chose, and take the variable from what steps inherit.

    Raises Denied when the plan is not the one that was queued: the bytes are those that will be run.
    """
    run, _, wanted = os.environ.pop(VARIABLE, "").partition(":")
    if not run or set(run) - _DIGITS or len(run) > 40:
        raise InvalidInput(f"{VARIABLE} is set by planrun queue run alone")
    if wanted and sha256(plan.source).hexdigest() != wanted:
        raise Denied(f"{plan.file} changed since it was queued")
    return settings.but(run=run)


# The shell replaces itself by planrun and keeps its pid and start time; at the end of its input it ends.
_GATE = 'read -r word && test "$word" = go && exec "$@" </dev/null'
# Without -P Python would import a planrun.py in the folder of the plan.
_PLANRUN = (sys.executable, "-P", "-m", "planrun")
_KEEPER = (sys.executable, "-P", "-m", "planrun.queue.keeper")
_BOOT = "/proc/sys/kernel/random/boot_id"


class Gated:
    """A child that runs an entry once `release` was called."""

    def __init__(
        self,
        words: Sequence[str],
        folder: str,
        variable: str,
        output: IO[bytes] | None,
        lease: Lease | None = None,
    ) -> None:
        env = {name: value for name, value in os.environ.items() if name != VARIABLE}
        if variable:
            env[VARIABLE] = variable
        self._signs = -1  # the end of a pipe to its keeper
        theirs, keeper = -1, []
        if lease:
            theirs, self._signs = os.pipe()
            os.set_blocking(self._signs, False)
            keeper = [*_KEEPER, str(lease.seconds), str(theirs), repr(lease.signed)]
        self.process = subprocess.Popen(
            ["sh", "-c", _GATE, "planrun", *keeper, *_PLANRUN, *words],
            pass_fds=(theirs,) if lease else (),
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stderr=output,  # progress goes to stderr; stdout is for --json
            start_new_session=True,  # what Ctrl-C sends comes from the runner, once
        )
        if lease:
            os.close(theirs)
        self.worker = worker_of(self.process.pid)

    def sign(self, moment: float) -> None:
        """Tell its keeper when the last sign of life of this runner was given."""
        try:
            os.write(self._signs, struct.pack(FORM, moment))
        except OSError:  # it has ended, or it stalls: it is not the lease that ends then
            return

    def close(self) -> None:
        """Close the pipe to the keeper of a process that has ended."""
        if self._signs >= 0:
            os.close(self._signs)
            self._signs = -1

    def release(self) -> None:
        """Let it start."""
        self._close(b"go\n")

    def dismiss(self) -> None:
        """End it before it starts."""
        self._close(b"")
        self.process.wait()
        self.close()

    def _close(self, word: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(word)
            self.process.stdin.close()
        except BrokenPipeError:  # it was killed already; its end is handled as any other
            return


def worker_of(pid: int) -> Worker:
    """Return the identity of a process of this machine."""
    return Worker(pid=pid, born=start_time_of(pid), boot=boot(), host=os.uname().nodename)


def lives(worker: Worker, run: str, folder: str) -> bool:
    """Whether a process still works on a run; for another machine by the lock of the run's folder."""
    if worker.host != os.uname().nodename:
        held = holder(folder)
        return held is not None and held.run == run
    return worker.boot == boot() and start_time_of(worker.pid) == worker.born


def send_signal(worker: Worker, signum: int) -> None:
    """Signal this process, and no later one with its pid; a process on another machine is not signalled."""
    if (
        worker.host != os.uname().nodename
        or worker.boot != boot()
        or start_time_of(worker.pid) != worker.born
    ):
        return
    if HAS_PROC:
        signal_exactly(worker.pid, int(worker.born), signum)
        return
    try:
        os.kill(worker.pid, signum)
    except OSError:
        return


def boot() -> str:
    """Return the id of this boot; empty where the system has none."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:  # not Linux
        return ""


def start_time_of(pid: int) -> str:
    """When a living process began; empty for none, and for one that ended and was not reaped."""
    if HAS_PROC:
        ticks = start_time(pid)
        return str(ticks) if ticks >= 0 else ""
    words = ["ps", "-o", "lstart=,stat=", "-p", str(pid)]
    output = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    moment, _, state = output.rpartition(" ")
    return "" if state.startswith("Z") else " ".join(moment.split())


CANCELLED = (128 + 1, 128 + 2, 128 + 15)
"""Exit codes of a planrun that a signal cancelled."""
_REASONS = {
    EXIT_FAILED: "a step failed",
    EXIT_INVALID: "the plan or an option is wrong, or the folder is taken; nothing ran",
    EXIT_DENIED: "denied, or not what was queued",
    EXIT_INTERNAL: "internal error",
    EXIT_RECORDS: "the records cannot be written",
    EXIT_DEADLINE: "its deadline passed",
}


class Outcome(Record):
    """The outcome of an entry, in the words of the queue."""

    status: str
    reason: str = ""
    exit_code: int | None = None
    size: int = 0


def of_code(code: int, rundir: str, *, stopped: bool) -> Outcome:
    """Return the outcome for an exit code, negative for a signal; `stopped`: the process was signalled."""
    if code == EXIT_OK:
        return Outcome(status="completed", exit_code=code)
    if code == EXIT_WAITING:
        return _waiting(rundir, "")
    if code in CANCELLED or (stopped and code < 0):
        return Outcome(status="cancelled", reason="cancelled", exit_code=code if code > 0 else 128 - code)
    if code < 0:
        reason = f"its process was ended by {signal_name(-code)}; to continue: planrun queue retry"
        return Outcome(status="failed", reason=reason, exit_code=128 - code)
    return Outcome(status="failed", reason=_REASONS.get(code, f"exit code {code}"), exit_code=code)


def of_ledger(rundir: str) -> Outcome | None:
    """Return the outcome by the ledger of a run without a process; None when it was interrupted."""
    reading = ledger_of(rundir)
    last = reading.events[-1] if reading and reading.events else None
    if isinstance(last, RunEnded):
        return of_code(last.exit_code, rundir, stopped=False)
    rests = resting_status(reading) if reading else ""
    return _waiting(rundir, rests) if rests else None


def began(rundir: str) -> bool:
    """Whether a run has recorded its start, so that it can be resumed."""
    reading = ledger_of(rundir)
    return reading is not None and bool(reading.events)


def ledger_of(rundir: str) -> Reading | None:
    """Return the ledger of a run; None when there is none."""
    try:
        return read_ledger(os.path.join(rundir, LEDGER)) if rundir else None
    except InvalidInput:
        return None


def rundir_of(folder: str, run: str) -> str:
    """Return the folder of a run; empty without a run."""
    return os.path.join(folder, HOME, RUNS, run) if run else ""


def size_of(rundir: str) -> int:
    """Return how long the ledger of a run is; 0 when there is none."""
    try:
        return os.path.getsize(os.path.join(rundir, LEDGER))
    except OSError:
        return 0


def _waiting(rundir: str, rests: str) -> Outcome:
    reading = None if rests else ledger_of(rundir)
    rests = rests or (resting_status(reading) if reading else "")
    reason = "paused; to continue: planrun queue retry" if rests == "paused" else "waits for an answer"
    return Outcome(status="waiting", reason=reason, exit_code=EXIT_WAITING, size=size_of(rundir))


def folder_of(workspace: str, entry: Entry) -> str:
    """Return the folder that an entry runs in."""
    return os.path.join(workspace, entry.added.folder)


def records_of(workspace: str, entry: Entry) -> str:
    """Return the folder of the records of an entry's run; empty when it has none."""
    return rundir_of(folder_of(workspace, entry), entry.run)


def is_lost(workspace: str, entry: Entry) -> bool:
    """Whether an entry counts as running without a process."""
    worker = entry.worker
    return worker is not None and not lives(worker, entry.run, folder_of(workspace, entry))


def settle(workspace: str, change: Change | PlaceChange, entry: Entry) -> None:
    """Record the outcome of an entry whose process is gone, by its run's ledger."""
    rundir = records_of(workspace, entry)
    at = SystemClock().stamp()
    outcome = of_ledger(rundir)
    event: QueueEvent
    if outcome:
        event = EntryEnded(at=at, entry=entry.number, **vars(outcome))
    elif entry.cancelling:
        event = EntryEnded(at=at, entry=entry.number, status="cancelled", reason="cancelled")
    else:
        run = entry.run if began(rundir) else ""
        event = EntryQueued(at=at, entry=entry.number, run=run, reason="its process was lost")
    change.add(event)


def has_moved(workspace: str, entry: Entry) -> bool:
    """Whether there is something new about an entry that waits: the ledger of its run is longer than it was."""
    ended = entry.ended if entry.status == "waiting" else None
    return ended is not None and size_of(records_of(workspace, entry)) != ended.size


def settle_resting(workspace: str, change: Change | PlaceChange, entry: Entry) -> None:
    """Update an entry whose run changed: it was answered or resumed."""
    rundir = records_of(workspace, entry)
    outcome = of_ledger(rundir)
    at = SystemClock().stamp()
    if outcome and outcome.status != "waiting":
        change.add(EntryEnded(at=at, entry=entry.number, **vars(outcome)))
    else:
        change.add(EntryQueued(at=at, entry=entry.number, run=entry.run, reason="it was answered"))
