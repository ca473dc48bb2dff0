"""A run as lines, where there is no terminal to draw on: one for each step that starts or ends."""

from __future__ import annotations

import time

from planrun.app.following import Followed
from planrun.app.run_status import status_of
from planrun.cliutil import write_stderr
from planrun.cliutil.printing import say, speaks_unicode
from planrun.errors import InvalidInput
from planrun.model import events as ev
from planrun.records.reading import REFUSED
from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.facts import step_line
from planrun.reports.gates import event_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.events import Event
    from planrun.model.state import RunState

_TURN = 0.25
_ENDED = (ev.AttemptEnded, ev.StepMoved, ev.StepRestored)


def watch_as_lines(run: str, *, is_asked: bool) -> int:
    """Print the steps of a run as they start and end, until it has ended; return the exit code. Raises InvalidInput."""
    followed = Followed(run)
    if not is_asked:
        write_stderr("planrun: stdin and stdout are no terminal: the run is printed as lines\n")
    try:
        state = followed.inspected.state
        title = line(state.plan.title or state.plan.name)
        known = [step for step in facts.listed(state) if step.status != "pending"]
        icons = _icons()
        labels = facts.labels(state)
        say(
            "\n".join(
                [f"run {followed.run}: {title}", *[step_line(step, icons, labels=labels) for step in known]]
            )
        )
        rests = ""
        while not (followed.gone or followed.inspected.state.ended):
            events = followed.poll()
            rows = [row for event in events for row in _rows(event, followed.inspected.state)]
            if rows:
                say("\n".join(rows))
            rest = "" if followed.inspected.is_active or events else status_of(followed.inspected)
            if rest in REFUSED:  # nothing will be added that could be read
                raise InvalidInput(f"the ledger is {followed.inspected.reading.problem}")
            if rest != rests and rest not in ("", "running"):
                say(f"run {followed.run}: {_resting(rest, followed)}")
            rests = rest
            if rest in ("unfinished", "torn"):
                return 0
            if not events:
                time.sleep(_TURN)
        if followed.gone:
            say(followed.gone)
        else:
            ended = followed.inspected.state.ended
            assert ended is not None
            took = facts.seconds(ended.duration)
            say(f"run {followed.run}: {ended.verdict} in {took}, exit code {ended.exit_code}")
    finally:
        followed.close()
    return 0


def _rows(event: Event, state: RunState) -> Iterator[str]:
    """Yield the line of an event; one that changes no step has none."""
    icons = _icons()
    if isinstance(event, ev.AttemptStarted):
        n = f" (attempt {event.n})" if event.n > 1 else ""
        yield f"{icons['running']} {line(event.step)}{n}"
    elif isinstance(event, _ENDED):
        step = state.steps.get(event.step) or state.undoing.get(event.step)
        if step is not None and step.step.kind != "group":
            yield step_line(step, icons, labels=facts.labels(state))
    elif isinstance(event, ev.GateOpened | ev.GateAnswered):
        status, text = event_line(event, state)
        yield f"{icons[status]} {text}"
    elif isinstance(event, ev.RunResumed):
        yield "the run was resumed"


def _resting(status: str, followed: Followed) -> str:
    """Return how a run without a process can be continued."""
    what = {"unfinished": "planrun was killed", "waiting": "it waits for an answer", "paused": "it is paused"}
    return f"{what.get(status, status)}; to continue: planrun resume {followed.run}"


def _icons() -> dict[str, str]:
    return facts.ICONS if speaks_unicode() else facts.ASCII_ICONS
