"""Add a plan to a queue: checked as if it ran, and bound to the bytes that it has now.

Commands on entries of a queue: cancel, retry, pause, resume, clear.
"""

from __future__ import annotations

import _signal
import os
import time

from planrun.app.run import secrets_of
from planrun.approval.control import refuse_steps
from planrun.clock import SystemClock
from planrun.errors import InvalidInput
from planrun.model.queue import (
    EntryAdded,
    EntryCancelling,
    EntryEnded,
    EntryQueued,
    QueuePaused,
    QueueResumed,
)
from planrun.model.record import Record
from planrun.plan.keys.params import parse_params
from planrun.plan.load import load
from planrun.queue.workers import is_lost, send_signal, settle
from planrun.records.queueplace import QueuePlace, until_done
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from planrun.model.plan import Plan
    from planrun.model.queue import Entry, Queue
    from planrun.queue.serve import AnyQueue

MOST = 100_000
"""Entries of one queue, and how far priorities go in both directions: more are a mistake."""


class QueueRequest(Record):
    """A request to queue a plan; `plan` and `folder` as given, `options` as words of `execute`."""

    plan: str
    options: tuple[str, ...] = ()
    params: tuple[str, ...] = ()  # those among the options, to be checked
    folder: str = ""
    priority: int = 0
    after: tuple[int, ...] = ()
    track: bool = False  # run the content of the file at its start
    repeatable: bool = False  # start it again when its machine is lost


def add(file: AnyQueue, request: QueueRequest) -> EntryAdded:
    """Queue a plan, and return its entry; raises InvalidInput, InvalidPlan, Denied inside of a step, RecordsLost."""
    refuse_steps("change a queue: queued plans run without approval, so do it from another shell")
    folder = os.path.abspath(request.folder or file.workspace)
    if not os.path.isdir(folder):
        raise InvalidInput(f"no such folder: {request.folder}")
    plan = load(request.plan)
    _check_params(plan, request)
    added = EntryAdded(
        at=SystemClock().stamp(),
        entry=0,
        plan=_within(request.plan, file.workspace),
        folder=_within(folder, file.workspace),
        options=request.options,
        priority=request.priority,
        after=tuple(dict.fromkeys(request.after)),
        sha256="" if request.track else sha256(plan.source).hexdigest(),
        **({"repeatable": True} if request.repeatable else {}),
    )
    if isinstance(file, QueuePlace):
        outside = next((path for path in (added.plan, added.folder) if os.path.isabs(path)), "")
        if outside:
            raise InvalidInput(
                f"{outside} is not in this folder, so other machines of the queue cannot find it"
            )
    elif added.repeatable:
        raise InvalidInput("--repeatable is for a queue that machines share: add --at URL")
    once = [step.id for step in plan.everything() if not step.idempotent] if added.repeatable else []
    if once:
        raise InvalidInput(
            f"--repeatable: steps with `idempotent: false` must not run twice: {', '.join(once)}"
        )

    def append() -> EntryAdded:
        with file.change() as change:
            _check_after(change.queue, request.after)
            if len(change.queue.entries) >= MOST:
                raise InvalidInput(
                    f"the queue has {MOST} entries; planrun queue clear removes those that ended"
                )
            numbered = added.but(entry=change.queue.last + 1)
            change.add(numbered)
        return numbered

    return until_done(append)


def _check_params(plan: Plan, request: QueueRequest) -> None:
    if not (plan.params or request.params):
        return
    secrets = secrets_of(plan)
    if secrets:  # they would stand in the queue's file
        secrets.refuse_given(request.params)
    parse_params(plan, request.params)


def _check_after(queue: Queue, after: tuple[int, ...]) -> None:
    """Refuse entries that are not there: nothing that waits for one would ever start."""
    for number in after:
        if number not in queue.entries:
            known = ", ".join(map(str, list(queue.entries)[-5:])) or "none"
            raise InvalidInput(f"--after {number}: no such entry in the queue; the newest are: {known}")


def _within(path: str, workspace: str) -> str:
    """Return a path from the workspace when it lies there, so that it can be moved as a whole, else an absolute one."""
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute, workspace)
    return absolute if relative.split(os.sep, 1)[0] == ".." else relative


# `_signal` and not `signal`, as in the executors: these are the signals that planrun handles.


PAUSE = 0.05
"""Seconds between two polls of the queue."""
_SHARED_PAUSE = 0.5  # and of one that machines share
_SLACK = 2.0
"""Seconds for the runner, which sees its process end first, to record the end of an entry."""
_REFUSAL = "change a queue: do it from another shell"


def cancel(file: AnyQueue, number: int) -> str:
    """Cancel an entry, and return its status; a running one is signalled as by Ctrl-C, and waited for.

    Raises InvalidInput for one that is not there or has ended, Denied inside of a step, RecordsLost.
    """
    refuse_steps(_REFUSAL)
    entry = until_done(lambda: _cancelled(file, number))
    if entry.status != "running":
        return entry.status
    if isinstance(file, QueuePlace):  # its runner sees it
        return _await_shared_end(file, number)
    if entry.worker:
        send_signal(entry.worker, _signal.SIGTERM)
    return _await_end(file, number)


