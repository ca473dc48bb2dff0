"""A receiver of notifications on loopback, which answers by script and keeps what it got."""

from __future__ import annotations

import http.server
import json
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence


class Answer:
    """One answer of the receiver: status, headers, text; `seconds` passes before it, `reset` drops the connection."""

    def __init__(
        self,
        status: int = 200,
        headers: dict[str, str] | None = None,
        text: str = "",
        *,
        seconds: float = 0.0,
        reset: bool = False,
    ) -> None:
        self.status = status
        self.headers = headers or {}
        self.text = text
        self.seconds = seconds
        self.reset = reset


class Got:
    """One request: path, headers by name in small letters, body, and when it came."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body
        self.at = time.monotonic()

    @property
    def json(self) -> dict[str, Any]:
        """The body as data."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Receiver:
    """The server; the last answer of the script is repeated."""

    def __init__(self, *script: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.script: Sequence[Answer] = script or (Answer(),)
        self.got: list[Got] = []
        self.came = threading.Event()
        self._released = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "https" if tls else "http"
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
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.server_address[1])

    def url(self, path: str = "/hook") -> str:
        """Return an address of the receiver."""
        return f"{self._scheme}://127.0.0.1:{self.port}{path}"

    def events(self) -> list[str]:
        """Return the events of the documents that came, in order."""
        return [str(got.json.get("event")) for got in self.got]

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                number = len(receiver.got)
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(self.path, headers, body))
                receiver.came.set()
                answer = receiver.script[min(number, len(receiver.script) - 1)]
                receiver._released.wait(answer.seconds)
                if answer.reset:
                    linger = struct.pack("ii", 1, 0)  # close with a reset
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.connection.close()
                    return
                self._answer(answer)

            def _answer(self, answer: Answer) -> None:
                data = answer.text.encode()
                try:
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # the client gave up
                    return

            def log_message(self, *_: object) -> None:
                return

        return Handler
