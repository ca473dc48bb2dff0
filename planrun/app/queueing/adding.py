"""Add a plan to a queue: checked as if it ran, and bound to the bytes that it has now."""

from __future__ import annotations

import os

from planrun.app.insiders import refuse_steps
from planrun.app.running import vault_of
from planrun.clock import SystemClock
from planrun.errors import InvalidInput
from planrun.model.queued import EntryAdded
from planrun.model.record import Record
from planrun.sha256 import sha256
from planrun.source.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Plan
    from planrun.model.queued import Queue
    from planrun.records.queuefile import QueueFile

MOST = 100_000
"""Entries of one queue, and how far priorities go in both directions: more are a mistake."""


class Wish(Record):
    """What somebody wants to be run; `plan` and `folder` as given, `options` as words of `execute`."""

    plan: str
    options: tuple[str, ...] = ()
    params: tuple[str, ...] = ()  # those among the options, to be checked
    folder: str = ""
    priority: int = 0
    after: tuple[int, ...] = ()
    track: bool = False  # run what the file holds when its turn comes


def add(file: QueueFile, wish: Wish) -> EntryAdded:
    """Queue a plan and return its entry; raises InvalidInput, InvalidPlan, Denied inside of a step, RecordsLost."""
    refuse_steps("change a queue: what is queued runs unasked, so queue it from another shell")
    folder = os.path.abspath(wish.folder or file.workspace)
    if not os.path.isdir(folder):
        raise InvalidInput(f"no such folder: {wish.folder}")
    plan = load(wish.plan)
    _check_params(plan, wish)
    with file.change() as change:
        _check_after(change.queue, wish.after)
        if len(change.queue.entries) >= MOST:
            raise InvalidInput(
                f"the queue has {MOST} entries; planrun queue clear takes away those that ended"
            )
        added = EntryAdded(
            at=SystemClock().stamp(),
            entry=change.queue.last + 1,
            plan=_within(wish.plan, file.workspace),
            folder=_within(folder, file.workspace),
            options=wish.options,
            priority=wish.priority,
            after=tuple(dict.fromkeys(wish.after)),
            sha256="" if wish.track else sha256(plan.source).hexdigest(),
        )
        change.add(added)
    return added


def _check_params(plan: Plan, wish: Wish) -> None:
    if not (plan.params or wish.params):
        return
    from planrun.source.params import parse_params

    vault = vault_of(plan)
    if vault:  # they would stand in the queue's file
        vault.refuse_given(wish.params)
    parse_params(plan, wish.params)


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
