"""The fake Messages API: a real HTTP server on loopback, on a port of its own."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes.messages import thinking, validation
from tests.fakes.messages.counting import SMALLEST_CACHED, PromptCache, count
from tests.fakes.messages.journal import Entry, Journal
from tests.fakes.messages.refusing import RequestError
from tests.fakes.messages.replies import Reply
from tests.fakes.messages.script import Asked, as_script
from tests.fakes.messages.sending import Sending

KEY = "fake-key-0123456789abcdef"
"""The key that the fake service accepts unless a test sets another."""
IDENTITY = "fake-identity-token-0123456789abcdef"
"""The token of a workload that is exchanged for a key."""
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = ("grant_type", "assertion", "federation_rule_id", "organization_id")
MOST_BYTES = 32 * 1024 * 1024
_ROUTES = {
    ("POST", "/v1/messages"): "messages",
    ("POST", "/v1/messages/count_tokens"): "count_tokens",
    ("GET", "/v1/models"): "models",
    ("POST", "/v1/oauth/token"): "token",
}
_DATE = "2026-01-01T00:00:00Z"


class FakeMessages:
    """The service while it stands open: `with FakeMessages(script) as api`.

    `script`: what `as_script` takes. `models`: names that there are; none given: every name. `smallest_cached`: tokens
    from which a beginning is kept. `sink`: gets each exchange as data when it has ended. What a policy raises is
    answered with 400, and raised again at the end of the block.
    """

    def __init__(
        self,
        script: Any,
        *,
        key: str = KEY,
        models: tuple[str, ...] = (),
        smallest_cached: int = SMALLEST_CACHED,
        sink: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.script = as_script(script)
        self.key = key
        self.keys = frozenset({key})
        self.models = models
        self.journal = Journal(sink)
        self.closing = threading.Event()
        self.problem: Exception | None = None
        self._cache = PromptCache(smallest_cached)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._seen: dict[str, int] = {}
        self._turn = 0
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self.problem and error is None:
            raise self.problem

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def env(self) -> dict[str, str]:
        """What a client needs in its environment; no proxy is asked about loopback."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self.key,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    @property
    def now(self) -> float:
        """Seconds since the server began."""
        return time.monotonic() - self._began

    def serve(self, entry: Entry, headers: Mapping[str, str], body: bytes) -> Reply | dict[str, Any]:
        """Return what is answered to a request: a reply of the script, or data; raises RequestError."""
        if not entry.route:
            raise RequestError("Not Found", 404, "not_found_error")
        entry.headers = {
            name: value for name, value in headers.items() if name not in ("authorization", "x-api-key")
        }
        if entry.route == "token":
            return self._token(_parsed(body))
        entry.credential = validation.credential(headers, self.keys)
        validation.version(headers)
        if entry.route == "models":
            return {"data": [_model(name) for name in self.models], "has_more": False}
        entry.body = _parsed(body)
        if entry.route == "count_tokens":
            return {"input_tokens": count(validation.counted(entry.body, self.models))}
        asked = validation.asked(entry.body, self.models)
        thinking.check(asked)
        with self._lock:
            attempt = self._seen[entry.digest] = self._seen.get(entry.digest, 0) + 1
            self._turn += 1
            try:
                reply = self.script(Asked(asked, entry.headers, self._turn - 1, attempt))
                return thinking.signed(reply, asked)
            except RequestError:
                raise
            except Exception as error:
                self.problem = self.problem or error
                raise RequestError(f"the script fails: {error!r}") from error

    def _token(self, body: Any) -> dict[str, Any]:
        """Exchange the token of a workload for a key; the request's body, which holds it, is not noted."""
        lacking = [name for name in _EXCHANGE if not isinstance(body.get(name), str)]
        if lacking or body["grant_type"] != _GRANT:
            raise RequestError(f"invalid_request: {', '.join(lacking) or 'grant_type'}")
        if body["assertion"] != IDENTITY:
            raise RequestError("invalid_grant", 401, "authentication_error")
        token = f"fake-access-token-{len(self.keys)}"
        self.keys |= {token}
        return {"access_token": token, "token_type": "Bearer", "expires_in": 600}

    def charge(self, body: dict[str, Any]) -> Any:
        """Return the input tokens of a request, as the prompt cache has it."""
        with self._lock:
            return self._cache.charge(body)


def _parsed(body: bytes) -> Any:
    if len(body) > MOST_BYTES:
        raise RequestError("Request exceeds the maximum size", 413, "request_too_large")
    try:
        return json.loads(body)
    except ValueError as error:
        raise RequestError(f"The request body is not valid JSON: {error}") from error


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": _DATE,
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": validation.MOST_OUTPUT,
    }


class _Server(ThreadingHTTPServer):
    """Connections in threads of their own; they are closed with the server, whatever they wait for."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, api: FakeMessages) -> None:
        self.api = api
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Exchange)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: that a client leaves is part of the game."""

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed already
        super().server_close()


class _Exchange(BaseHTTPRequestHandler):
    """One connection with its requests."""

    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "fake-messages"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 -- the name it is called by
        """Say nothing; there is a journal."""

    def do_POST(self) -> None:
        """Answer a request with a body."""
        self._answer(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def do_GET(self) -> None:
        """Answer a request without a body."""
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        api = self.server.api
        path = self.path.partition("?")[0]
        route = _ROUTES.get((self.command, path), "")
        entry = api.journal.open(route, api.now)
        sending = Sending(self, api, entry)
        try:
            headers = {name.lower(): value for name, value in self.headers.items()}
            served = api.serve(entry, headers, body)
            if isinstance(served, Reply):
                sending.reply(served)
            else:
                sending.data(200, served)
        except RequestError as error:
            sending.error(error.status, error.error, error.message)
        except (BrokenPipeError, ConnectionResetError):
            api.journal.close(entry, "left")
            self.close_connection = True
        api.journal.close(entry, "whole")
