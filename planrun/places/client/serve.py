"""Answers requests about one URL, one after another, until its socket is closed."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys

from planrun.places.client.objects import Objects, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PR_SET_DUMPABLE = 4


def main(_words: Sequence[str]) -> int:
    """Serve; returns the exit code."""
    if sys.platform == "linux":  # it holds credentials: other processes of the user cannot read its memory
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket(fileno=os.dup(0)) as connection:
        objects: Objects | None = None
        while (request := _receive(connection)) is not None:
            header, data, fds = request
            said: dict[str, Any]
            body = b""
            try:
                if header["verb"] == "open":
                    os.environ.update(header["environ"])
                    objects = Objects(header["url"], header["limit"])
                    said = {"atomic": objects.atomic}
                else:
                    assert objects is not None
                    said, body = _answer(objects, header, data, fds)
            except Unusable as error:
                said = {"unusable": str(error)}
            except Exception as error:  # noqa: BLE001 - libraries of object stores raise anything
                text = " ".join(str(error).split()) or type(error).__name__
                short = f"{type(error).__name__}: {text}"[:300] if "://" not in text else type(error).__name__
                said = {"failed": short}
            for fd in fds:
                os.close(fd)
            head = json.dumps(said).encode()
            try:
                connection.sendall(len(head).to_bytes(4, "big") + len(body).to_bytes(4, "big") + head + body)
            except OSError:  # planrun is gone
                os._exit(1)
    os._exit(0)  # threads of libraries may still wait for a server


def _answer(
    objects: Objects, header: dict[str, Any], data: bytes, fds: list[int]
) -> tuple[dict[str, Any], bytes]:
    key = header["key"]
    match header["verb"]:
        case "read":
            found = objects.read(key, header["most"])
            return {"found": found is not None}, found or b""
        case "write":
            objects.write(key, data)
        case "create":
            return {"created": objects.create(key, data)}, b""
        case "fetch":
            return {"found": objects.fetch(key, fds[0], header["most"])}, b""
        case "send":
            objects.send(key, fds[0])
        case "list":
            return {}, json.dumps(objects.list(key)).encode()
        case "find":
            row = objects.find(key)
            return ({"found": True, "bytes": row[0], "modified": row[1]} if row else {"found": False}), b""
        case "remove":
            objects.remove(key)
        case _:
            return {"now": objects.now()}, b""
    return {}, b""


def _receive(connection: socket.socket) -> tuple[dict[str, Any], bytes, list[int]] | None:
    sizes, fds, _, _ = socket.recv_fds(connection, 8, 1)
    while sizes and len(sizes) < 8:
        sizes += connection.recv(8 - len(sizes))
    if not sizes:
        return None
    head = _all(connection, int.from_bytes(sizes[:4], "big"))
    return json.loads(head), _all(connection, int.from_bytes(sizes[4:], "big")), fds


def _all(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            os._exit(1)
        data += piece
    return bytes(data)
