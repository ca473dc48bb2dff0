"""Run a queue together with other machines: leases instead of one lock, and what becomes of entries of a lost machine.

An entry is taken by the event of its start, which one machine alone can write. Its planrun has a keeper, which ends it
before the runner's lease is over. Only then does another machine look at the entry: it continues the run where it can
see the records, starts a repeatable entry again, and leaves any other one, as `lost`, to a person.
"""

from __future__ import annotations

import _signal
import os
import select
import time

from planrun.clock import SystemClock
from planrun.errors import PlanrunError, RemoteError
from planrun.executors.scan import signal_exactly
from planrun.model.queue import EntryEnded, EntryQueued
from planrun.queue.leases import Lease, Watch, lease_seconds, now
from planrun.queue.serve import Runner, sha256_of
from planrun.queue.workers import (
    began,
    boot,
    folder_of,
    has_moved,
    of_code,
    of_ledger,
    records_of,
    send_signal,
    settle,
    settle_resting,
    start_time_of,
)
from planrun.records.lock import holder
from planrun.records.machine import machine
from planrun.records.queueplace import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.queue import Entry, Worker
    from planrun.queue.serve import Console
    from planrun.records.queueplace import PlaceChange, QueuePlace

_LOOK = 0.25  # seconds between two looks at processes
_POLL = {False: 0.25, True: 1.0}  # and at the place: at a folder, at a URL


def settle_lost(file: QueuePlace, change: PlaceChange, entry: Entry) -> None:
    """Record what becomes of an entry whose runner's lease is over and whose process does not live."""
    worker = entry.worker
    assert worker is not None
    if is_ours(file, worker) or began(records_of(file.workspace, entry)):
        settle_here(file, change, entry)
        return
    at = SystemClock().stamp()
    if entry.cancelling:
        change.add(
            EntryEnded(at=at, entry=entry.number, status="cancelled", reason="cancelled; its machine is lost")
        )
    elif entry.added.repeatable:
        reason = f"{worker.host} is lost, and the entry is repeatable"
        change.add(EntryQueued(at=at, entry=entry.number, reason=reason))
    else:
        reason = f"{worker.host} is lost; look there what run {entry.run} did, then planrun queue retry"
        change.add(EntryEnded(at=at, entry=entry.number, status="lost", reason=reason))


def settle_here(file: QueuePlace, change: PlaceChange, entry: Entry) -> None:
    """Record the outcome of an entry by the records of its run, which are here.

    A run that no person cancelled was ended by its keeper: it continues.
    """
    outcome = of_ledger(records_of(file.workspace, entry))
    if outcome and outcome.status == "cancelled" and not entry.cancelling:
        reason = "the lease of its machine ran out"
        change.add(EntryQueued(at=SystemClock().stamp(), entry=entry.number, run=entry.run, reason=reason))
    else:
        settle(file.workspace, change, entry)


def is_ours(file: QueuePlace, worker: Worker) -> bool:
    """Return whether a process was started on this machine in this workspace, so that its records would be here."""
    return worker.host == machine() and worker.folder == os.path.realpath(file.workspace)


def still_lives(file: QueuePlace, entry: Entry) -> bool:
    """Return whether a process works on an entry, as far as it can be seen here; on this machine it is killed."""
    worker = entry.worker
    if worker is None:
        return False
    if worker.host == machine() and worker.boot == boot():
        alive = start_time_of(worker.pid) == worker.born
        if alive:  # it stalled with its keeper: the lease is over, and it may not go on
            signal_exactly(worker.pid, int(worker.born), _signal.SIGKILL)
        return alive
    held = holder(folder_of(file.workspace, entry))
    return held is not None and held.run == entry.run


