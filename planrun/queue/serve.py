"""Start an entry of a queue: the words of its command, whether its plan is still the one queued, its process.

Run a queue: start entries and watch them until none is left or a signal ends the runner.
"""

from __future__ import annotations

import _signal
import os
import select
import time

from planrun.approval.control import refuse_steps
from planrun.clock import SystemClock
from planrun.errors import EXIT_FAILED, EXIT_OK, EXIT_WAITING, InvalidInput
from planrun.executors.wait import PAUSING, SignalInbox
from planrun.model.queue import EntryEnded, EntryStarted, QueuePaused
from planrun.model.record import Record
from planrun.queue.workers import (
    Gated,
    began,
    folder_of,
    has_moved,
    is_lost,
    of_code,
    of_ledger,
    records_of,
    send_signal,
    settle,
    settle_resting,
)
from planrun.records.lock import WorkspaceHeld, WorkspaceLock
from planrun.records.rundir import new_run_id
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.queue import Entry
    from planrun.queue.leases import Lease
    from planrun.records.queuefile import Change, QueueFile
    from planrun.records.queueplace import PlaceChange, QueuePlace

    AnyQueue = QueueFile | QueuePlace
    AnyChange = Change | PlaceChange

    from typing import Protocol

    from planrun.model.queue import Queue

    class Console(Protocol):
        """Where a runner prints its progress."""

        def line(self, text: str) -> None:
            """Print a line."""

        def output(self, path: str, start: int) -> None:
            """Show what an entry printed, from a place in its file on."""


EXECUTE_ONLY = frozenset(
    (
        *(
            "--param",
            "--only",
            "--from",
            "--until",
            "--skip",
            "--tag",
            "--skip-abstract",
            "--locked",
            "--watch",
        ),
        *("--shard", "--legs", "--timings"),
    )
)
"""Options of `execute` that a run keeps when it is resumed; `resume` lacks them, or gives them another meaning."""
PATIENCE = "24h"
"""How long an entry waits for a run in its folder that is not of this queue; --wait-lock overrides it."""
_WAIT = "--wait-lock"


class Command(Record):
    """The command of an entry; `variable`: the value of PLANRUN_QUEUED for its process."""

    verb: str
    run: str
    words: tuple[str, ...]
    variable: str = ""


def command_of(file: AnyQueue, entry: Entry) -> Command | str:
    """Return the command of an entry, or why it cannot start."""
    options = entry.added.options
    if not any(word.startswith(_WAIT) for word in options) and "PLANRUN_WAIT_LOCK" not in os.environ:
        options = (*options, f"{_WAIT}={PATIENCE}")
    if entry.run and began(records_of(file.workspace, entry)):
        kept = [word for word in options if word.partition("=")[0] not in EXECUTE_ONLY]
        return Command(verb="resume", run=entry.run, words=("resume", *kept, "--", entry.run))
    path = os.path.join(file.workspace, entry.added.plan)
    if entry.added.sha256:
        digest = sha256_of(path)
        if digest != entry.added.sha256:
            return "its plan was removed" if digest is None else "its plan changed since it was queued"
    run = new_run_id()
    folder = folder_of(file.workspace, entry)
    relative = os.path.relpath(path, folder)
    plan = os.path.abspath(path) if relative.split(os.sep, 1)[0] == ".." else relative
    variable = f"{run}:{entry.added.sha256}"
    return Command(verb="execute", run=run, words=("execute", *options, "--", plan), variable=variable)


def start(
    file: AnyQueue, change: AnyChange, entry: Entry, *, apart: bool, lease: Lease | None = None
) -> Gated | None:
    """Record that an entry starts and return its process, which waits to be released; None when it cannot start.

    `apart`: it runs beside others, so what it prints goes to a file of its own. `lease`: of a runner that shares the
    queue with other machines: the process ends when it runs out.
    """
    command = command_of(file, entry)
    at = SystemClock().stamp()
    if isinstance(command, str):
        change.add(EntryEnded(at=at, entry=entry.number, status="failed", reason=command))
        return None
    try:
        child = _spawn(file, entry, command, file.output(entry.number) if apart else "", lease)
    except OSError as error:
        reason = f"its process could not be made: {error.filename or 'sh'}: {error.strerror}"
        change.add(EntryEnded(at=at, entry=entry.number, status="failed", reason=reason))
        return None
    try:
        worker = dict(vars(child.worker if lease is None else lease.worker(child.worker, file.workspace)))
        change.add(EntryStarted(at=at, entry=entry.number, verb=command.verb, run=command.run, worker=worker))
    except BaseException:
        child.dismiss()
        raise
    return child