def _cancelled(file: AnyQueue, number: int) -> Entry:
    """Record that an entry is cancelled, or that it shall be, where it runs."""
    at = SystemClock().stamp()
    with file.change() as change:
        entry = _entry(change.queue, number)
        status = change.queue.statuses()[number]
        if status in ("completed", "failed", "cancelled"):
            raise InvalidInput(f"entry {number} is {status} already")
        if status == "running":
            change.add(EntryCancelling(at=at, entry=number))
        else:
            reason = "cancelled; its run can go on" if entry.run else "cancelled before it began"
            change.add(EntryEnded(at=at, entry=number, status="cancelled", reason=reason))
    return entry


def _await_shared_end(file: QueuePlace, number: int) -> str:
    """Wait until the runner of an entry has ended it, or its lease is over."""
    from planrun.queue.leases import Watch  # few queues are shared
    from planrun.queue.sharing import still_lives

    watch = Watch(file.place)
    while True:
        entry = _entry(file.read(), number)
        worker = entry.worker
        if worker is None:
            return entry.status
        if watch.is_over(worker.runner, worker.lease) and not still_lives(file, entry):
            until_done(lambda: _settled(file, number))
        time.sleep(_SHARED_PAUSE)


def _settled(file: QueuePlace, number: int) -> None:
    from planrun.queue.sharing import settle_lost  # few queues are shared

    with file.change() as change:
        entry = _entry(change.queue, number)
        if entry.status == "running":
            settle_lost(file, change, entry)


def _await_end(file: AnyQueue, number: int) -> str:
    """Wait until an entry has ended; record its end here when no runner does."""
    gone = 0.0
    while True:
        entry = _entry(file.read(), number)
        if entry.status != "running":
            return entry.status
        if is_lost(file.workspace, entry):
            gone = gone or time.monotonic()
            if time.monotonic() - gone > _SLACK:
                with file.change() as change:
                    entry = _entry(change.queue, number)
                    if entry.status == "running" and is_lost(file.workspace, entry):
                        settle(file.workspace, change, entry)
        time.sleep(PAUSE)


def retry(file: AnyQueue, numbers: Collection[int]) -> None:
    """Queue failed, cancelled or waiting entries again: a started run continues, otherwise it starts.

    Raises InvalidInput when one is not there or needs none, Denied inside of a step, RecordsLost.
    """
    refuse_steps(_REFUSAL)
    until_done(lambda: _retry(file, numbers))


def _retry(file: AnyQueue, numbers: Collection[int]) -> None:
    at = SystemClock().stamp()
    with file.change() as change:
        statuses = change.queue.statuses()
        for number in numbers:
            _entry(change.queue, number)
            if statuses[number] == "blocked":
                held = ", ".join(map(str, change.queue.before(change.queue.entries[number], statuses)))
                raise InvalidInput(f"entry {number} is blocked: retry what blocks it: {held}")
            if statuses[number] not in ("failed", "cancelled", "waiting", "lost"):
                raise InvalidInput(f"entry {number} is {statuses[number]}: there is nothing to retry")
        for number in numbers:
            entry = change.queue.entries[number]
            run = "" if entry.status == "lost" else entry.run  # a person has looked: it starts again
            change.add(EntryQueued(at=at, entry=number, run=run, reason="retried"))


def pause(file: AnyQueue) -> bool:
    """Pause the queue; returns whether it was not paused. Raises Denied inside of a step, RecordsLost."""
    return until_done(lambda: _hold(file, on=True))


def resume(file: AnyQueue) -> bool:
    """Resume the queue; returns whether it was paused. Raises Denied inside of a step, RecordsLost."""
    return until_done(lambda: _hold(file, on=False))


def _hold(file: AnyQueue, *, on: bool) -> bool:
    refuse_steps(_REFUSAL)
    at = SystemClock().stamp()
    with file.change() as change:
        if change.queue.paused == on:
            return False
        change.add(QueuePaused(at=at) if on else QueueResumed(at=at))
    return True


def clear(file: AnyQueue, *, everything: bool) -> int:
    """Remove ended entries, or all that are not running; returns how many.

    An entry is kept while a remaining one comes after it. Runs and their records are kept. Raises Denied inside of
    a step, RecordsLost.
    """
    refuse_steps(_REFUSAL)
    return until_done(lambda: _clear(file, everything=everything))


def _clear(file: AnyQueue, *, everything: bool) -> int:
    with file.change() as change:
        queue = change.queue
        gone = [
            number
            for number, entry in queue.entries.items()
            if (
                entry.status != "running"
                if everything
                else entry.status in ("completed", "failed", "cancelled")
            )
        ]
        kept = [entry for number, entry in queue.entries.items() if number not in set(gone)]
        needed = {number for entry in kept for number in entry.added.after}
        while more := [number for number in gone if number in needed]:
            gone = [number for number in gone if number not in needed]
            needed |= {before for number in more for before in queue.entries[number].added.after}
        if gone:
            change.forget(gone)
    return len(gone)


def _entry(queue: Queue, number: int) -> Entry:
    entry = queue.entries.get(number)
    if entry is None:
        raise InvalidInput(f"no entry {number} in the queue of this folder")
    return entry
