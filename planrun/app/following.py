"""A run that another process executes, followed by its ledger: its state is that of the events so far."""

from __future__ import annotations

import os
import time

from planrun.app.inspect import find, read_run
from planrun.errors import InvalidInput, PlanrunError
from planrun.model import events as ev
from planrun.records.lock import holder
from planrun.records.tail import LedgerTail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.inspect import Inspected
    from planrun.model.events import Event

_LOOK = 0.5  # seconds between two looks whether a process executes the run
_BEGINNING = 5.0  # seconds that a new run may take to write its first event
_TURN = 0.05


class Followed:
    """A run as it was at the last `poll`; `gone`: why it can be followed no longer, else empty.

    `version` grows with each change of the state, or of the process that executes it.
    """

    def __init__(self, run: str) -> None:
        self.rundir = find(run)
        self.run = os.path.basename(self.rundir)
        self.gone = ""
        self.version = 0
        self._looked = 0.0
        self.inspected = self._first()
        self._tail: LedgerTail | None = LedgerTail(self.rundir, self.inspected.reading)

    def poll(self) -> list[Event]:
        """Take what was added to the ledger; return the new events. Raises nothing: see `gone`."""
        if self.gone:
            return []
        try:
            events = self._news()
        except (PlanrunError, AttributeError, KeyError, TypeError, ValueError, IndexError):
            self._read_again()
            events = []
        self._look(moved=bool(events))
        self.version += bool(events)
        return events

    @property
    def size(self) -> int:
        """Bytes of the ledger that the state is made of."""
        return self._tail.size if self._tail else self.inspected.reading.size

    def close(self) -> None:
        """Give the descriptor of the ledger back."""
        if self._tail:
            self._tail.close()
            self._tail = None

    def _first(self) -> Inspected:
        """Return the run; one that starts now may have no event yet."""
        until = time.monotonic() + _BEGINNING
        while True:
            try:
                return read_run(self.run, cache=True)
            except InvalidInput:
                current = holder("")
                if current is None or current.run != self.run or time.monotonic() > until:
                    raise
            time.sleep(_TURN)

    def _news(self) -> list[Event]:
        if self._tail is None or not self._tail.is_whole():
            self._read_again()
            return []
        events = self._tail.news()
        for event in events:
            if isinstance(event, ev.RunResumed | ev.PlanningEnded) and event.plan:
                self._read_again()  # it may name another version of the plan, of which the run has a copy
                return events
            self.inspected.state.apply(event)
        if events:
            last = events[-1]
            condition = "intact" if isinstance(last, ev.RunEnded) else "unfinished"
            reading = self.inspected.reading.but(condition=condition, events=(), size=self.size, detail="")
            self.inspected = self.inspected.but(reading=reading)
        return events

    def _read_again(self) -> None:
        """Read the run anew: its ledger was cut, or its plan has another version, or it is gone."""
        self.close()
        self.version += 1
        if not os.path.isdir(self.rundir):
            self.gone = f"run {self.run} was deleted"
            return
        try:
            self.inspected = self._first()
            self._tail = LedgerTail(self.rundir, self.inspected.reading)
        except PlanrunError as error:
            self.gone = str(error) if os.path.isdir(self.rundir) else f"run {self.run} was deleted"

    def _look(self, *, moved: bool) -> None:
        """Note whether a process executes the run; a run that ended has none that matters."""
        if self.gone or (time.monotonic() - self._looked < _LOOK and not moved):
            return
        self._looked = time.monotonic()
        current = None if self.inspected.state.ended else holder("")
        is_active = current is not None and current.run == self.run
        if is_active != self.inspected.is_active:
            self.inspected = self.inspected.but(is_active=is_active)
            self.version += 1
