"""One call: the tokens that it used, and its result, which is reported exactly once."""

from __future__ import annotations

import os
import threading
import time

from planrun.llm import wire
from planrun.llm.budget import estimate
from planrun.model.call import Answer, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.call import Ending, Request

_MOST = 10**12  # tokens that are believed
_BYTES_A_TOKEN = 2  # of an answer: fewer than any text or program has, so that the count is never too low


class Tally:
    """The tokens of one call over all its attempts. An attempt counts from `sent` on, until then nothing was used."""

    def __init__(self, request: Request) -> None:
        self.attempts = 0
        self._paid = 0  # attempts before this one that may have cost something
        self._request = request
        self._before = Usage()
        self._is_estimate = False
        self._forget()

    def begin(self) -> None:
        """One more attempt; what the one before used up stays counted."""
        usage, is_estimate = self.spent()
        self._paid += self._sent
        self._before, self._is_estimate = usage, is_estimate
        self._forget()
        self.attempts += 1

    def _forget(self) -> None:
        self._sent = False
        self._reported: dict[str, int] = {}
        self._is_final = False
        self._bytes = 0
        self._is_unread = False

    def sent(self) -> None:
        """The request is on its way."""
        self._sent = True

    @property
    def may_cost_more(self) -> bool:
        """Whether what is reserved for the call pays for one more attempt."""
        return self._paid + self._sent < self._request.paid

    def declined(self) -> None:
        """The service answered with an error: such an attempt costs nothing."""
        self._sent = False

    def report(self, usage: Any, *, final: bool) -> None:
        """Take the usage that the service reports for the attempt so far; `final`: it counts the whole answer."""
        names = {
            "input_tokens": "input_tokens",
            "output_tokens": "output_tokens",
            "cache_read_tokens": "cache_read_input_tokens",
            "cache_write_tokens": "cache_creation_input_tokens",
        }
        found = {ours: _count(getattr(usage, theirs, None)) for ours, theirs in names.items()}
        self._reported.update({name: count for name, count in found.items() if count is not None})
        self._is_final = self._is_final or (final and found["output_tokens"] is not None)

    def received(self, text: str) -> None:
        """Count a piece of the answer."""
        self._bytes += len(text.encode("utf-8", "replace"))

    def unread(self) -> None:
        """Part of what the model wrote cannot be read or is not shown, and only the final count includes it."""
        self._is_unread = True

    def spent(self) -> tuple[Usage, bool]:
        """Return what the call used up so far, and whether part of that is an upper bound."""
        if not self._sent:
            return self._before, self._is_estimate
        counts = dict(self._reported)
        if "input_tokens" not in counts:
            counts["input_tokens"] = estimate(self._request)
        if not self._is_final:
            most = self._request.max_tokens
            received = most if self._is_unread else min(most, -(-self._bytes // _BYTES_A_TOKEN))
            counts["output_tokens"] = max(counts.get("output_tokens", 0), received)
        known = self._is_final and "input_tokens" in self._reported
        return self._before + Usage(**counts), self._is_estimate or not known


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return value if is_count else None


_OFTEN = 0.2  # seconds between two words about what a call used up


class Call:
    """One call and its result; the first thread that has one reports it."""

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
        """Send what the call used so far: `now`, or when that was not sent for a while."""
        if not now and time.monotonic() - self._spoke < _OFTEN:
            return
        self._spoke = time.monotonic()
        usage, is_estimate = self.tally.spent()
        fields = {"usage": vars(usage), "is_estimate": is_estimate, "attempts": self.tally.attempts}
        with self._lock:
            if not self._is_over:
                self._line.say("spent", number=self._number, **fields)

    def repeat(self, message: str, delay: float) -> None:
        """Report why there is one more attempt, `delay` seconds from now."""
        with self._lock:
            if not self._is_over:
                fields = {"attempt": self.tally.attempts, "message": message, "delay": round(delay, 3)}
                self._line.say("repeat", number=self._number, **fields)

    def end(self, answer: Answer, *, last: bool = False) -> bool:
        """Send the answer, with what the call used up; False when another thread did before."""
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
        text = f"{message}; before that: {self.note}" if self.note else message
        if self.end(Answer(ending=ending, message=text, rule=f"process:{ending}"), last=True):
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
        """Send one line; ends the process when the reader is gone."""
        data = wire.line(word, **fields)
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._fd, data) :]
        except OSError:
            os._exit(0)
