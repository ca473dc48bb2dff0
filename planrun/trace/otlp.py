"""A trace as one OTLP document in JSON, as collectors read it from files; needs no library.

Ids are hex and times are decimal texts, as the JSON encoding of OTLP wants them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.trace.span import Span, Trace

SCOPE = "planrun"
SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
"""The version of the semantic conventions whose names are used."""
_KINDS = {"internal": 1, "server": 2, "client": 3}
_STATUS = {"unset": 0, "ok": 1, "error": 2}
_SAMPLED = "01"


def document(trace: Trace) -> dict[str, Any]:
    """Return the ended spans of a trace as the data of one request to a collector."""
    spans = [_span(span, trace) for span in trace.spans if span.end]
    scope = {"name": SCOPE, "version": str(trace.resource.get("service.version", ""))}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(trace.resource)},
                "scopeSpans": [{"scope": scope, "spans": spans, "schemaUrl": SCHEMA}],
                "schemaUrl": SCHEMA,
            }
        ]
    }


def _span(span: Span, trace: Trace) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": trace.trace,
        "spanId": span.span,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "flags": 0x100 | int(trace.flags, 16),
    }
    if span.parent:
        found["parentSpanId"] = span.parent
    if trace.state:
        found["traceState"] = trace.state
    if span.events:
        found["events"] = [
            {"timeUnixNano": str(at), "name": name, "attributes": _attributes(facts)}
            for at, name, facts in span.events
        ]
    if span.links:
        found["links"] = [{"traceId": of, "spanId": to, "attributes": []} for of, to in span.links]
    if span.status != "unset":
        found["status"] = {"code": _STATUS[span.status], "message": span.message}
    return found


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in facts.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": _values(value)}}
    return {"stringValue": str(value)}


def _values(values: Iterable[Any]) -> list[dict[str, Any]]:
    return [_value(each) for each in values]
