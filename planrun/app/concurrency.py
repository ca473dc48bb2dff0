"""The turn of a run whose plan says `concurrency`: one of that name at a time on this host, in the order they came.

Wait for the workspace that another run holds, as `--wait-lock` asks for.
"""

from __future__ import annotations

import os
import select
import sys
import time

from planrun.app.copies import state_of
from planrun.errors import Interrupted, InvalidInput
from planrun.executors.exits import signal_name
from planrun.executors.wait import PAUSING
from planrun.plan.schema.forms import as_duration
from planrun.records.hostlocks import HostLocks
from planrun.records.lock import WorkspaceHeld
from planrun.records.reading import read_ledger
from planrun.records.rundir import LEDGER
from planrun.reports.screen import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.app.session import Session
    from planrun.executors.wait import SignalInbox
    from planrun.model.plan import Plan

KIND = "plan"
"""Names of runs are no names of steps' locks."""


def take_turn(session: Session, plan: Plan, run: str) -> None:
    """Wait until no other run of this name goes on, as long as --wait-lock or else the plan's deadline allows.

    It comes before the workspace is taken, so that nobody who waits keeps others from working in a folder. Raises
    InvalidInput when the time is over, Interrupted when a signal comes, RecordsLost.
    """
    session.turn = turn = HostLocks(run, {})
    patience = session.settings.wait_lock
    limit = as_duration(patience) if patience else plan.limits.deadline
    until = None if limit is None else time.monotonic() + limit
    screen, said = Screen(sys.stderr), ""
    while told := turn.claim("", (plan.concurrency,), kind=KIND):
        if until is not None and time.monotonic() >= until:
            raise InvalidInput(f"this run did not get its turn in {limit:g} s: {told}; nothing ran")
        if told != said:
            screen.write(f"planrun: {told}\n")
            said = told
        left = turn.patience if until is None else min(turn.patience, max(0.0, until - time.monotonic()))
        select.select([session.inbox.fd], [], [], left)
        for signum in session.inbox.take():
            if signum != PAUSING:  # there is no run yet that could be paused
                raise Interrupted(signum, f"ended by {signal_name(signum)} while {told}; nothing ran")


def take_turn_again(session: Session, rundir: str, plan: Plan | None) -> None:
    """The same for a run that goes on, with the plan that it goes on with: a new one, or the newest that it keeps."""
    plan = plan or state_of(rundir, read_ledger(os.path.join(rundir, LEDGER))).plan
    if plan.concurrency:
        take_turn(session, plan, os.path.basename(rundir))


PAUSE = 0.1
"""Seconds between two tries: a lock of this kind tells nobody that it is free."""


def wait(acquire: Callable[[], object], held: WorkspaceHeld, patience: str, inbox: SignalInbox) -> None:
    """Try again until the workspace is free; says once on stderr for whom it waits.

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
