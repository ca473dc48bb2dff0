"""The notifications of one run: what is due is begun in the book, sent, and its end reported.

Nothing that goes wrong here changes how the run ends.
"""

from __future__ import annotations

import json
import os
import sys
import time

from planrun.errors import InvalidInput, PlanrunError, RecordsLost
from planrun.model.events import GateOpened
from planrun.model.record import Record
from planrun.notify import book
from planrun.notify.document import document
from planrun.notify.orders import order_of
from planrun.notify.sending import Order, Sender, wait
from planrun.opening import open_record
from planrun.records.rundir import LEDGER
from planrun.reports.escape import line
from planrun.reports.facts import is_waiting
from planrun.reports.gates import open_gates
from planrun.reports.write import write_again
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.events import Event
    from planrun.model.notify import Target
    from planrun.model.state import RunState
    from planrun.notify.orders import Place
    from planrun.notify.sending import Wake
    from planrun.ports import Masks


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


_POLL = 0.05  # seconds until a process that starts is asked again whether it is ready
QUIET = 2.0
"""Seconds without a new gate, after which a run that goes on meanwhile says that it waits."""


class Recipient(Record):
    """A target with the name that the records have for it: `plan 1`, `policy.yml 2`."""

    name: str
    target: Target
    of_plan: bool = False
    refusal: Callable[[], str] = str  # why it must not be notified; empty: it may


class Notifier:
    """Notifies the recipients of a run; a sink of its events, asked again when the run has ended."""

    def __init__(
        self,
        recipients: Sequence[Recipient],
        rundir: str,
        place: Place,
        *,
        masks: Masks | None = None,
        wake: Wake | None = None,
    ) -> None:
        self._recipients = recipients
        self._rundir = rundir
        self._place = place
        self._masks = masks
        self._wake = wake
        self._state: RunState | None = None
        self._ask_at: float | None = None  # when open gates are notified
        self._senders: list[Sender] = []
        self._ended: list[dict[str, Any]] = []
        self._broken = False
        self._logs = 0  # names given to logs of commands

    # As a sink.

    def on_event(self, event: Event, state: RunState) -> None:
        """Note that a gate opened."""
        self._state = state
        if isinstance(event, GateOpened):
            self._ask_at = time.monotonic() + QUIET

    def tick(self) -> float | None:
        """Notify of gates that have been open for a while; returns the seconds until there is more to do."""
        if self._broken:
            return None
        try:
            if self._ask_at is not None and self._state is not None:
                left = self._ask_at - time.monotonic()
                if left > 0:
                    return left
                self._ask_at = None
                self._notify_waiting(self._state)
            starting = [sender for sender in self._senders if not sender.has_order]
            for sender in starting:
                sender.poll()
            return _POLL if starting else None
        except Exception as error:  # noqa: BLE001 - a notification must not end a run
            self._give_up(error)
            return None

    # At the end.

    def finish(self, state: RunState, code: int, reports: Mapping[str, str]) -> None:
        """Notify of the end of a run, or of what it waits for, and complete its `ledger.json` among the reports."""
        try:
            self._finish(state, code, reports)
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(error)

    def _finish(self, state: RunState, code: int, reports: Mapping[str, str]) -> None:
        if is_waiting(state):
            self._notify_waiting(state)
        for event, occasion in ending(state, code, self._rundir):
            self._notify(event, [occasion], state)
        wait(self._senders, self._wake)
        for sender in self._senders:
            assert sender.result is not None
            if sender.result.pop("late", False):
                self._record({"at": book.stamp(), **sender.result})
            self._ended.append(sender.result)
        for entry in self._ended:
            if entry["status"] != "sent":
                tries = entry.get("tries", 0)
                often = f" ({tries} tries)" if tries > 1 else ""
                why = line(str(entry.get("message", "")), 300) or entry["status"]
                self._say(f"warning: {entry['to']} was not notified ({entry['event']}): {why}{often}")
        if self._ended:
            write_again(state, self._rundir, reports)

    def _give_up(self, error: Exception) -> None:
        """Write why, once; during the run nothing more is sent."""
        self._broken = True
        self._say(f"warning: notifications stopped: {line(f'{type(error).__name__}: {error}', 300)}")

    def _notify_waiting(self, state: RunState) -> None:
        if occasions := waiting(state):
            self._notify("waiting", occasions, state)

    def _notify(self, event: str, occasions: Sequence[str], state: RunState) -> None:
        """Send what is due to each recipient that wants it and has not been told of one of the occasions."""
        wanting = [each for each in self._recipients if event in each.target.on]
        if not wanting:
            return
        known = {
            (entry["target"], entry["event"], told)
            for entry in book.read(self._rundir)
            for told in entry["about"]
        }
        found: dict[str, Any] | None = None
        for recipient in wanting:
            new = [told for told in occasions if (recipient.name, event, told) not in known]
            if not new:
                continue
            if event == "completed" and self._was_told(recipient, occasions):
                continue
            found = found or document(event, state, self._rundir, os.environ, self._masks)
            entry = {
                "event": event,
                "occasion": f"{event} {new[0]}",
                "about": list(occasions),
                "target": recipient.name,
                "to": line(recipient.target.label, 200),
            }
            if self._record({"at": book.stamp(), **entry, "status": "begun"}, sync=True):
                try:
                    if why := recipient.refusal():
                        raise InvalidInput(why)
                    data = order_of(
                        recipient.target,
                        found,
                        self._place,
                        f"{os.path.basename(self._rundir)} {entry['occasion']}",
                    )
                    data |= {"book": book.path_of(self._rundir), "entry": entry}
                    if recipient.target.argv:
                        names = os.listdir(os.path.join(self._rundir, "logs"))
                        self._logs = (
                            max(self._logs, len([name for name in names if name.startswith("notify.")])) + 1
                        )
                        data["log"] = os.path.join(self._rundir, "logs", f"notify.{self._logs}.log")
                    seconds = recipient.target.seconds
                    self._senders.append(Sender(Order(data=data, entry=entry, seconds=seconds)))
                except (PlanrunError, OSError) as error:
                    message = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                    result = {**entry, "status": "failed", "tries": 0, "message": line(message, 300)}
                    self._record({"at": book.stamp(), **result})
                    self._ended.append(result)

    def _was_told(self, recipient: Recipient, occasions: Sequence[str]) -> bool:
        """Whether a recipient is already notified of this end: that it recovered says that it completed."""
        begun = [*[sender.order.entry for sender in self._senders], *self._ended]
        return any(entry["target"] == recipient.name and entry["about"] == list(occasions) for entry in begun)

    def _record(self, entry: dict[str, Any], *, sync: bool = False) -> bool:
        try:
            book.append(book.path_of(self._rundir), entry, sync=sync)
        except RecordsLost as error:
            self._say(f"warning: no notification is sent: {error}")
            return False
        return True

    def _say(self, text: str) -> None:
        if sys.stderr is not None:
            try:
                sys.stderr.write(f"planrun: {self._masks.mask_text(text) if self._masks else text}\n")
                sys.stderr.flush()
            except (OSError, ValueError):  # it has no reader any more
                return
