"""A real HTTP client of `planrun serve`, and the server as a process."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from planrun.model.record import Record
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self


class Reply(Record):
    """The response to a request."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.data.decode()


class Serving:
    """`planrun serve` in a folder; it is ended when the block ends."""

    def __init__(self, folder: Path, *words: str, variables: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "planrun", "serve", *words],
            cwd=folder,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})", self.url)
        assert found, self.process.communicate()
        self.port, self.token = int(found[1]), found[2]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.cookie = f"planrun_{self.port}={self.token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=LIMIT)

    def connect(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """Send a request; `headers` are exactly those."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie} if headers is None else headers
        for name, value in given.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Type", "application/x-www-form-urlencoded")
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body is not None else None)
        return connection

    def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        """Get a page; without `headers` as a browser that has the cookie."""
        return self._reply(self.connect("GET", path, headers=headers))

    def post(self, path: str, form: dict[str, Any], headers: dict[str, str] | None = None) -> Reply:
        """Send a form; without `headers` as a page of the server does."""
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie, "Origin": self.origin}
        return self._reply(self.connect("POST", path, urlencode(form, doseq=True), headers or given))

    @staticmethod
    def _reply(connection: http.client.HTTPConnection) -> Reply:
        response = connection.getresponse()
        found = Reply(status=response.status, headers=dict(response.getheaders()), data=response.read())
        connection.close()
        return found

    def csrf(self, run: str) -> str:
        """Return the token of the forms on the page of a run."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(f"/runs/{run}").text)
        assert found
        return found[1]

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield events as they come: name and data."""
        connection = self.connect("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        assert response.getheader("Content-Type") == "text/event-stream"
        name = ""
        try:
            while line := response.readline():
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text[7:]
                elif text.startswith("data: "):
                    yield name, json.loads(text[6:])
        finally:
            response.close()
            connection.close()
