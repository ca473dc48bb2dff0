"""Results on stdout: text, bytes or one JSON document; what cannot be written is an error with exit code 74."""

from __future__ import annotations

import sys

from planrun.errors import RecordsLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA_VERSION = 1  # of every JSON document that a read-only verb prints; keys are only ever added


def say(text: str) -> None:
    """Write text and a line end; raises RecordsLost."""
    say_bytes((text + "\n").encode(encoding(), "backslashreplace"))


def say_json(document: dict[str, Any]) -> None:
    """Write one JSON document with its schema version on one line; raises RecordsLost."""
    from planrun.model.jsontext import dumps, well_formed

    say_bytes(dumps(well_formed({"schema_version": SCHEMA_VERSION, **document})).encode() + b"\n")


def say_bytes(data: bytes) -> None:
    """Write bytes as they are; raises RecordsLost, and BrokenPipeError when the reader is gone."""
    try:
        out = getattr(sys.stdout, "buffer", None)
        if out is None:  # a closed stdout, or one that a test put there
            _write_text(data)
            return
        sys.stdout.flush()
        out.write(data)
        out.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise RecordsLost(f"cannot write to stdout: {getattr(error, 'strerror', None) or error}") from None


def encoding() -> str:
    """Return the encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def speaks_unicode() -> bool:
    """Say whether stdout can carry signs beyond ASCII."""
    return encoding().lower().replace("-", "").startswith("utf")


def _write_text(data: bytes) -> None:
    if sys.stdout is None:
        raise RecordsLost("cannot write to stdout: it is closed")
    sys.stdout.write(data.decode(encoding(), "backslashreplace"))
