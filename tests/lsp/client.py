"""An editor: a client of the Language Server Protocol that starts `planrun lsp` and talks to it over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Self

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path


class Editor:
    """One editor with its server; `notes` are the notifications that came, `texts` the documents that are open."""

    def __init__(self, folder: Path, encodings: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.notes: list[dict[str, Any]] = []
        self.texts: dict[str, str] = {}
        self._encodings = encodings
        self._next = 0
        self._came: Queue[dict[str, Any] | None] = Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "planrun", "lsp", "--stdio"],
            cwd=os.sep,  # an editor starts it anywhere
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return self._process.pid

    def __enter__(self) -> Self:
        self._reader.start()
        general = {"positionEncodings": list(self._encodings)} if self._encodings else {}
        self.capabilities = self.ask(
            "initialize",
            {"processId": os.getpid(), "rootUri": self.folder.as_uri(), "capabilities": {"general": general}},
        )["capabilities"]
        self.tell("initialized", {})
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.ask("shutdown", None)
            self.tell("exit", None)
            self.code = self._process.wait(timeout=LIMIT)
        finally:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert pipe is not None
                pipe.close()

    def uri(self, name: str) -> str:
        """Return the URI of a file in the folder."""
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> list[dict[str, Any]]:
        """Open a document, written to its file before, and return its first diagnostics."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(text.encode())
        return self.show(name, text)

    def show(self, name: str, text: str) -> list[dict[str, Any]]:
        """Open a document that has no file yet, and return its first diagnostics."""
        self.texts[name] = text
        document = {"uri": self.uri(name), "languageId": "yaml", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(name, 1)

    def type(self, name: str, text: str, version: int) -> None:
        """Replace the text of a document."""
        self.texts[name] = text
        identity = {"uri": self.uri(name), "version": version}
        self.tell("textDocument/didChange", {"textDocument": identity, "contentChanges": [{"text": text}]})

    def diagnostics(self, name: str, version: int) -> list[dict[str, Any]]:
        """Return the diagnostics of a version of a document, when they come."""
        uri = self.uri(name)
        while True:
            for note in self.notes:
                params = note.get("params") or {}
                is_it = note["method"] == "textDocument/publishDiagnostics" and params["uri"] == uri
                if is_it and params.get("version") == version:
                    found: list[dict[str, Any]] = params["diagnostics"]
                    return found
            self._take()

    def at(self, name: str, mark: str, shift: int = 0) -> dict[str, Any]:
        """Return the parameters of a request about the place where a text stands in a document, in UTF-16."""
        before, found, _ = self.texts[name].partition(mark)
        assert found, mark
        before += mark[:shift]
        row = before.rpartition("\n")[2]
        place = {"line": before.count("\n"), "character": len(row.encode("utf-16-le")) // 2}
        return {"textDocument": {"uri": self.uri(name)}, "position": place}

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its result; raises Refused."""
        self._next += 1
        self._send({"id": self._next, "method": method, "params": params})
        while True:
            answer = self._take()
            if answer.get("id") == self._next and "method" not in answer:
                if "error" in answer:
                    raise Refused(answer["error"]["message"])
                return answer["result"]

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def applied(self, edits: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
        """Return the texts of documents after edits, by name."""
        found = {}
        for uri, changes in edits.items():
            name = os.path.relpath(uri.removeprefix("file://"), self.folder)
            text = self.texts.get(name) or (self.folder / name).read_text("utf-8")
            for edit in sorted(changes, key=_start, reverse=True):
                begin, end = (_offset(text, edit["range"][each]) for each in ("start", "end"))
                text = text[:begin] + edit["newText"] + text[end:]
            found[name] = text
        return found

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _take(self) -> dict[str, Any]:
        try:
            message = self._came.get(timeout=LIMIT)
        except Empty:
            raise AssertionError("the server does not answer") from None
        if message is None:
            assert self._process.stderr is not None
            raise AssertionError(f"the server has ended: {self._process.stderr.read().decode()}")
        if "id" not in message:
            self.notes.append(message)
        return message

    def _read(self) -> None:
        out = self._process.stdout
        assert out is not None
        while header := out.readline():
            size = int(header.removeprefix(b"Content-Length:"))
            while out.readline().strip():
                pass
            self._came.put(json.loads(out.read(size)))
        self._came.put(None)


class Refused(Exception):
    """An error that the server answered with."""


def _start(edit: dict[str, Any]) -> tuple[int, int]:
    start = edit["range"]["start"]
    return start["line"], start["character"]


def _offset(text: str, place: dict[str, int]) -> int:
    rows = text.split("\n")
    row = rows[place["line"]].encode("utf-16-le")[: 2 * place["character"]].decode("utf-16-le")
    return sum(len(each) + 1 for each in rows[: place["line"]]) + len(row)
