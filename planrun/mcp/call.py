"""One question to the process that serves an MCP server: its tools, or a call of one of them.

The answer is printed. Exit code 0: it has one. 1: the tool failed. CHANGED: its description is not what was reviewed.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SOCKET = "s"
"""The name of the socket in the folder of a server."""
CHANGED = 4
_FAILED = 1
_MOST = 8 << 20  # bytes of an answer
_PAUSE = 0.02  # seconds between two tries to connect


def main(words: Sequence[str]) -> int:
    """Ask and print: `FOLDER SECONDS FILE`, where the file has the question."""
    folder, seconds, file = words
    with open(file, encoding="utf-8") as source:
        question = source.read()
    os.chdir(folder)  # the path of a socket has to be short
    try:
        until = time.monotonic() + float(seconds)
        with _connected(until) as link:
            link.sendall(question.encode() + b"\n")
            data = bytearray()
            while not data.endswith(b"\n"):
                link.settimeout(max(0.01, until - time.monotonic()))
                try:
                    piece = link.recv(1 << 16)
                except TimeoutError:
                    raise OSError("the MCP server did not answer in time") from None
                if not piece:
                    raise OSError("the MCP server has ended")
                data += piece
                if len(data) > _MOST:
                    raise OSError("the answer of the MCP server is too long")
        answer: dict[str, Any] = json.loads(data)
    except OSError as error:
        print(error.args[0] if len(error.args) == 1 else "the MCP server has ended")
        return _FAILED
    text = answer["text"]
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
    return {"answered": 0, "changed": CHANGED}.get(answer["kind"], _FAILED)


def _connected(until: float) -> socket.socket:
    """Return a connection; the other process may be about to start."""
    while True:
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(SOCKET)
        except FileNotFoundError:
            link.close()
            if time.monotonic() >= until:
                raise OSError("the MCP server did not start in time") from None
            time.sleep(_PAUSE)
        except OSError:
            link.close()
            raise OSError("the MCP server has ended") from None
        else:
            return link
