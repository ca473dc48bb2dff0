"""The proxy of sandboxes refuses what two readers could read differently, and sends requests that it wrote itself."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from planrun.executors.sandbox import proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Origin:
    """A server on loopback that keeps what it got, and answers each connection once."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.5)
                data = b""
                try:
                    while part := connection.recv(65536):
                        data += part
                except OSError:
                    pass
                self.got.append(data)
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                except OSError:
                    continue


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A server that a step may reach."""
    served = Origin()
    yield served
    served.listener.close()


def answered(origin: Origin, request: bytes) -> bytes:
    """Return what the proxy answers; PORT stands for that of the server."""
    one, other = socket.socketpair()
    room = threading.BoundedSemaphore(1)
    room.acquire()
    hosts = (f"127.0.0.1:{origin.port}",)
    serving = threading.Thread(target=proxy._attend, args=(other, hosts, room), daemon=True)
    serving.start()
    one.settimeout(20)
    one.sendall(request.replace(b"PORT", str(origin.port).encode()))
    one.shutdown(socket.SHUT_WR)
    reply = b""
    with one:
        while part := one.recv(65536):
            reply += part
    serving.join(20)
    return reply


GET = b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\n"
POST = b"POST http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
HOST = b"Host: 127.0.0.1:PORT\r\n"
REFUSED = {
    "bare LF before Host": GET + b"X: a\nHost: evil\r\n" + HOST + b"\r\n",
    "bare CR": GET + b"X: a\rHost: evil\r\n" + HOST + b"\r\n",
    "NUL": GET + b"X: a\0b\r\n" + HOST + b"\r\n",
    "control": GET + b"X: a\x0bb\r\n" + HOST + b"\r\n",
    "LF in the address": b"GET http://127.0.0.1:PORT/\nHost: HTTP/1.1\r\n" + HOST + b"\r\n",
    "folded": GET + HOST + b"X: a\r\n b\r\n\r\n",
    "folded Host": GET + b"X: a\r\n Host: evil\r\n" + HOST + b"\r\n",
    "blank before the colon": GET + b"Host : 127.0.0.1:PORT\r\n\r\n",
    "no colon": GET + HOST + b"Xa\r\n\r\n",
    "no Host": GET + b"\r\n",
    "two Hosts": GET + HOST + HOST + b"\r\n",
    "other Host": GET + b"Host: evil\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "list of lengths": POST + b"Content-Length: 1, 1\r\n\r\na",
    "signed length": POST + b"Content-Length: +1\r\n\r\na",
    "length and chunks": POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "odd coding": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "version": b"GET http://127.0.0.1:PORT/ HTTP/1.1x\r\n" + HOST + b"\r\n",
    "method": b"G(T http://127.0.0.1:PORT/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "tab in the first line": b"GET\thttp://127.0.0.1:PORT/ x HTTP/1.1\r\n" + HOST + b"\r\n",
    "name beyond ASCII": GET + HOST + b"\xe4: a\r\n\r\n",
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_a_head_that_is_not_plain_is_refused(origin: Origin, request_: bytes) -> None:
    """Nothing of it reaches the server."""
    assert answered(origin, request_).startswith(b"HTTP/1.1 403")
    assert origin.got == []


def test_a_request_is_written_anew(origin: Origin) -> None:
    """Headers of the connection are left out, chunks framed anew, and nothing follows the body."""
    smuggled = b"GET http://evil/ HTTP/1.1\r\nHost: evil\r\n\r\n"
    head = b"Connection: keep-alive, X-Drop\r\nX-Drop: a\r\nProxy-Authorization: b\r\nX-Keep: c\r\n"
    assert answered(origin, GET + HOST + head + b"\r\n" + smuggled).endswith(b"ok")
    assert answered(origin, POST + b"Content-Length: 3\r\n\r\nabc" + smuggled).endswith(b"ok")
    chunks = b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nHost: evil\r\n\r\n"
    assert answered(origin, POST + chunks + smuggled).endswith(b"ok")
    host = f"host: 127.0.0.1:{origin.port}\r\n".encode()
    assert origin.got == [
        b"GET / HTTP/1.1\r\n" + host + b"x-keep: c\r\nconnection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"content-length: 3\r\nconnection: close\r\n\r\nabc",
        b"POST / HTTP/1.1\r\n"
        + host
        + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"3\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"-1\r\n",
        b"3\r\nab",
        b"\r\n",
    ],
)
def test_bad_chunks_end_the_connection(origin: Origin, body: bytes) -> None:
    """The server never sees the end of the body."""
    answered(origin, POST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    assert all(b"\r\n0\r\n\r\n" not in got for got in origin.got)
