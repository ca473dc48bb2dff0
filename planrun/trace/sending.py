"""Send spans to a collector by OTLP over HTTP, with OpenTelemetry's exporter; needs the extra `otel`."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from planrun.errors import InvalidInput
from planrun.trace.otlp import SCHEMA, SCOPE
from planrun.trace.span import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.trace.span import Span

_BATCH = 512  # spans in a request, as OpenTelemetry's own processor sends
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TRACES = "/v1/traces"


def require_otel() -> None:
    """Raise InvalidInput when OpenTelemetry is not installed."""
    for name in ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise InvalidInput(
                "OpenTelemetry is not installed, and spans cannot be sent without it; "
                "install it with: pip install 'planrun[otel]'"
            )


def endpoint_of(url: str) -> str:
    """Return the URL of traces for the URL of a collector: a bare one gets the path `/v1/traces`."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidInput(f"expected the URL of a collector, e.g. http://localhost:4318, got {url}")
    return url if parts.path.strip("/") else url.rstrip("/") + _TRACES


def without_credentials(url: str) -> str:
    """Return a URL as messages show it: without a user and a password, and without a query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class Sender:
    """Sends spans in batches; `failure` is why the last batch was not taken, in one line."""

    def __init__(self, endpoint: str = "", timeout: float | None = None) -> None:
        """`endpoint`: the URL of traces; empty: by the variables OTEL_EXPORTER_OTLP_*. `timeout`: of a batch."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        self.failure = ""
        self._last = _LastMessage()
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self._last)
        logger.propagate = False
        self._exporter = OTLPSpanExporter(endpoint=endpoint or None, timeout=timeout)
        _converted(Trace(trace="1", flags="01", state="", resource={}, spans=()), ())  # loads what it needs

    def send(self, trace: Trace, spans: Sequence[Span]) -> int:
        """Send spans that ended; return how many were taken, from the first one on."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        for start in range(0, len(spans), _BATCH):
            self._last.text = ""
            batch = _converted(trace, spans[start : start + _BATCH])
            if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
                self.failure = self._last.text or "the collector did not take them"
                return start
        self.failure = ""
        return len(spans)


def _converted(trace: Trace, spans: Sequence[Span]) -> list[Any]:
    """Return spans as OpenTelemetry's exporter takes them."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

    # What the environment says of the resource, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, comes first.
    resource = Resource(dict(trace.resource), SCHEMA).merge(_of_environment())
    scope = InstrumentationScope(SCOPE, str(trace.resource.get("service.version", "")), SCHEMA)
    state = TraceState.from_header([trace.state]) if trace.state else TraceState()
    flags = TraceFlags(int(trace.flags, 16))

    def context(span: str, of: str = trace.trace, *, remote: bool = False) -> SpanContext:
        return SpanContext(int(of, 16), int(span, 16), remote, flags, state)

    kinds = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
    codes = {"unset": StatusCode.UNSET, "ok": StatusCode.OK, "error": StatusCode.ERROR}
    return [
        ReadableSpan(
            name=span.name,
            context=context(span.span),
            parent=context(span.parent) if span.parent else None,
            resource=resource,
            attributes=dict(span.attributes),
            events=[Event(name, dict(facts), at) for at, name, facts in span.events],
            links=[Link(context(to, of)) for of, to in span.links],
            kind=kinds[span.kind],
            status=Status(codes[span.status], span.message if span.status == "error" else None),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=scope,
        )
        for span in spans
    ]


def _of_environment() -> Any:
    from opentelemetry.sdk.resources import OTELResourceDetector

    return OTELResourceDetector().detect()


class _LastMessage(logging.Handler):
    """Keeps the last message of OpenTelemetry's exporter, which reports failures by its log alone."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the cause: the message after it says only that there was one."""
        text = " ".join(record.getMessage().split())
        if not (self.text and text.startswith("Failed to export")):
            self.text = text.partition(" encountered while ")[0].removeprefix("Transient error ")