def _spawn(file: AnyQueue, entry: Entry, command: Command, path: str, lease: Lease | None) -> Gated:
    folder = folder_of(file.workspace, entry)
    if not path:
        return Gated(command.words, folder, command.variable, None, lease)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "ab") as output:
        return Gated(command.words, folder, command.variable, output, lease)


def sha256_of(path: str) -> str | None:
    """Return the SHA-256 of a file; None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return str(sha256(file.read()).hexdigest())
    except OSError:
        return None


# `_signal` and not `signal`, as in the executors.


_LOOK = 0.25
"""Seconds between two polls of the queue's file and of processes of other runners."""
_GRACE = 10.0
"""Seconds for a signalled planrun, which takes less than seven to end, before it is killed."""


class Runner:
    """The one process that starts the entries of a queue.

    `most`: how many run at once. `stays`: it waits for more when the queue is empty, until a signal comes.
    """

    def __init__(self, file: AnyQueue, console: Console, *, most: int = 1, stays: bool = False) -> None:
        self._file = file
        self._console = console
        self._most = most
        self._stays = stays
        self._inbox = SignalInbox()
        self._own: dict[int, tuple[Gated, int]] = {}  # with the size of their output before
        self._seen: dict[int, str] = {}  # what entries became while this runner looked after them
        self._signum = 0
        self._deadline = 0.0
        self._stamp = (-1, -1)
        self._queue: Queue = file.read()
        self._lease: Lease | None = None  # None: no other machine works on this queue

    def run(self) -> int:
        """Work until nothing is left to do, and return the exit code.

        Raises InvalidInput when another runner works on this queue, Denied inside of a step, RecordsLost.
        """
        refuse_steps("run a queue: do it from another shell")
        lock = WorkspaceLock(self._file.folder)
        own = f"process {os.getpid()} on {os.uname().nodename}, since {SystemClock().stamp()}"
        try:
            lock.acquire(own)
        except WorkspaceHeld as held:
            raise InvalidInput(f"another planrun works on this queue: {held.holder}") from None
        try:
            with self._inbox:
                self._inbox.catch_children()
                return self._serve()
        finally:
            self._abandon()
            lock.release()

    def _serve(self) -> int:
        while True:
            for signum in self._inbox.take():
                self._obey(signum)
            self._refresh()
            self._reap()
            self._look_after()
            if not self._signum:
                self._start()
            self._refresh()
            if self._is_over():
                return self._code()
            select.select([self._inbox.fd], [], [], _LOOK)
            self._insist()

    def _refresh(self) -> None:
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._queue = self._file.read()
            self._stamp = stamp

    def _obey(self, signum: int) -> None:
        """Pass a signal on to all running entries, each time it comes."""
        if signum == PAUSING:
            with self._file.change() as change:
                change.add(QueuePaused(at=SystemClock().stamp()))
            return
        self._signum = self._signum or signum
        self._deadline = self._deadline or time.monotonic() + _GRACE
        for entry in self._running():
            if entry.worker:
                send_signal(entry.worker, signum)

    def _insist(self) -> None:
        """Kill what does not end; its guardian kills its steps."""
        if self._deadline and time.monotonic() > self._deadline:
            for entry in self._running():
                if entry.worker:
                    send_signal(entry.worker, _signal.SIGKILL)

    def _running(self) -> list[Entry]:
        return [entry for entry in self._queue.entries.values() if entry.status == "running"]

    def _reap(self) -> None:
        """Record the end of our own processes."""
        for number, (child, shown) in list(self._own.items()):
            code = child.process.poll()
            if code is None:
                continue
            with self._file.change() as change:
                entry = change.queue.entries[number]
                rundir = records_of(self._file.workspace, entry)
                stopped = entry.cancelling or bool(self._signum)
                # Killed while it ended, it may have recorded its end already.
                outcome = (of_ledger(rundir) if code < 0 else None) or of_code(code, rundir, stopped=stopped)
                change.add(EntryEnded(at=SystemClock().stamp(), entry=number, **vars(outcome)))
            self._release(number)
            if self._most > 1:
                self._console.output(self._file.output(number), shown)
            self._tell_end(entry)

    def _release(self, number: int) -> None:
        child, _ = self._own.pop(number)
        child.close()

    def _look_after(self) -> None:
        """Update entries of other runners' processes, and waiting runs that may have been answered."""
        for entry in list(self._queue.entries.values()):
            if entry.status == "running" and entry.number not in self._own:
                if is_lost(self._file.workspace, entry):
                    self._settle(entry)
            elif has_moved(self._file.workspace, entry):
                with self._file.change() as change:
                    now = change.queue.entries.get(entry.number)
                    if now is not None and has_moved(self._file.workspace, now):
                        settle_resting(self._file.workspace, change, now)
        self._refresh()

    def _settle(self, entry: Entry) -> None:
        with self._file.change() as change:
            now = change.queue.entries.get(entry.number)
            if now is None or not is_lost(self._file.workspace, now):
                return
            settle(self._file.workspace, change, now)
        self._tell_end(now)

    def _start(self) -> None:
        running = self._running()
        free = self._most - len(running)
        taken = {self._folder(entry) for entry in running}
        for entry in list(self._queue.startable()):
            if free <= 0:
                return
            folder = self._folder(entry)
            if folder not in taken and self._begin(entry.number):
                taken.add(folder)
                free -= 1

    def _folder(self, entry: Entry) -> str:
        return os.path.realpath(folder_of(self._file.workspace, entry))

    def _begin(self, number: int) -> bool:
        """Start an entry, unless it was cancelled, paused or cleared at this moment; return whether it runs."""
        output = self._file.output(number)
        shown = os.path.getsize(output) if os.path.exists(output) else 0
        child: Gated | None = None
        try:
            with self._file.change() as change:
                entry = change.queue.entries.get(number)
                if entry is None or entry.status != "queued" or change.queue.paused:
                    return False
                child = start(self._file, change, entry, apart=self._most > 1, lease=self._lease)
        except BaseException:
            if child:  # its start is not recorded
                child.dismiss()
            raise
        if child is None:
            self._tell_end(entry)
            return False
        self._own[number] = (child, shown)
        self._console.line(f"{_named(entry)}: started, run {entry.run}")
        child.release()
        return True

    def _tell_end(self, entry: Entry) -> None:
        self._seen[entry.number] = entry.status
        reason = f": {entry.reason}" if entry.reason else ""
        self._console.line(f"{_named(entry)}: {entry.status}{reason}")

    def _is_over(self) -> bool:
        if self._own or self._running():
            return False
        return bool(self._signum) or not (self._stays or any(self._queue.startable()))

    def _code(self) -> int:
        """Return the exit code: of the signal, or of the worst outcome of the entries."""
        statuses = self._queue.statuses()
        if self._signum:
            return 128 + self._signum
        outcomes = {statuses.get(number, status) for number, status in self._seen.items()}
        if {"failed", "cancelled", "lost"} & outcomes or "blocked" in statuses.values():
            return EXIT_FAILED
        return EXIT_WAITING if {"waiting", "queued"} & set(statuses.values()) else EXIT_OK

    def _abandon(self) -> None:
        """End running entries when the queue cannot be run: no process would watch them."""
        limit = time.monotonic() + _GRACE
        for child, _ in self._own.values():
            child.process.terminate()
        for child, _ in self._own.values():
            try:
                child.process.wait(max(0.0, limit - time.monotonic()))
            except Exception:  # noqa: BLE001 - whatever keeps us from waiting, it must not outlive us
                child.process.kill()


def _named(entry: Entry) -> str:
    where = "" if entry.added.folder == "." else f" in {entry.added.folder}"
    return f"entry {entry.number}, {entry.added.plan}{where}"
