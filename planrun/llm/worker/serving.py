"""Hears planrun, keeps the deadline of the call, and tells its end exactly once, whatever the call itself is doing.

One thread listens; the other one, the main thread, loads the library and makes the calls. What has to end at once
(no time left, a stop, planrun gone) ends the process, since nothing else ends a thread that waits for a network.
"""

from __future__ import annotations

import json
import os
import queue
import select
import sys
import threading
import time

from planrun.llm import wire
from planrun.llm.worker.shelter import take_shelter
from planrun.llm.worker.tally import Tally
from planrun.model.call import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.call import Ending, Request

_CHUNK = 1 << 16
_OFTEN = 0.2  # seconds between two words about what a call used up


class Call:
    """One call and its end, which whoever comes first tells."""

    def __init__(self, number: int, request: Request, line: Line) -> None:
        self.request = request
        self.tally = Tally(request)
        self.until = time.monotonic() + request.seconds
        self.note = ""  # what went wrong last, for people
        self._number = number
        self._line = line
        self._lock = threading.Lock()
        self._is_over = False
        self._spoke = 0.0

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()

    def progress(self, *, now: bool = False) -> None:
        """Tell what the call used up so far: `now`, or when that was not told for a while."""
        if not now and time.monotonic() - self._spoke < _OFTEN:
            return
        self._spoke = time.monotonic()
        usage, is_estimate = self.tally.spent()
        told = {"usage": vars(usage), "is_estimate": is_estimate, "attempts": self.tally.attempts}
        with self._lock:
            if not self._is_over:
                self._line.say("spent", number=self._number, **told)

    def repeat(self, message: str, delay: float) -> None:
        """Tell why there is one more attempt, `delay` seconds from now."""
        with self._lock:
            if not self._is_over:
                told = {"attempt": self.tally.attempts, "message": message, "delay": round(delay, 3)}
                self._line.say("repeat", number=self._number, **told)

    def end(self, answer: Answer, *, last: bool = False) -> bool:
        """Tell the answer, with what the call used up; False when somebody else did before."""
        with self._lock:
            if self._is_over:
                return False
            self._is_over = True
            usage, is_estimate = self.tally.spent()
            whole = answer.but(usage=usage, is_estimate=is_estimate, attempts=self.tally.attempts)
            self._line.say("answer", number=self._number, answer=wire.as_data(whole), last=last)
            return True

    def cut(self, ending: Ending, message: str) -> None:
        """End the call and the process with it, unless it has ended."""
        told = f"{message}; before that: {self.note}" if self.note else message
        if self.end(Answer(ending=ending, message=told, rule=f"process:{ending}"), last=True):
            os._exit(0)


class Line:
    """The way back to planrun, out of reach of libraries that print."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        self._lock = threading.Lock()

    def say(self, word: str, **fields: Any) -> None:
        """Send one line; ends the process when nobody reads any more."""
        data = wire.line(word, **fields)
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(0)


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
    shelter = take_shelter()
    line = Line()
    listener = Listener(line)
    threading.Thread(target=listener.listen, daemon=True).start()
    line.say("ready", shelter=shelter)
    try:
        _answer_all(listener)
    except ImportError as error:
        told = f"the anthropic package cannot be loaded: {error.msg}; install it anew: pip install anthropic"
        listener.calls.get().cut("unavailable", told)
    sys.exit(0)


def _answer_all(listener: Listener) -> None:
    from planrun.llm.worker.calling import Caller  # loads the library, which takes seconds

    caller = Caller(listener.opened.get())
    while True:
        call = listener.calls.get()
        call.end(caller.answer(call))
