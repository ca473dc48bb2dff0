"""`planrun serve` answers malformed requests with 4xx, and slow connections lock nobody out."""

from __future__ import annotations

import random
import socket
import time
from typing import TYPE_CHECKING

from tests.serve.client import Serving

if TYPE_CHECKING:
    from pathlib import Path

FORM = "Content-Type: application/x-www-form-urlencoded"
MALFORMED = {
    "long length": f"POST /runs/a/answer HTTP/1.1\r\nHost: HOST\r\n{FORM}\r\nContent-Length: {'9' * 5000}\r\n\r\n",
    "two lengths": f"POST /x HTTP/1.1\r\nHost: HOST\r\n{FORM}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "negative length": f"POST /x HTTP/1.1\r\nHost: HOST\r\n{FORM}\r\nContent-Length: -1\r\n\r\n",
    "many fields": f"GET /?{'&'.join(f'a{n}=1' for n in range(30))} HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "many fields of a form": f"POST /x HTTP/1.1\r\nHost: HOST\r\n{FORM}\r\nContent-Length: 599\r\n\r\n{'a&' * 299}a",
    "bracket": "GET http://[x/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "NUL": "GET /runs/%00 HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "method": "BREW / HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "version": "GET / HTTP/9.9\r\nHost: HOST\r\n\r\n",
    "odd version": "GET / HTTP/x\r\nHost: HOST\r\n\r\n",
    "words": "GET / a b c\r\n\r\n",
    "long line": f"GET /{'a' * 70000} HTTP/1.1\r\n\r\n",
    "many headers": "GET / HTTP/1.1\r\n" + "a: b\r\n" * 200 + "\r\n",
    "cookie": "GET / HTTP/1.1\r\nHost: HOST\r\nCookie: \xff=;;==\r\n\r\n",
}


def asked(port: int, data: bytes) -> bytes:
    """Return the response to bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except ConnectionResetError:  # the rest of the request was not read
            pass
    return b"".join(parts)


def test_malformed_requests_are_refused(tmp_path: Path) -> None:
    """Each gets a status of 4xx; drawn bytes make no error of planrun either."""
    chance = random.Random(5)
    with Serving(tmp_path) as served:
        host = f"127.0.0.1:{served.port}"
        for name, text in MALFORMED.items():
            reply = asked(served.port, text.replace("HOST", host).encode("latin-1"))
            assert reply.startswith(b"HTTP/1.1 4"), (name, reply[:200])
        texts = [text.replace("HOST", host).encode("latin-1")[:400] for text in MALFORMED.values()]
        for _ in range(100):
            data = bytearray(chance.choice(texts))
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(data))
                data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
            assert b" 500 " not in asked(served.port, bytes(data))[:40]
        assert served.get("/").status == 200
        served.process.terminate()
        assert served.process.communicate()[1].count("\n") == 1  # what it says at its start


def test_slow_connections_lock_nobody_out(tmp_path: Path) -> None:
    """Of 64 that send no whole request the oldest give way; the others end when their time is over."""
    with Serving(tmp_path) as served:
        slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(64)]
        for each in slow:
            each.sendall(b"GET / HTTP/1.1\r\nX: ")
        time.sleep(0.5)
        assert served.get("/").status == 200
        began = time.monotonic()
        while not _is_ended(slow[-1]):  # a byte in time does not help
            assert time.monotonic() < began + 30
        for each in slow:
            each.close()


def _is_ended(connection: socket.socket) -> bool:
    connection.settimeout(0.5)
    try:
        connection.sendall(b"y")
        return not connection.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True
