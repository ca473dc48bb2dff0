"""`python -m tests.fakes.messages SCRIPT`: the service as a process, until SIGTERM or SIGINT; prints its address."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.messages.files import ScriptError, read
from tests.fakes.messages.server import FakeMessages

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    """Serve a script; 1 when the client did what it should not, 2 when the script cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.messages", description=__doc__)
    parser.add_argument("script", type=Path, help="JSON, or YAML when its name ends so")
    parser.add_argument("--port-file", type=Path, help="gets the base URL, whole, once requests are taken")
    parser.add_argument(
        "--journal", type=Path, help="gets each exchange as a line of JSON, then the verdicts"
    )
    parser.add_argument(
        "--orphan", action="store_true", help="stay when the process that started this one ends"
    )
    chosen = parser.parse_args(words)
    try:
        script, settings = read(chosen.script)
    except ScriptError as error:
        print(f"fake messages: {error}", file=sys.stderr)
        return 2
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    note = _Notes(chosen.journal)
    with FakeMessages(script, sink=note.write, **settings) as api:
        if chosen.port_file:
            _put(chosen.port_file, api.url)
        print(api.url, flush=True)
        parent = os.getppid()
        while not over.wait(0.2):
            if os.getppid() != parent and not chosen.orphan:
                break  # no client is left to end it
    verdicts = api.journal.verdicts()
    for verdict in verdicts:
        note.write({"verdict": verdict.name, "number": verdict.number, "text": verdict.text})
        print(f"fake messages: {verdict.name}: request {verdict.number}: {verdict.text}", file=sys.stderr)
    return int(bool(verdicts))


class _Notes:
    """A journal file, a line for each exchange."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, data: dict[str, Any]) -> None:
        """Append a line."""
        if self._path:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(data) + "\n")


def _put(path: Path, text: str) -> None:
    """Write a file atomically."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text + "\n", "utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
