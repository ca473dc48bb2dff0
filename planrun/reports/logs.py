"""Excerpts of log files: head and tail of any size in constant memory, cleaned after they were cut."""

from __future__ import annotations

import os
import stat

from planrun.model.job import original
from planrun.reports.escape import plain

CASE_BYTES = 64 * 1024  # head and tail of one step, in a JUnit case and on a console
TAIL_BYTES = 8 * 1024  # with a failure
_NO_WAIT = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO or a link is no log


def excerpt(rundir: str, log: str, limit: int = CASE_BYTES, *, whole: str = "") -> str:
    """Return a log as clean text of at most about `limit` bytes, a quarter of it head and the rest tail.

    `log` is relative to the run directory. Between the parts stands how much is missing. A log that is not
    there, is no regular file or lies outside of the run directory reads as empty. `whole` says where people find
    all of it.
    """
    return _read(os.path.join(rundir, log), whole, limit // 4, limit - limit // 4) if _inside(log) else ""


def tail(rundir: str, log: str, limit: int = TAIL_BYTES) -> str:
    """Return the end of a log as clean text; otherwise as `excerpt`."""
    return _read(os.path.join(rundir, log), "", 0, limit) if _inside(log) else ""


def left_out(count: int, whole: str = "") -> str:
    """Return the line that stands for `count` missing bytes; `whole` is a file that has them."""
    there = f", all of it is in {whole}" if whole else ""
    return f"… {count} byte{'' if count == 1 else 's'} left out{there} …"


def _inside(log: str) -> bool:
    return bool(log) and log[0] != "/" and ".." not in log.split("/")


def _read(path: str, whole: str, head: int, tail: int) -> str:
    try:
        fd = os.open(path, _NO_WAIT)
    except (OSError, ValueError):
        return ""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size <= head + tail:
            return _text(_at(fd, 0, head + tail))
        first, missing, last = _cut(fd, status.st_size, head, tail)
        gap = "\n" if first and not first.endswith("\n") else ""
        return f"{first}{gap}{left_out(missing, whole)}\n{last}"
    except OSError:
        return ""
    finally:
        os.close(fd)


def _cut(fd: int, size: int, head: int, tail: int) -> tuple[str, int, str]:
    """Read both ends, cut at line ends where there are any in the last and the first quarter.

    Returns the head, how many bytes are missing, and the tail.
    """
    first = _at(fd, 0, head)
    end = first.rfind(b"\n") + 1
    first = first[:end] if end > head * 3 // 4 else first
    last = _at(fd, size - tail, tail)
    start = last.find(b"\n", 0, tail // 4) + 1
    last = last[start:] if start else last
    missing = size - len(first) - len(last)
    return _text(first), missing, _text(last)


def _text(data: bytes) -> str:
    return plain(original(data.decode("utf-8", "replace")))


def _at(fd: int, offset: int, count: int) -> bytes:
    """Read up to `count` bytes; fewer only at the end of the file."""
    parts = []
    while count > 0:
        part = os.pread(fd, count, offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        count -= len(part)
    return b"".join(parts)
