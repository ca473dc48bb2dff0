"""Files of JSON data that agents keep from run to run: read whole, and changed under a lock by an atomic rename.

A damaged or foreign file counts as missing: what is kept only helps to choose, and no run depends on it.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager

from planrun.errors import RecordsLost
from planrun.folders import make_private, write_atomically
from planrun.opening import read_record
from planrun.plan.cache import folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_BYTES = 16 << 20  # of one file


def folder_of(directory: str, workspace: str) -> str:
    """Return the folder of `llm.memory.dir`; left out: the one in the folder for caches. "" where there is none."""
    if directory:
        return os.path.join(workspace, directory)
    plans = folder()
    return os.path.join(os.path.dirname(plans), "agents") if plans else ""


def read(path: str, form: str) -> dict[str, Any]:
    """Return the data of a file; empty when there is none, or none of this form."""
    try:
        data = json.loads(read_record(path, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) and data.get("form") == form else {}


def write(path: str, form: str, data: dict[str, Any]) -> None:
    """Replace a file; its folder exists, and the caller holds its lock. Raises RecordsLost."""
    text = json.dumps({"form": form, **data}, ensure_ascii=True, indent=1, allow_nan=False)
    try:
        write_atomically(path, text.encode() + b"\n", mode=0o600, sync=True)
    except OSError as error:
        raise RecordsLost(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock of a file, and create its folder first; raises RecordsLost. The kernel releases it if we die."""
    try:
        make_private(os.path.dirname(path))
        fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RecordsLost(f"cannot write {path}: {error.strerror}") from None
    with open(fd, "rb"):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            raise RecordsLost(f"cannot lock {path}: {error.strerror}") from None
        yield
