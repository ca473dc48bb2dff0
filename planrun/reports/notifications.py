"""The notifications of a run, read from its `notifications.jsonl`; most runs have none, and do not load this module.

Each line is a JSON object. A notification is begun in it before anything is sent, and ended in a second line. The file
stands beside the ledger, whose end stays its end.
"""

from __future__ import annotations

import json
import os

from planrun.opening import open_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BOOK = "notifications.jsonl"
_MAX = 4 << 20  # bytes that are read
_SHOWN = ("at", "event", "target", "to", "status", "tries", "code", "message", "seconds")


def read(rundir: str) -> list[dict[str, Any]]:
    """Return the notifications of a run in the order in which they were begun; a broken line counts for nothing.

    `status`: sent, failed, interrupted, or `unknown` where no end is recorded.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in _data(os.path.join(rundir, BOOK)).split(b"\n"):
        try:
            entry = json.loads(row)
            place = found.setdefault(f"{entry['occasion']} {entry['target']}", {})
            place |= entry if entry["status"] != "begun" else {**entry, "status": "unknown"}
        except (ValueError, KeyError, TypeError):
            continue
    return list(found.values())


def as_data(rundir: str) -> list[dict[str, Any]]:
    """Return the notifications as `ledger.json` has them; what is not known is null."""
    return [{name: entry.get(name) for name in _SHOWN} for entry in read(rundir)]


def _data(path: str) -> bytes:
    try:
        with open(open_record(path), "rb") as file:
            return file.read(_MAX)
    except OSError:
        return b""
