"""A trace that a run continues: the caller's `TRACEPARENT` and `TRACESTATE`, and those of a run that is resumed.

The form is that of W3C Trace Context, level 1 and 2; variables carry it as OpenTelemetry describes it.
"""

from __future__ import annotations

import os

from planrun.sha256 import span_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MOST_STATE = 8192  # characters of a tracestate; a longer one is dropped, as no header would carry it
_HEX = frozenset("0123456789abcdef")


def continued(environ: Mapping[str, str], before: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the trace of a run as it is recorded: id, and parent, flags and state of the one that it continues.

    `before`: the trace of the run that is resumed, which stays; the caller's is then a `link`.
    """
    incoming = environ.get("TRACEPARENT", "").strip()
    parts = parsed(incoming)
    if before and before.get("id"):
        kept = {name: str(value) for name, value in before.items() if name != "link"}
        return {**kept, "link": incoming} if parts and parts[0] != kept["id"] else kept
    if parts is None:
        return {"id": os.urandom(16).hex()}
    trace, parent, flags = parts
    state = environ.get("TRACESTATE", "").strip()
    found = {"id": trace, "parent": parent, "flags": flags}
    return (
        {**found, "state": state}
        if 0 < len(state) <= _MOST_STATE and state.isascii() and state.isprintable()
        else found
    )


def parsed(text: str) -> tuple[str, str, str] | None:
    """Return trace id, span id and flags of a traceparent; None for one that is not valid."""
    parts = text.split("-")
    if len(parts) < 4 or (parts[0] == "00" and len(parts) != 4) or parts[0] == "ff":
        return None
    version, trace, span, flags = parts[:4]
    for part, size in ((version, 2), (trace, 32), (span, 16), (flags, 2)):
        if len(part) != size or not _HEX.issuperset(part):
            return None
    if trace == "0" * 32 or span == "0" * 16:
        return None
    return trace, span, flags


def carried(env: dict[str, str], trace: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that steps inherit with the state of the run's trace in place of the caller's."""
    kept = {name: value for name, value in env.items() if name not in ("TRACEPARENT", "TRACESTATE")}
    return {**kept, "TRACESTATE": trace["state"]} if trace.get("state") else kept


def tool_span(run: str, agent: str, call: str) -> str:
    """Return the id of the span of an agent's call of a tool."""
    return span_id(run, "", "tool", agent, call)


def within(env: Mapping[str, str], span: str) -> dict[str, str]:
    """Return the variable of a process that is part of another span than its step's attempt; empty without a trace."""
    outer = env.get("TRACEPARENT", "")
    return {"TRACEPARENT": f"{outer[:36]}{span}{outer[52:]}"} if parsed(outer) else {}
