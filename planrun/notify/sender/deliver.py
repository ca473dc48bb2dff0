"""Deliver one notification: read the order on stdin, try until it is delivered or the time is over, record the end.

The end is written to the run's `notifications.jsonl` by this process, so it is recorded even when planrun was killed
meanwhile; planrun reads the same line on stdout.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from planrun.errors import RecordsLost
from planrun.executors.hardening import harden
from planrun.notify import book
from planrun.notify.sender import command, post
from planrun.notify.sender.result import Interrupted, OutOfTime, Result
from planrun.notify.sending import READY
from planrun.secrets.masker import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any


def main(_words: Sequence[str]) -> None:
    """Deliver the notification that the order on stdin describes, and report it on stdout."""
    harden(())
    if _is_traced():
        return  # another process reads along: nothing is sent, and planrun reports that this one ended
    os.write(1, READY)
    signal.signal(signal.SIGALRM, _time_is_over)
    signal.signal(signal.SIGTERM, _interrupted)
    order = json.loads(sys.stdin.buffer.read())
    began = time.monotonic()
    result = _delivered(order, began)
    seconds = time.monotonic() - began
    masker = Masker(order["masked"])
    entry = {
        "at": book.stamp(),
        **order["entry"],
        "status": result.status,
        "tries": result.tries,
        "code": result.code,
        "message": masker.mask_text(result.message)[:300],
        "seconds": round(seconds, 3),
    }
    try:
        book.append(order["book"], entry)
    except RecordsLost as error:
        entry["unrecorded"] = str(error)
    try:
        os.write(1, json.dumps(entry).encode() + b"\n")
    except OSError:  # planrun was killed, and the book has it
        return


def _is_traced() -> bool:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return any(row.startswith("TracerPid:") and row.split()[1] != "0" for row in file)
    except OSError:
        return False


def _delivered(order: dict[str, Any], began: float) -> Result:
    """Return how the delivery ended; the alarm bounds all tries together."""
    until = began + order["seconds"]
    deliver = command.run if order["kind"] == "command" else post.send
    result = Result()
    signal.setitimer(signal.ITIMER_REAL, order["seconds"])
    try:
        deliver(order, until, result)
    except OutOfTime:
        result.failed(f"no end within {order['seconds']:g}s")
    except Interrupted:
        result.status = "interrupted"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return result


def _time_is_over(_signum: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def _interrupted(_signum: int, _frame: FrameType | None) -> None:
    raise Interrupted
