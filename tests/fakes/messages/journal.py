"""What the fake service saw, and what it thinks of the client."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.messages.counting import Tokens
from tests.fakes.messages.script import NO_REPLY

NOTHING = Tokens()
STORM = 3
"""Repeats of one request within STORM_SECONDS that are called a storm."""
STORM_SECONDS = 1.0
FINAL = (400, 401, 402, 403, 404, 413, 422)
"""A status after which the same request has no better luck."""


@dataclass
class Entry:
    """One exchange; times in seconds since the server began.

    `told`: usage that the client could know; `due`: what the service would bill. `ended`: `open`, `whole`, `given` (the
    events of the script, whatever they are), `broken` (by a fault of the script), `left` (by the client). `text`: what
    was answered, for `truncated accepted`.
    """

    number: int
    route: str
    arrived: float
    body: Any = None
    credential: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0
    fault: str = ""
    message: str = ""
    stop_reason: str | None = None
    told: Tokens = NOTHING
    due: Tokens = NOTHING
    ended: str = "open"
    answered: float = 0.0  # when the status line, or the last event of an error, was sent
    retry_after: float = 0.0
    should_retry: str = ""
    text: str = ""

    @property
    def digest(self) -> str:
        """Names the body: the same bytes of meaning have the same digest."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()

    @property
    def is_cut(self) -> bool:
        """Whether the answer that was sent is not whole."""
        return (
            self.route == "messages"
            and self.status == 200
            and (
                self.ended == "broken"
                or self.stop_reason in (None, "max_tokens", "model_context_window_exceeded")
            )
        )

    @property
    def is_answered(self) -> bool:
        """Whether nothing speaks for asking the same again, and nothing against it."""
        return (
            self.status == 200 and self.ended == "whole" and not self.is_cut and self.stop_reason != "refusal"
        )

    def as_data(self) -> dict[str, Any]:
        """Return the entry as it stands in a journal file."""
        return {**vars(self), "told": vars(self.told), "due": vars(self.due)}


@dataclass(frozen=True)
class Verdict:
    """Something that a client should not do: its name, the entry that shows it, and the fact in a sentence."""

    name: str
    number: int
    text: str


class Journal:
    """All exchanges in the order of their arrival; `sink` gets each as data when it has ended."""

    def __init__(self, sink: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.entries: list[Entry] = []
        self._sink = sink
        self._changed = threading.Condition()

    def open(self, route: str, arrived: float) -> Entry:
        """Begin an entry."""
        with self._changed:
            entry = Entry(len(self.entries), route, arrived)
            self.entries.append(entry)
            return entry

    def close(self, entry: Entry, ended: str) -> None:
        """End an entry; the first word about how it ended stays."""
        with self._changed:
            if entry.ended == "open":
                entry.ended = ended
            self._changed.notify_all()
        if self._sink:
            self._sink(entry.as_data())

    def settle(self, limit: float = 60.0) -> None:
        """Wait until no exchange is open; a test that is about what a stopped client left behind needs that."""
        with self._changed:
            if not self._changed.wait_for(lambda: all(e.ended != "open" for e in self.entries), limit):
                raise TimeoutError(f"an exchange is still open after {limit:g} s")

    @property
    def asked(self) -> list[Entry]:
        """The requests for a message, refused ones included."""
        return [entry for entry in self.entries if entry.route == "messages"]

    @property
    def told(self) -> Tokens:
        """Usage that clients could know, of all exchanges together."""
        return sum((entry.told for entry in self.asked), NOTHING)

    @property
    def due(self) -> Tokens:
        """What the service would bill for all exchanges together."""
        return sum((entry.due for entry in self.asked), NOTHING)

    def verdicts(self) -> list[Verdict]:
        """Return what a client did that it should not, in order."""
        found = [*_repeats(self.asked), *_accepted(self.asked)]
        found += [
            Verdict("unscripted", entry.number, NO_REPLY) for entry in self.asked if entry.message == NO_REPLY
        ]
        return sorted(found, key=lambda verdict: verdict.number)


def _repeats(entries: list[Entry]) -> Iterator[Verdict]:
    before: dict[str, list[Entry]] = {}
    for entry in entries:
        earlier = before.setdefault(entry.digest, [])
        if earlier and earlier[-1].is_answered:
            earlier.clear()  # the same question anew, not a repeat
        if earlier:
            yield from _repeat(earlier, entry)
        earlier.append(entry)


def _repeat(earlier: list[Entry], entry: Entry) -> Iterator[Verdict]:
    last = earlier[-1]
    if last.status in FINAL:
        yield Verdict("non-retryable retried", entry.number, f"asked again after {last.status}")
    elif last.should_retry == "false":
        yield Verdict("non-retryable retried", entry.number, "asked again after x-should-retry: false")
    elif last.stop_reason == "refusal" and last.ended == "whole":
        yield Verdict("non-retryable retried", entry.number, "asked again, unchanged, after a refusal")
    waited = entry.arrived - last.answered
    if last.retry_after and waited < last.retry_after:
        text = f"asked again after {waited:.3f} s, not {last.retry_after:g} s"
        yield Verdict("retry-after ignored", entry.number, text)
    if len(earlier) >= STORM and entry.arrived - earlier[-STORM].arrived < STORM_SECONDS:
        text = f"{STORM} repeats within {entry.arrived - earlier[-STORM].arrived:.3f} s"
        yield Verdict("retry storm", entry.number, text)


def _accepted(entries: list[Entry]) -> Iterator[Verdict]:
    cut: list[Entry] = []
    for entry in entries:
        said = [m for m in (entry.body or {}).get("messages") or () if isinstance(m, dict)]
        answers = json.dumps([m.get("content") for m in said if m.get("role") == "assistant"])
        for earlier in cut:
            if json.dumps(earlier.text)[1:-1] in answers:
                text = f"the cut answer of request {earlier.number} is told as one of the model"
                yield Verdict("truncated accepted", entry.number, text)
        if entry.is_cut and entry.text:
            cut.append(entry)
