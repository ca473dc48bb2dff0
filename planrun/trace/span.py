"""A span as plain data, and the ids and times of spans."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.facts import epoch
from planrun.sha256 import span_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Kind = Literal["internal", "server", "client"]
    Status = Literal["unset", "ok", "error"]


class Span(Record):
    """One span; times are nanoseconds since 1970, `end` is 0 while it is open.

    `events`: time, name and attributes of what happened meanwhile. `links`: trace and span id of other spans.
    """

    name: str
    span: str
    parent: str
    start: int
    end: int = 0
    kind: Kind = "internal"
    status: Status = "unset"
    message: str = ""
    attributes: Mapping[str, Any] = {}
    events: tuple[tuple[int, str, Mapping[str, Any]], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Trace(Record):
    """The spans of a run: parents come before their children."""

    trace: str
    flags: str
    state: str
    resource: Mapping[str, Any]
    spans: tuple[Span, ...]


def nanoseconds(at: str) -> int:
    """Return a stamp of the ledger, which has milliseconds, in nanoseconds since 1970."""
    return round(epoch(at) * 1000) * 1_000_000


def session_span(run: str, number: int) -> str:
    """Return the id of the span of a run from its start, or its resume number `number`, to where it ended."""
    return span_id(run, "", "session", str(number))


def step_span(run: str, step: str, number: int) -> str:
    """Return the id of the span of a step in a session."""
    return span_id(run, "", "step", step, str(number))


def attempt_span(run: str, step: str, n: int) -> str:
    """Return the id of the span of an attempt: the one that its process was given in TRACEPARENT."""
    return span_id(run, step, str(n))


def named_span(run: str, kind: str, name: str) -> str:
    """Return the id of the span of an agent, a call to a model or a planning."""
    return span_id(run, "", kind, name)
