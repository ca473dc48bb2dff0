"""How an answer goes over the wire: whole, in pieces, late, or broken in one of the ways a fault says."""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from tests.fakes.messages import stream
from tests.fakes.messages.counting import Tokens
from tests.fakes.messages.replies import PLACES, Fault, Reply

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

    from tests.fakes.messages.journal import Entry
    from tests.fakes.messages.server import FakeMessages

PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>proxy</body></html>\n"
BEAT = 0.05
"""Seconds between two looks whether the client has left, and between two pings of a trickle."""
FLOOD = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
    + b"never " * 10_000
    + b'"}}\n\n'
)
PING = b'event: ping\ndata: {"type":"ping"}\n\n'


class Sending:
    """The answer to one request."""

    def __init__(self, exchange: BaseHTTPRequestHandler, api: FakeMessages, entry: Entry) -> None:
        self._exchange = exchange
        self._api = api
        self._entry = entry
        self._name = f"{entry.number:06}"
        self._is_chunked = False

    def data(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        """Send JSON."""
        self._whole(status, json.dumps(data).encode(), "application/json", headers or {})

    def error(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Send an error as the service does."""
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        self._entry.message = message
        self._entry.should_retry = sent.get("x-should-retry", "")
        self._entry.retry_after = (
            float(sent["retry-after-ms"]) / 1000
            if "retry-after-ms" in sent
            else _seconds(sent.get("retry-after"))
        )
        self.data(status, _error(kind, message, self._name), sent)

    def reply(self, reply: Reply) -> None:
        """Send a reply of the script."""
        body = self._entry.body
        reply = reply if reply.usage else stream.fitted(reply, body["max_tokens"])
        self._wait(reply.first_byte)
        fault = reply.fault
        if fault:
            self._entry.fault = fault.kind if fault.kind == "status" else f"{fault.kind} at {fault.at}"
        if fault and fault.kind == "status":
            self.error(fault.status, fault.error, fault.message, dict(fault.headers))
            return
        spent = stream.usage(reply, self._api.charge(body))
        self._entry.stop_reason = reply.stop_reason
        self._entry.text = "".join(map(stream.grown, reply.blocks))
        if fault and fault.kind in ("html", "broken_json", "missing_fields"):
            self._no_message(fault.kind, spent)
        elif body.get("stream"):
            self._stream(reply, spent)
        else:
            self._message(reply, spent)

    def _no_message(self, kind: str, spent: Tokens) -> None:
        """Send something else than a message; a proxy's page costs nothing, a damaged answer does."""
        self._entry.stop_reason = None
        self._entry.ended = "broken"
        if kind == "html":
            self._whole(200, PAGE, "text/html", {})
            return
        self._entry.due = spent
        if not self._entry.body.get("stream"):
            data = b'{"id": "msg_1", "type": "message"}' if kind == "missing_fields" else b'{"id": "msg_'
            self._whole(200, data, "application/json", {})
            return
        data = b'{"type":"message_start","message":{"id":"msg_1","type":"message"}}'
        if kind == "broken_json":
            data = data[:30]
        self._head(200, "text/event-stream", {})
        self._send(b"event: message_start\ndata: " + data + b"\n\n")
        self._send(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        self._end()

    def _message(self, reply: Reply, spent: Tokens) -> None:
        message = stream.message(reply, self._entry.body["model"], f"msg_{self._name}", spent)
        self._entry.due = spent
        if reply.fault is None:
            self._entry.told = spent
            self.data(200, message)
            return
        if reply.fault.at == "head":
            self._strike(reply.fault)
            return
        data = json.dumps(message).encode()
        self._head(200, "application/json", {"content-length": str(len(data))})
        self._send(data[: len(data) // 2])
        self._strike(reply.fault)

    def _stream(self, reply: Reply, spent: Tokens) -> None:
        fault = reply.fault
        frames = list(stream.frames(reply, self._entry.body["model"], f"msg_{self._name}", spent))
        if fault and fault.at == "head":
            self._entry.due = spent.with_output(0)
            self._strike(fault)
            return
        self._head(200, "text/event-stream", {"cache-control": "no-cache"})
        self._entry.due = spent.with_output(0)
        for frame in frames:
            if fault and PLACES.index(fault.at) <= PLACES.index(frame.place):
                self._strike(fault)
                return
            self._wait(reply.pace)
            # Noted before it is sent: a client that acts on it at once finds it in the journal.
            self._entry.due = frame.due
            self._entry.told = frame.told or self._entry.told
            if frame is frames[-1]:
                self._entry.ended = "given" if reply.events else "whole"
            self._send(frame.data)
        self._end()

    def _strike(self, fault: Fault) -> None:
        """Let the fault happen; the connection is of no use afterwards, unless the answer ends properly."""
        # The client ends a silent answer: it disconnects, and the journal records that.
        self._entry.ended = "open" if fault.kind in ("stall", "trickle", "flood") else "broken"
        # A client may send its next request on a connection whose answer has ended, before it is closed.
        self._exchange.close_connection = fault.kind not in ("end", "error", "bad_json")
        if fault.kind == "end":
            self._end()
        elif fault.kind == "reset":
            self._reset()
        elif fault.kind == "bad_json":
            self._send(b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"del\n\n')
            self._end()
        elif fault.kind == "bad_chunk":
            self._exchange.wfile.write(b"zz\r\nno number\r\n")
        elif fault.kind == "error":
            self._entry.message = fault.message
            data = json.dumps(_error(fault.error, fault.message, self._name)).encode()
            self._send(b"event: error\ndata: " + data + b"\n\n")
            self._end()
        elif fault.kind == "flood":
            while not self._api.closing.is_set():
                self._send(FLOOD)
        elif fault.kind in ("stall", "trickle"):
            self._until_left(PING if fault.kind == "trickle" else b"")

    def _reset(self) -> None:
        connection = self._exchange.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Without the shutdown that closing it politely would begin with: the peer would see an end, not a reset.
        os.close(connection.detach())

    def _until_left(self, ping: bytes) -> None:
        connection = self._exchange.connection
        while not self._api.closing.is_set():
            readable, _, _ = select.select([connection], [], [], BEAT)
            if readable and not connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError("the client left")
            if ping:
                self._send(ping)
        self._entry.ended = "broken"

    def _wait(self, seconds: float) -> None:
        """Let time pass, but no longer than the server stands."""
        if seconds:
            self._api.closing.wait(seconds)

    def _whole(self, status: int, data: bytes, kind: str, headers: dict[str, str]) -> None:
        if self._entry.ended == "open":
            self._entry.ended = "whole"
        self._head(status, kind, {**headers, "content-length": str(len(data))})
        self._exchange.wfile.write(data)

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self._entry.status = status
        self._entry.answered = self._api.now
        self._is_chunked = "content-length" not in headers
        self._exchange.send_response(status)
        for name, value in {"content-type": kind, "request-id": f"req_{self._name}", **headers}.items():
            self._exchange.send_header(name, value)
        if self._is_chunked:
            self._exchange.send_header("transfer-encoding", "chunked")
        self._exchange.end_headers()

    def _send(self, data: bytes) -> None:
        chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n" if self._is_chunked else data
        self._exchange.wfile.write(chunk)

    def _end(self) -> None:
        if self._is_chunked:
            self._exchange.wfile.write(b"0\r\n\r\n")


def _seconds(text: str | None) -> float:
    """Return what a retry-after header says, a number of seconds or a date."""
    if not text:
        return 0.0
    try:
        return float(text)
    except ValueError:
        from email.utils import parsedate_to_datetime

        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())


def _error(kind: str, message: str, name: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{name}"}