class SharedRunner(Runner):
    """One of several runners of a queue."""

    def __init__(self, file: QueuePlace, console: Console, *, most: int = 1, stays: bool = False) -> None:
        super().__init__(file, console, most=most, stays=stays)
        file.prepare()
        self._shared = file
        self._lease: Lease = Lease(file.place, lease_seconds())
        self._watch = Watch(file.place)
        self._polled = 0.0
        self._is_lapsed = False  # no sign of life could be given in time
        self._trouble = ""
        self._skipped: dict[int, str] = {}  # entries that cannot start here, and why
        self._signalled: set[int] = set()  # entries that were cancelled

    def _serve(self) -> int:
        try:
            while True:
                try:
                    code = self._turn()
                except Conflict:  # another machine was first: look again
                    self._polled = 0.0
                    continue
                except RemoteError as error:
                    self._report(str(error))
                    code = None
                if code is not None:
                    return code
                select.select([self._inbox.fd], [], [], _LOOK)
                self._insist()
        finally:
            self._leave()

    def _turn(self) -> int | None:
        for signum in self._inbox.take():
            self._obey(signum)
        self._sign()
        self._refresh()
        self._reap()
        self._look_after()
        self._refresh()
        if not self._signum:
            self._start()
        self._refresh()
        self._report("")
        return self._code() if self._is_over() else None

    def _leave(self) -> None:
        try:
            self._lease.end()
        except PlanrunError:
            return

    def _report(self, trouble: str) -> None:
        if trouble and not self._trouble:
            self._console.line(f"warning: {trouble}; trying again")
        elif self._trouble and not trouble:
            self._console.line("the queue answers again")
        self._trouble = trouble

    def _sign(self) -> None:
        """Give a sign of life, and tell the keepers of it."""
        if not self._lease.is_due:
            return
        before = self._lease.signed
        self._lease.sign()
        self._is_lapsed = bool(before) and now() - before >= self._lease.seconds / 2
        for child, _ in self._own.values():
            child.sign(self._lease.signed)

    def _refresh(self) -> None:
        moment = time.monotonic()
        if moment - self._polled >= _POLL["://" in self._shared.place.url]:
            super()._refresh()
            self._polled = moment

    def _running(self) -> list[Entry]:
        entries = [self._queue.entries.get(number) for number in self._own]
        return [entry for entry in entries if entry is not None]

    def _is_mine(self, entry: Entry | None) -> bool:
        worker = entry.worker if entry else None
        return worker is not None and worker.runner == self._lease.runner

    def _reap(self) -> None:
        """Record the end of our own processes, unless another machine has the entry by now."""
        for number, (child, shown) in list(self._own.items()):
            code = child.process.poll()
            if code is None:
                continue
            with self._shared.change() as change:
                entry = change.queue.entries.get(number)
                mine = entry is not None and self._is_mine(entry)
                if entry is not None and mine:
                    rundir = records_of(self._file.workspace, entry)
                    stopped = entry.cancelling or bool(self._signum)
                    outcome = (of_ledger(rundir) if code < 0 else None) or of_code(
                        code, rundir, stopped=stopped
                    )
                    at = SystemClock().stamp()
                    late = self._is_lapsed or now() - self._lease.signed >= self._lease.seconds / 2
                    if (
                        late
                        and not stopped
                        and outcome.status in ("cancelled", "failed")
                        and code in (*_ENDED, 128 + 15)
                    ):
                        run = entry.run if began(rundir) else ""
                        change.add(
                            EntryQueued(at=at, entry=entry.number, run=run, reason="its lease ran out")
                        )
                    else:
                        change.add(EntryEnded(at=at, entry=entry.number, **vars(outcome)))
            self._polled = 0.0
            self._release(number)
            self._signalled.discard(number)
            if self._most > 1:
                self._console.output(self._file.output(number), shown)
            if entry is None or not mine:
                self._console.line(f"entry {number}: the lease was over; its result does not count")
            else:
                self._tell_end(entry)

    def _look_after(self) -> None:
        for entry in list(self._queue.entries.values()):
            number = entry.number
            if number in self._own:
                if entry.cancelling and number not in self._signalled and entry.worker:
                    self._signalled.add(number)
                    send_signal(entry.worker.but(host=os.uname().nodename), _signal.SIGTERM)
            elif entry.status == "running":
                self._settle_if_lost(entry)
            elif began(records_of(self._file.workspace, entry)) and (
                entry.status == "lost" or has_moved(self._file.workspace, entry)
            ):
                self._settle_resting(number)

    def _settle_if_lost(self, entry: Entry) -> None:
        worker = entry.worker
        if worker is None:
            return
        mine = worker.runner == self._lease.runner  # its start was recorded, and nothing was started
        if not mine and not self._watch.is_over(worker.runner, worker.lease or self._lease.seconds):
            return
        if not mine and still_lives(self._shared, entry):
            return
        with self._shared.change() as change:
            current = change.queue.entries.get(entry.number)
            if current is None or current.worker != worker:
                return
            settle_lost(self._shared, change, current)
        self._tell_end(current)
        self._polled = 0.0

    def _settle_resting(self, number: int) -> None:
        """Update a lost entry whose records are here after all, or a waiting one whose run changed."""
        with self._shared.change() as change:
            entry = change.queue.entries.get(number)
            if entry is None or entry.status not in ("lost", "waiting"):
                return
            held = holder(folder_of(self._file.workspace, entry))
            if held is not None and held.run == entry.run:
                return
            if entry.status == "lost":
                settle_here(self._shared, change, entry)
            elif has_moved(self._file.workspace, entry):
                settle_resting(self._file.workspace, change, entry)
        self._polled = 0.0

    def _begin(self, number: int) -> bool:
        """Start an entry that can start on this machine, once the lease is fresh enough."""
        entry = self._queue.entries[number]
        if entry.run:
            here = began(records_of(self._file.workspace, entry))
            why = "" if here else f"the records of its run {entry.run} are not here"
        elif not os.path.isdir(folder_of(self._file.workspace, entry)):
            why = f"there is no folder {entry.added.folder}"
        else:
            digest = sha256_of(os.path.join(self._file.workspace, entry.added.plan))
            if digest is None:
                why = f"there is no {entry.added.plan}"
            else:
                differs = entry.added.sha256 and digest != entry.added.sha256
                why = f"{entry.added.plan} is another one here" if differs else ""
        if why:
            if self._skipped.get(number) != why:
                self._skipped[number] = why
                self._console.line(f"entry {number}: left to other machines: {why}")
            return False
        self._skipped.pop(number, None)
        return super()._begin(number)

    def _is_over(self) -> bool:
        if self._own:
            return False
        can_start = [entry for entry in self._queue.startable() if entry.number not in self._skipped]
        return bool(self._signum) or not (self._stays or can_start)


_ENDED = (-_signal.SIGTERM, -_signal.SIGKILL)  # how a keeper ends what it keeps
