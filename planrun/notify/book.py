"""Write `notifications.jsonl` of a run; see `planrun.reports.notifications`, which reads it.

Nothing that was begun is sent again: after a kill a notification was sent once or not at all.
"""

from __future__ import annotations

import json
import os
import time

from planrun.errors import RecordsLost
from planrun.reports.notifications import BOOK, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["append", "path_of", "read", "stamp"]


def path_of(rundir: str) -> str:
    """Return the path of a run's book."""
    return os.path.join(rundir, BOOK)


def stamp() -> str:
    """Return the time in RFC 3339 UTC with milliseconds, as the ledger has it."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"


def append(path: str, entry: dict[str, Any], *, sync: bool = False) -> None:
    """Append a line in one write; raises RecordsLost."""
    data = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.write(fd, data) < len(data):
                raise RecordsLost(f"cannot write {path}: no space")
            if sync and "PLANRUN_NO_SYNC" not in os.environ:
                os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise RecordsLost(f"cannot write {path}: {error.strerror or error}") from None
