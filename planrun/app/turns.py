"""The turn of a run whose plan says `concurrency`: one of that name at a time on this host, in the order they came."""

from __future__ import annotations

import os
import select
import sys
import time

from planrun.app.copies import state_of
from planrun.errors import Interrupted, InvalidInput
from planrun.executors.ending import signal_name
from planrun.executors.signals import PAUSING
from planrun.records.hostlocks import HostLocks
from planrun.records.reading import read_ledger
from planrun.records.rundir import LEDGER
from planrun.reports.screen import Screen
from planrun.source.forms import as_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.session import Session
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
