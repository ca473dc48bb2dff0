"""The work of `planrun logs --follow`: the logs of a run as they are written by the process that executes it."""

from __future__ import annotations

import os
import select
import sys
import time

from planrun.app.inspect import find, read_beside, read_run
from planrun.app.logtail import GrowingLog
from planrun.app.summaries import resting_status
from planrun.cliutil.click import tell
from planrun.errors import InvalidInput
from planrun.executors.logs import elsewhere
from planrun.logs.attempts import Attempt, Wanted, cause_of, is_of, named, parts_of
from planrun.logs.writing import Bytes, JsonLines, Plain, Prefixed
from planrun.model import events as ev
from planrun.records.lock import holder
from planrun.records.tail import LedgerTail
from planrun.reports.ci import coloured
from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.logs.printing import Form
    from planrun.logs.writing import Writer
    from planrun.model.state import RunState


_TURN = 1 << 22
"""Bytes of one log that are printed before the next log gets its turn."""


class Growing:
    """The logs of an attempt that may still grow; `attempt` is set anew when it has ended."""

    def __init__(self, rundir: str, attempt: Attempt, writer: Writer, tail: int | None) -> None:
        self.attempt = attempt
        self._rundir = rundir
        self._folder = os.path.join(rundir, "logs")
        self._writer = writer
        self._tail = tail
        self._parts: dict[str, GrowingLog] = {}

    def move(self, slots: dict[str, str]) -> bool:
        """Print what came since the last call; return whether anything did."""
        moved = False
        for name, log in parts_of(self._rundir, self.attempt, slots):
            part = self._parts.get(name)
            if part is None:
                part = GrowingLog(os.path.join(self._rundir, log))
            if not part.open(self._rundir, log, slots, self._tail):
                continue
            limit = part.at + _TURN
            while part.at < limit and (data := part.read(self._folder)):
                if name not in self._parts:
                    self._writer.begin(self.attempt, name)
                    self._parts[name] = part
                self._writer.write(self.attempt, name, data)
                moved = True
            if name not in self._parts:
                part.close()  # it is empty so far
        return moved

    def finish(self, attempt: Attempt, slots: dict[str, str]) -> None:
        """Print the rest of the logs of an attempt that has ended."""
        self.attempt = attempt
        while self.move(slots):
            pass
        for name, part in self._parts.items():
            self._writer.end(attempt, name)
            part.close()
        self._parts = {}


_PAUSE = 0.1  # seconds between two looks at the ledger and the logs
_SILENCE = 0.5  # seconds without an event, after which it is asked whether the process still lives
_BEGINNING = 2.0  # seconds that a process may take from its lock to its first event


def follow(run: str, wanted: Wanted, form: Form) -> int:
    """Print the logs of a run until it ends, and return the exit code; raises InvalidInput."""
    rundir = find(run)
    steps = _steps(os.path.basename(rundir), wanted)
    follower = _Follower(rundir, wanted, form, _writer(os.path.basename(rundir), steps, form))
    try:
        return follower.run()
    finally:
        follower.close()


def _steps(run: str, wanted: Wanted) -> list[str]:
    """Return the steps that may print; raises InvalidInput for a word that cannot become one of them."""
    state = _state(run)
    steps: list[str] = []
    for word in wanted.steps or state.steps:
        try:
            found = named([word], state)
        except InvalidInput:
            # A foreach opens its members during the run.
            if word.partition("[")[0].partition("/")[0] not in state.steps:
                raise
            found = {word: word}
        steps += found
    return [name for name in steps if name not in state.steps or state.steps[name].step.kind != "group"]


def _state(run: str) -> RunState:
    until = time.monotonic() + _BEGINNING
    while True:
        try:
            return read_run(run).state
        except InvalidInput:
            if not _is_executed(run) or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def _writer(run: str, steps: Sequence[str], form: Form) -> Writer:
    """Return what prints the logs of several steps at once."""
    if form.as_json:
        return JsonLines(run)
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    colours = coloured(os.environ, terminal=on_terminal)
    if len(steps) > 1 and form.prefix:
        return Prefixed(steps, colours=colours)
    if len(steps) > 1 or on_terminal:
        return Plain(colours=colours, headings=False)
    return Bytes()


def _is_executed(run: str) -> bool:
    """Whether a process executes a run now."""
    current = holder("")
    return current is not None and current.run == run


