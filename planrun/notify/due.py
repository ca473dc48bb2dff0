"""Which events of a run are to be notified, decided from its state, its book and earlier runs."""

from __future__ import annotations

import json
import os

from planrun.notify import book
from planrun.opening import open_record
from planrun.records.rundir import LEDGER
from planrun.reports.gates import open_gates
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.events import GateOpened
    from planrun.model.state import RunState

MOST_RUNS = 200
"""How many earlier runs are looked at for the last one of the same plan."""
_END = 65536  # bytes at the end of a ledger that hold its last line
_START = 1 << 20  # bytes at its beginning that hold its first one


def ending(state: RunState, code: int, rundir: str) -> Iterator[tuple[str, str]]:
    """Yield the events of the end of a run, each with its occasion, which stays the same for this end."""
    at = state.ended.at if state.ended else state.moves[-1][1] if state.moves else ""
    occasion = f"end {at}"
    verdict = state.settled
    cancelled = state.ending is not None and state.ending.why == "cancel"
    if state.ended and cancelled and verdict == "cancelled":
        yield "cancelled", occasion
    elif verdict is not None and code not in (0, 5):
        yield "failed", occasion
    elif state.ended and code == 0:
        if has_failed_before(state, rundir):
            yield "recovered", occasion
        yield "completed", occasion


def waiting(state: RunState) -> tuple[str, ...]:
    """Return the open gates, as occasions that stay the same as long as the same question is open.

    A resume opens a gate again, so its time says nothing. A step that was tried meanwhile asks anew.
    """
    return tuple([f"gate {opened.step or '-'} {_question(state, opened)}" for opened in open_gates(state)])


def _question(state: RunState, opened: GateOpened) -> str:
    tries = len(state.steps[opened.step].attempts) if opened.step else 0
    asked = (opened.kind, opened.question, opened.rule, opened.risk, opened.options, opened.schema, tries)
    return str(sha256(repr((state.plan.digest, *asked)).encode("utf-8", "replace")).hexdigest()[:16])


def has_failed_before(state: RunState, rundir: str) -> bool:
    """Whether this run failed and a notification was sent before it was resumed, or the last run of the plan failed."""
    if any(entry["event"] == "failed" and entry["status"] == "sent" for entry in book.read(rundir)):
        return True
    return state.started is not None and _last_failed(state, rundir)


def _last_failed(state: RunState, rundir: str) -> bool:
    assert state.started is not None
    runs, own = os.path.dirname(rundir), os.path.basename(rundir)
    mine = _identity(vars(state.started))
    try:
        names = [name for name in os.listdir(runs) if name != own]
    except OSError:
        return False
    newest = ""
    failed = False
    for name in sorted(names, reverse=True)[:MOST_RUNS]:
        path = os.path.join(runs, name, LEDGER)
        first = _line(path, last=False)
        if (
            first is None
            or _identity(first) != mine
            or not newest < str(first.get("at", "")) < state.started.at
        ):
            continue
        end = _line(path, last=True)
        if end is None or end.get("type") != "run_ended" or end.get("verdict") == "cancelled":
            continue
        newest, failed = str(first["at"]), end.get("exit_code") != 0
    return failed


def _identity(started: dict[str, Any]) -> tuple[str, ...]:
    """Return what makes two runs those of one plan: its name, its file, and the ref."""
    plan, context = (
        found if isinstance(found := started.get(key), dict) else {} for key in ("plan", "context")
    )
    return str(plan.get("name")), os.path.normpath(str(plan.get("file"))), str(context.get("ref", ""))


def _line(path: str, *, last: bool) -> dict[str, Any] | None:
    """Return the first or last line of a ledger as data; None where there is no whole one."""
    try:
        fd = open_record(path)
    except OSError:
        return None
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, _END, max(0, size - _END)) if last else os.pread(fd, _START, 0)
        text = data.rstrip(b"\n").rpartition(b"\n")[2] if last else data.partition(b"\n")[0]
        found = json.loads(text)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    return found if isinstance(found, dict) else None
