"""Follow the ledger of a run and send its spans as they end, until planrun has ended and all is sent.

The ledger is read, nothing of planrun's process: what is in it is masked, and a slow collector delays no step.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

from planrun.errors import PlanrunError
from planrun.executors.hardening import harden
from planrun.trace.beside import LOADED, READY
from planrun.trace.sending import Sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_EVERY = 1.0  # seconds between two looks at the ledger
_SHARE = 10  # of the time at most one part goes into looking
_IN, _OUT = 0, 1
_RARELY = 30.0  # seconds at most between two tries of a collector that takes nothing


def main(_words: Sequence[str]) -> None:
    """Send the spans of the run that the order on stdin names; report what was not sent in one line on stdout."""
    harden(())
    os.write(_OUT, READY)
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(_IN, 1)
        if not piece:
            sys.exit(0)
        data += piece
    order = json.loads(data)
    os.environ.update(order["env"])
    try:
        follower = Follower(order["rundir"])
        os.write(_OUT, LOADED)
        failure = follower.follow()
    except PlanrunError as error:
        failure = str(error)
    try:
        os.write(_OUT, json.dumps(failure).encode() + b"\n")
    except OSError:  # planrun has ended
        sys.exit(0)


class Follower:
    """Sends each span once, when it has ended."""

    def __init__(self, rundir: str) -> None:
        from planrun.app import copies as _copies  # noqa: F401 - loaded now, and not when the run ends
        from planrun.trace import spans as _spans  # noqa: F401

        self._rundir = rundir
        self._sender: Sender = Sender()
        self._sent: set[str] | None = None  # None: nothing was looked at yet
        self._size = -1

    def follow(self) -> str:
        """Follow the run to its end; return why spans were not sent, empty when all were."""
        wait = _EVERY
        while not _ended(wait):
            began = time.monotonic()
            taken = self._look(over=False)
            took = _SHARE * (time.monotonic() - began)
            wait = max(_EVERY, took) if taken else min(2 * wait, _RARELY)
        self._size = -1
        self._look(over=True)  # the exporter itself tries again for ten seconds
        return self._sender.failure

    def _look(self, *, over: bool) -> bool:
        """Send what ended since the last look; return whether nothing is left."""
        from planrun.records.rundir import LEDGER

        path = os.path.join(self._rundir, LEDGER)
        size = os.stat(path).st_size
        if size == self._size:
            return True
        self._size = size
        rundir = self._rundir
        from planrun.app.copies import state_of
        from planrun.records.reading import read_ledger
        from planrun.trace.spans import trace_of

        reading = read_ledger(path)
        trace = trace_of(state_of(rundir, reading), reading.events, over=over)
        if self._sent is None:
            began = max((span.start for span in trace.spans if span.kind == "server"), default=0)
            self._sent = {
                span.span for span in trace.spans if span.end and span.end <= began and span.start < began
            }
        new = [span for span in trace.spans if span.end and span.span not in self._sent]
        taken = self._sender.send(trace, new)
        self._sent.update(span.span for span in new[:taken])
        if taken < len(new):
            self._size = -1  # they are sent with the next ones
        return taken == len(new)


def _ended(seconds: float) -> bool:
    """Wait for the end of stdin, which is that of planrun; return whether it came."""
    poll = select.poll()
    poll.register(_IN, select.POLLIN)
    return bool(poll.poll(seconds * 1000)) and not os.read(_IN, 1)