class _Follower:
    """Prints what grows until the run has an end, or no process that could give it one."""

    def __init__(self, rundir: str, wanted: Wanted, form: Form, writer: Writer) -> None:
        self._rundir = rundir
        self._name = os.path.basename(rundir)
        self._wanted = wanted
        self._form = form
        self._writer = writer
        self._ledger = LedgerTail(rundir)
        self._growing: dict[tuple[str, int], Growing] = {}
        self._end: ev.RunEnded | None = None
        self._rests = False  # it waits for an answer or a resume, which was said
        self._poll = select.poll()

    def run(self) -> int:
        """Follow the run to its end."""
        if sys.stdout is not None and not sys.stdout.closed:
            try:
                self._poll.register(sys.stdout.fileno(), 0)  # tells when the reader of a pipe is gone
            except (OSError, ValueError):
                pass
        self._begin(self._ledger.news())
        heard = time.monotonic()
        while self._end is None:
            moved = self._move()
            events = self._ledger.news()
            self._take(events)
            if events:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                if not _is_executed(self._name) and self._has_stopped():
                    return 0
                heard = time.monotonic()
            if not moved and not events:
                if isinstance(self._writer, Plain):
                    self._writer.pause()
                for _ in self._poll.poll(_PAUSE * 1000):
                    raise BrokenPipeError
        assert self._end is not None
        self._lose()
        self._say_run(self._end.verdict, self._end.exit_code)
        took = seconds(self._end.duration)
        tell(f"run {self._name}: {self._end.verdict} in {took}, exit code {self._end.exit_code}")
        return 0

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _begin(self, events: Sequence[ev.Event]) -> None:
        """Take the events until now: of each step only the last attempt is printed."""
        last = {event.step: event.n for event in events if isinstance(event, ev.AttemptStarted) and event.log}
        old = (ev.AttemptStarted, ev.AttemptEnded)
        self._take([each for each in events if not isinstance(each, old) or last.get(each.step) == each.n])

    def _take(self, events: Sequence[ev.Event]) -> None:
        for event in events:
            if isinstance(event, ev.AttemptStarted):
                self._started(event)
            elif isinstance(event, ev.AttemptEnded):
                growing = self._growing.pop((event.step, event.n), None)
                if growing is not None:
                    growing.finish(growing.attempt.but(ended=event), self._slots())
                    if event.status != "completed":
                        tries = f"attempt {event.n} " if event.n > 1 or event.step_status == "waiting" else ""
                        cause = f": {cause_of(event)}" if event.reason else ""
                        tell(f"{event.step}: {tries}{event.status}{cause} ({seconds(event.duration)})")
            elif isinstance(event, ev.RunEnded):
                self._end = event
            elif isinstance(event, ev.RunResumed | ev.CleanupResumed):
                self._end = None
                self._rests = False
                self._lose()

    def _started(self, event: ev.AttemptStarted) -> None:
        wanted = self._wanted
        if not event.log or (wanted.steps and not any(is_of(event.step, word) for word in wanted.steps)):
            return
        if not wanted.attempt or event.n == wanted.attempt:
            attempt = Attempt(step=event.step, n=event.n, log=event.log, is_active=True)
            self._growing[event.step, event.n] = Growing(self._rundir, attempt, self._writer, self._form.tail)

    def _lose(self) -> None:
        """End the logs of attempts that have no end, since the process was killed."""
        for growing in self._growing.values():
            growing.finish(growing.attempt.but(is_active=False), self._slots())
        self._growing.clear()

    def _move(self) -> bool:
        slots = self._slots()
        moved = [growing.move(slots) for growing in self._growing.values()]  # all of them
        return any(moved)

    def _slots(self) -> dict[str, str]:
        return elsewhere(os.path.join(self._rundir, "logs"))

    def _has_stopped(self) -> bool:
        """Say why no process executes the run; whether it is to be followed no longer."""
        events = self._ledger.news()  # it may have ended since
        self._take(events)
        if events or self._end:
            return False
        status = resting_status(read_beside(self._name)[0])
        if not status:
            self._lose()
            self._say_run("unfinished", None)
            tell(
                f"run {self._name} was killed: its records have no end; to continue: planrun resume {self._name}"
            )
            return True
        if not self._rests:
            self._rests = True
            what = "waits for an answer (planrun status shows it)" if status == "waiting" else "is paused"
            tell(f"run {self._name} {what}; its logs follow when it is resumed, Ctrl-C ends")
        return False

    def _say_run(self, verdict: str, exit_code: int | None) -> None:
        if isinstance(self._writer, JsonLines):
            self._writer.say("run", None, verdict=verdict, exit_code=exit_code)
