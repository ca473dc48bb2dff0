"""A collector of OpenTelemetry on loopback: it decodes what comes by OTLP over HTTP, and keeps every span.

In a test: `with Collector() as collector:`, then `collector.url`, `collector.spans`. It refuses what is no request to
export traces, as a real one does: another path, another content type, bytes that are no message.
"""

from __future__ import annotations

import gzip
import http.server
import threading
from typing import TYPE_CHECKING, Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Received:
    """One span as the collector got it: ids in hex, attributes as plain data."""

    def __init__(self, span: Any, resource: dict[str, Any]) -> None:
        self.name = str(span.name)
        self.trace = span.trace_id.hex()
        self.span = span.span_id.hex()
        self.parent = span.parent_span_id.hex()
        self.kind = int(span.kind)
        self.start = int(span.start_time_unix_nano)
        self.end = int(span.end_time_unix_nano)
        self.error = span.status.code == 2
        self.state = str(span.trace_state)
        self.attributes = plain(span.attributes)
        self.links = [link.span_id.hex() for link in span.links]
        self.linked_traces = [link.trace_id.hex() for link in span.links]
        self.events = [str(event.name) for event in span.events]
        self.resource = resource


class Collector:
    """The server; `silent`: it takes requests and never answers, as a collector that hangs."""

    def __init__(self, *, silent: bool = False) -> None:
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.requests = 0
        self._silent = silent
        self._released = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the collector, without the path of traces."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def named(self, name: str) -> Received:
        """Return the one span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def parent_of(self, span: Received) -> str:
        """Return the name of the parent of a span; empty when the collector has none."""
        return next((each.name for each in self.spans if each.span == span.parent), "")

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests += 1
                if collector._silent:
                    collector._released.wait()
                    return
                status, answer = collector._take(
                    self.path, {name.lower(): value for name, value in self.headers.items()}, body
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if path != "/v1/traces":
            return 404, b""
        if headers.get("content-type") != "application/x-protobuf":
            return 415, b""
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        self.headers.append(headers)
        for batch in request.resource_spans:
            resource = plain(batch.resource.attributes)
            for scoped in batch.scope_spans:
                self.spans += [Received(span, resource) for span in scoped.spans]
        return 200, ExportTraceServiceResponse().SerializeToString()


def plain(attributes: Iterable[Any]) -> dict[str, Any]:
    """Return attributes as a mapping of plain data."""
    return {str(each.key): _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
