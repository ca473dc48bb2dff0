"""What a call says: lines in its log, and outputs by $PLANRUN_OUTPUT."""

from __future__ import annotations

import os
import sys

from planrun.model.jsontext import dumps, quote
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_FILES = 1000  # names in one output


def say(text: str) -> None:
    """Print a line of the log; characters that a terminal obeys are escaped."""
    shown = text if text.isprintable() else quote(text)[1:-1]
    sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def listed(files: list[str]) -> list[str]:
    """Return as many names as an output has room for."""
    return files[:MOST_FILES]


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def hand_on(path: str, outputs: dict[str, Any]) -> None:
    """Append outputs to the file at `path`, as planrun reads it: each a block that keeps its lines as they are."""
    if not path or not outputs:
        return
    text = "".join([_block(name, value) for name, value in outputs.items()])
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def _block(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value)
    # No line of the text can be the word that ends the block: it holds the hash of the text.
    word = f"end-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"{name}<<{word}\n{text}\n{word}\n"
