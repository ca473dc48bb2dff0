"""Server-sent events: what changes in the list, in a run, in a log; each reader has a thread and its own position."""

from __future__ import annotations

import time

from planrun.app.logtail import LogTail
from planrun.model.jsontext import dumps, well_formed
from planrun.serve.pages import head_of, is_over, rows_of, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planrun.app.following import Followed
    from planrun.model.progress import AttemptState, StepState
    from planrun.serve.pages import Pages

    Sleep = Callable[[float], None]

TURN = 0.5
"""Seconds between two looks at a run that is going on."""
_REST = 2.0  # at one that is not
_ALIVE = 15.0  # seconds after which something is sent, so that a connection that is gone is noticed
_AGED = 60.0  # seconds after which the ages in the list are made anew
_LINES = 5000


def message(name: str, data: object) -> bytes:
    """Return one event; JSON has no line ends."""
    return f"event: {name}\ndata: {dumps(well_formed(data))}\n\n".encode()


def of_list(pages: Pages, sleep: Sleep) -> Iterator[bytes]:
    """Yield an event whenever the list of runs changes."""
    known = pages.rows()
    loaded = sent = time.monotonic()
    yield b": the list\n\n"
    while True:
        sleep(TURN * 2)
        rows = pages.rows()
        if rows != known or time.monotonic() - loaded > _AGED:
            known, loaded = rows, time.monotonic()
            sent = loaded
            yield message("page", None)
        elif time.monotonic() - sent > _ALIVE:
            sent = time.monotonic()
            yield b": alive\n\n"


def of_run(run: str, pages: Pages, sleep: Sleep) -> Iterator[bytes]:
    """Yield what changes in a run: rows at once, and when the page itself is worth loading again."""
    followed = pages.follow(run)
    try:
        yield from _Run(followed, pages).events(sleep)
    finally:
        followed.close()


class _Run:
    def __init__(self, followed: Followed, pages: Pages) -> None:
        self._followed, self._pages = followed, pages
        self._shown = self._version()  # of the page
        self._loaded = time.monotonic()
        self._was_over = is_over(followed.inspected)

    def events(self, sleep: Sleep) -> Iterator[bytes]:
        followed = self._followed
        yield self._now(None)
        sent = time.monotonic()
        while not followed.gone:
            is_active = followed.inspected.is_active
            sleep(TURN if is_active else _REST)
            version = followed.version
            events = followed.poll()
            if followed.version != version or self._running():
                yield self._now({getattr(event, "step", "") for event in events} | self._running())
                sent = time.monotonic()
            if self._is_due():
                self._shown, self._loaded = self._version(), time.monotonic()
                yield message("page", None)
            if time.monotonic() - sent > _ALIVE:
                sent = time.monotonic()
                yield b": alive\n\n"
        yield message("end", followed.gone)

    def _version(self) -> tuple[object, ...]:
        """Return what changes with the run, and with a verb that its page started."""
        return (self._followed.version, self._pages.verbs.version(self._followed.run))

    def _running(self) -> set[str]:
        if not self._followed.inspected.is_active:
            return set()
        steps = self._followed.inspected.state.steps
        return {name for name, step in steps.items() if step.status == "running"}

    def _now(self, names: set[str] | None) -> bytes:
        inspected = self._followed.inspected
        rows = rows_of(inspected.state, names, time.time())
        return message("now", {"shape": shape_of(inspected.state), **head_of(inspected), "rows": rows})

    def _is_due(self) -> bool:
        """Whether the page is worth loading again: at the end at once, before that not more often than it costs."""
        over = is_over(self._followed.inspected)
        has_ended, self._was_over = over and not self._was_over, over
        if self._version() == self._shown:
            return False
        waited = time.monotonic() - self._loaded >= self._pages.pause(self._followed.run)
        return has_ended or waited or not self._followed.inspected.is_active


def of_log(followed: Followed, step: StepState, attempt: AttemptState, sleep: Sleep) -> Iterator[bytes]:
    """Yield the lines of the log of an attempt, the last ones first, until it has ended."""
    tail = LogTail(followed.rundir, attempt.started.log, _LINES)
    sent = time.monotonic()
    try:
        yield message("begin", None)
        while True:
            followed.poll()
            ended = followed.gone or not followed.inspected.is_active or _has_ended(followed, step, attempt)
            if lines := tail.news():
                sent = time.monotonic()
                yield message("lines", lines)
                continue
            if ended:
                if rest := tail.rest():
                    yield message("lines", rest)
                yield message("end", None)
                return
            if time.monotonic() - sent > _ALIVE:
                sent = time.monotonic()
                yield b": alive\n\n"
            sleep(TURN)
    finally:
        tail.close()
        followed.close()


def _has_ended(followed: Followed, step: StepState, attempt: AttemptState) -> bool:
    state, name = followed.inspected.state, step.step.id
    found = state.steps.get(name) or state.undoing.get(name) or state.dropped.get(name)
    return found is None or any(each.n == attempt.n and each.ended for each in found.attempts)
