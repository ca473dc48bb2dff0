"""The process that calls a model: reads requests from planrun, repeats attempts, and keeps the deadline of each call.

One thread listens; the other one, the main thread, loads the library and makes the calls. What has to end at once
(no time left, a stop, planrun gone) ends the process, since nothing else ends a thread that waits for a network. Before
it receives credentials the process closes itself to all others of its user.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import random
import resource
import select
import sys
import threading
import time

from planrun.llm import wire
from planrun.llm.worker.call import Call, Line
from planrun.llm.worker.outcomes import Outcome, outcome_of, was_sent
from planrun.llm.worker.stream import Form, attempt, client_of
from planrun.model.call import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.llm.worker.outcomes import Feature

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4  # prctl(2)
_STATUS = "/proc/self/status"


def deny_inspection() -> str:
    """Make memory, environment and descriptors of this process unreadable; returns what became of it.

    hidden: the system granted it. open: it has no such thing (macOS). traced: another process came first, and sees all.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file has the credentials
    if sys.platform != "linux":
        return "open"
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if library.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0):
        return "open"
    return "traced" if _tracer() else "hidden"


def _tracer() -> int:
    """Return the id of a process that has this one under its control since before; 0: there is none."""
    with open(_STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    return 0


LONGEST = 60.0  # seconds between two attempts, unless the service asks for more (V-68)
JITTER = 0.1
OVERLOAD = 2.5  # an overloaded service is left alone so many times longer
_MOST = 1 << 16  # characters of any text besides the answer; planrun masks it first and shortens it then
_LEFT_OUT: dict[Feature, str] = {
    "schema": "the schema is asked for in the text",
    "effort": "effort is left out",
    "thinking": "thinking is left out",
}


class Caller:
    """Makes the calls of this process; what it learns of the service holds for all of them."""

    def __init__(self, opening: dict[str, Any]) -> None:
        service, credentials = opening["service"], opening["credentials"]
        self._backoff: float = service["backoff"]
        self._client = client_of(service["base_url"], credentials)
        self._form = Form()
        self._left_out: list[Feature] = []

    def answer(self, call: Call) -> Answer:
        """Make attempts until one of them is the last."""
        repeats: dict[str, int] = {}
        while True:
            outcome = self._attempt(call)
            if outcome.unknown and self._leave_out(outcome.unknown):
                call.note = outcome.message[:_MOST]
                call.repeat(f"{_LEFT_OUT[outcome.unknown]}: {call.note}", 0.0)
                continue
            if outcome.ending == "answered":
                return self._answer(call, outcome, outcome.message)
            repeats[outcome.rule] = repeats.get(outcome.rule, 0) + 1
            last_word = self._last_word(call, outcome, repeats[outcome.rule] - 1, sum(repeats.values()) - 1)
            if last_word is not None:
                return self._answer(call, outcome, last_word)
            call.note = outcome.message[:_MOST]

    def _attempt(self, call: Call) -> Outcome:
        tally = call.tally
        tally.begin()
        try:
            outcome = attempt(self._client, self._form, call)
        except Exception as error:  # noqa: BLE001 - whatever the library raises has to end in words
            outcome = outcome_of(error)
            if not was_sent(error):
                tally.declined()
        call.progress(now=True)
        return outcome

    def _leave_out(self, feature: Feature) -> bool:
        """Ask without something from now on; False when it is left out already."""
        if feature in self._left_out:
            return False
        self._left_out.append(feature)
        self._form = self._form.but(**{feature: False})
        return True

    def _last_word(self, call: Call, outcome: Outcome, same: int, all_in_all: int) -> str | None:
        """Return what to say when no more attempt is made; wait, and return None, when there is one."""
        tries = f" ({all_in_all + 1} tries)" if all_in_all else ""
        if outcome.repeat == 0:
            return outcome.message + tries
        if not call.tally.may_cost_more:
            return f"{outcome.message}{tries}; nothing is reserved for one more that costs something"
        if all_in_all >= call.request.retries or (outcome.repeat is not None and same >= outcome.repeat):
            return outcome.message + tries
        pause = pause_before(outcome, all_in_all, self._backoff)
        if pause >= call.left:
            asks = (
                f"it asks to wait {outcome.after:g} s"
                if outcome.after
                else f"the next try is due in {pause:.1f} s"
            )
            return f"{outcome.message}{tries}; {asks}, and {max(0.0, call.left):.1f} s are left"
        call.repeat(outcome.message[:_MOST], pause)
        time.sleep(pause)
        return None

    def _answer(self, call: Call, outcome: Outcome, message: str) -> Answer:
        wanted = {"schema": call.request.schema is not None, "effort": call.request.effort, "thinking": True}
        lacking = [each for each in self._left_out if wanted[each]]
        notes = [f"the service does not know what was asked of it, so {_LEFT_OUT[each]}" for each in lacking]
        rule = ", ".join([outcome.rule, *[f"without:{each}" for each in lacking]])
        return Answer(
            ending=outcome.ending,
            text=outcome.text,
            model=outcome.model[:_MOST],
            request_id=outcome.request_id[:_MOST],
            stop_reason=outcome.stop_reason[:_MOST],
            message="; ".join([*([message[:_MOST]] if message else []), *notes]),
            rule=rule[:_MOST],
        )


def pause_before(outcome: Outcome, repeat: int, base: float) -> float:
    """Return the seconds before an attempt: what the service asks for, or `base`, and twice as long each time.

    `repeat` counts from 0. A tenth more or less, at random, keeps many clients from coming back at once.
    """
    if outcome.after is not None:
        return outcome.after * (1 + JITTER * random.random())  # noqa: S311 - spreads, and protects nothing
    factor = OVERLOAD if outcome.ending == "overloaded" else 1.0
    pause: float = min(LONGEST, base * factor * 2.0 ** min(repeat, 30))
    return pause * (1 + JITTER * (2 * random.random() - 1))  # noqa: S311


_CHUNK = 1 << 16


class Listener:
    """What planrun says, read as it comes, also while the library is being loaded."""

    def __init__(self, line: Line) -> None:
        self.opened: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._line = line
        self._call: Call | None = None

    def listen(self) -> None:
        """Read until planrun is gone, and end the process then."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        unread = b""
        while True:
            if not poll.poll(self._patience()):
                self._is_late()
                continue
            data = os.read(0, _CHUNK)
            if not data:
                os._exit(0)
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))

    def _hear(self, said: dict[str, Any]) -> None:
        if said["word"] == "open":
            self.opened.put(said)
        elif said["word"] == "ask":
            self._call = Call(said["number"], wire.as_request(said["request"]), self._line)
            self.calls.put(self._call)
        elif self._call is not None:
            self._call.cut("stopped", "stopped")

    def _patience(self) -> float | None:
        """Return the milliseconds until the call has to end; None: there is none that has."""
        return None if self._call is None else max(0.0, self._call.left) * 1000 + 1

    def _is_late(self) -> None:
        if self._call is not None and self._call.left <= 0:
            call, self._call = self._call, None
            call.cut("late", f"the model did not answer within {call.request.seconds:.3g} s")


def serve() -> None:
    """Be the process: shelter, then listen, then load the library, then answer one call after the other."""
    shelter = deny_inspection()
    line = Line()
    listener = Listener(line)
    threading.Thread(target=listener.listen, daemon=True).start()
    line.say("ready", shelter=shelter)
    try:
        _answer_all(listener)
    except ImportError as error:
        text = f"the anthropic package cannot be loaded: {error.msg}; reinstall it by pip"
        listener.calls.get().cut("unavailable", text)
    sys.exit(0)


def _answer_all(listener: Listener) -> None:
    caller = Caller(listener.opened.get())
    while True:
        call = listener.calls.get()
        call.end(caller.answer(call))
