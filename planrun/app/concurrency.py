"""Wait for the concurrency group of a run, and for a workspace that another run holds (`--wait-lock`).

`concurrency: NAME` in a plan: one run per name is active on this host, in the order of arrival.
"""

from __future__ import annotations

import select
import sys
import time

from planrun.errors import Interrupted, InvalidInput
from planrun.executors.attempt import signal_name
from planrun.executors.wait import PAUSING
from planrun.plan.schema.forms import as_duration
from planrun.records.hostlocks import HostLocks
from planrun.records.lock import WorkspaceHeld
from planrun.reports.screen import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.executors.wait import SignalInbox
    from planrun.model.plan import Plan

KIND = "plan"
"""Keeps names of concurrency groups apart from names of steps' locks."""


def claim_group(plan: Plan, run: str, wait_lock: str, inbox: SignalInbox) -> HostLocks:
    """Wait until no other run of the plan's concurrency group is active, and return the lock that the run then holds.

    `wait_lock` limits the wait; when it is empty, the plan's deadline does. A run waits here before it claims the
    workspace, so that a waiting run blocks no other in its folder. Raises InvalidInput when the time is over,
    Interrupted when a signal arrives, RecordsLost.
    """
    lock = HostLocks(run, {})
    try:
        limit = as_duration(wait_lock) if wait_lock else plan.limits.deadline
        until = None if limit is None else time.monotonic() + limit
        screen, shown = Screen(sys.stderr), ""
        while reason := lock.claim("", (plan.concurrency,), kind=KIND):
            if until is not None and time.monotonic() >= until:
                raise InvalidInput(
                    f"the concurrency group was not free within {limit:g} s: {reason}; nothing ran"
                )
            if reason != shown:
                screen.write(f"planrun: {reason}\n")
                shown = reason
            left = (
                lock.retry_after
                if until is None
                else min(lock.retry_after, max(0.0, until - time.monotonic()))
            )
            select.select([inbox.fd], [], [], left)
            for signum in inbox.take():
                if signum != PAUSING:  # there is no run yet that could be paused
                    raise Interrupted(signum, f"ended by {signal_name(signum)} while {reason}; nothing ran")
    except BaseException:
        lock.close()
        raise
    return lock


PAUSE = 0.1
"""Seconds between two tries: a lock of this kind sends no notification when it is free."""


def wait(acquire: Callable[[], object], held: WorkspaceHeld, patience: str, inbox: SignalInbox) -> None:
    """Try again until the workspace is free; prints the holder once to stderr.

    `patience` is a duration such as `5m`; `inbox` is open. Raises InvalidInput naming the holder when the time is
    over, Interrupted when a signal comes.
    """
    limit = time.monotonic() + as_duration(patience)
    Screen(sys.stderr).write(f"planrun: waiting up to {patience} for this workspace: {held.holder}\n")
    while True:
        left = limit - time.monotonic()
        if left <= 0:
            raise InvalidInput(f"another run has held this workspace for {patience}: {held.holder}")
        select.select([inbox.fd], [], [], min(PAUSE, left))
        for signum in inbox.take():
            if signum == PAUSING:  # there is no run yet that could be paused
                continue
            message = f"ended by {signal_name(signum)} while it waited for this workspace; nothing ran"
            raise Interrupted(signum, message)
        try:
            acquire()
        except WorkspaceHeld as error:
            held = error
        else:
            return


def ways(holder: str) -> str:
    """Return the rows below a refusal: what can be done about the run that holds the workspace."""
    word, _, rest = holder.partition(" ")
    if word != "run":  # a queue, or a verb that deletes runs
        return "\n  to wait for it: --wait-lock 10m"
    run = rest.partition(",")[0]
    return (
        "\n  to wait for it: --wait-lock 10m"
        f"\n  to watch it: planrun logs {run} --follow"
        f"\n  to end it: planrun cancel {run}"
    )
