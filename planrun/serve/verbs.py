"""The verbs that forms started, each a process of its own, and what they print; they go on when the server ends."""

from __future__ import annotations

import threading
import time

from planrun.cliutil.ownverb import OwnVerb
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNS = ("resume", "retry")  # verbs that run steps, and end with the run
_ANSWERED_BY = 20.0  # seconds that a page waits for the verb
_RUNNING_BY = 2.0  # a run takes longer to end; the page then shows that


class Said(Record):
    """A verb that runs steps: its command, when it was started, its end (None: it runs), and what it printed."""

    command: str
    at: str
    code: int | None
    printed: str


class Verbs:
    """Starts verbs, and keeps for each run the last one that runs steps."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[OwnVerb, str]] = {}
        self._lock = threading.Lock()

    def perform(self, words: Sequence[str]) -> str:
        """Start a verb, wait for its end for a while, and return what it said; raises OSError."""
        if words[0] in _RUNS:
            name, run, *_ = words
            with self._lock:
                if (known := self._latest.get(run)) and known[0].code is None:
                    return f"planrun {known[0].words[0]} goes on: nothing was started"
                verb = OwnVerb(words)
                self._latest[run] = (verb, time.strftime("%H:%M:%S", time.gmtime()))
            if known:
                known[0].close()
            code = verb.wait(_RUNNING_BY)
            if code and (error := verb.error()):
                return f"{error} (exit code {code})"
            return (
                f"planrun {name} goes on" if code is None else f"planrun {name} ended with exit code {code}"
            )
        verb = OwnVerb(words)
        code = verb.wait(_RUNNING_BY if words[0] == "cancel" else _ANSWERED_BY)
        rows = [row.removeprefix(f"run {words[1]}: ") for row in verb.printed()]
        error = verb.error()
        verb.close()
        if code is None:
            return rows[0] if rows else f"planrun {words[0]} goes on"
        if code and error:
            return f"{error} (exit code {code})"
        return rows[0] if rows else f"planrun {words[0]} ended with exit code {code}"

    def said(self, run: str) -> Said | None:
        """Return what the last verb that ran steps of a run said so far."""
        with self._lock:
            if (known := self._latest.get(run)) is None:
                return None
            verb, at = known
            code = verb.code
            text = verb.text().rstrip()
        return Said(command=f"planrun {' '.join(verb.words)}", at=at, code=code, printed=text)

    def goes_on(self, run: str) -> bool:
        """Return whether a verb that runs steps of a run has not ended."""
        with self._lock:
            return run in self._latest and self._latest[run][0].code is None

    def version(self, run: str) -> tuple[object, ...]:
        """Return what changes when such a verb starts or ends."""
        with self._lock:
            verb, at = self._latest.get(run, (None, ""))
            return (at, verb.code) if verb else ()
