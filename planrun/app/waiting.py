"""Wait for the workspace that another run holds, as `--wait-lock` asks for."""

from __future__ import annotations

import select
import sys
import time

from planrun.errors import Interrupted, InvalidInput
from planrun.executors.ending import signal_name
from planrun.executors.signals import PAUSING
from planrun.records.lock import WorkspaceHeld
from planrun.reports.screen import Screen
from planrun.source.forms import as_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.executors.signals import SignalInbox

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
