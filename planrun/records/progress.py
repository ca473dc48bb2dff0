"""What a step says of its own progress: the last line of the file that `$PLANRUN_PROGRESS` names.

A line is a number from 0 to 1, or per cent as in `42%`, and what people may read besides. Steps append lines; nobody
waits for them, and nothing depends on them.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.model.record import Record

ENDING = ".progress"
"""How the name of the file goes on after that of the attempt's outputs."""
_LAST = 4096  # bytes that are looked at
_MESSAGE = 200  # characters


class Said(Record):
    """How far a step says that it is; `share` from 0 to 1."""

    share: float
    message: str = ""


def read_progress(rundir: str, folder: str, attempt: int) -> Said | None:
    """Return what an attempt said last; None when it said nothing that can be understood."""
    path = os.path.join(rundir, "outputs", f"{folder}.{attempt}{ENDING}")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            return None
        data = os.pread(fd, _LAST, max(0, status.st_size - _LAST))
    except OSError:
        return None
    finally:
        os.close(fd)
    return _last(data.decode("utf-8", "replace"))


def _last(text: str) -> Said | None:
    """Return what the last whole line says that is one."""
    lines = text.split("\n")
    for line in reversed(lines[:-1]):  # what follows the last line end is still being written
        number, _, message = line.strip().partition(" ")
        share = _share(number)
        if share is not None:
            return Said(share=share, message=message.strip()[:_MESSAGE])
    return None


def _share(text: str) -> float | None:
    digits, scale = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 20:
        return None
    return min(1.0, float(digits) / scale)
