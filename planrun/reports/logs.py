"""Excerpts of log files: head and tail of any size in constant memory, cleaned after they were cut."""

from __future__ import annotations

import os
import stat

from planrun.reports.clean import plain

CASE_BYTES = 64 * 1024  # head and tail of one step, in a JUnit case and on a console
TAIL_BYTES = 8 * 1024  # with a failure
_NO_WAIT = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO or a link is no log


def excerpt(rundir: str, log: str, limit: int = CASE_BYTES) -> str:
    """Return a log as clean text of at most about `limit` bytes, a quarter of it head and the rest tail.

    `log` is relative to the run directory. Between the parts stands how much is missing. A log that is not
    there, is no regular file or lies outside of the run directory reads as empty.
    """
    return _read(rundir, log, head=limit // 4, tail=limit - limit // 4)


def tail(rundir: str, log: str, limit: int = TAIL_BYTES) -> str:
    """Return the end of a log as clean text; otherwise as `excerpt`."""
    return _read(rundir, log, head=0, tail=limit)


def left_out(count: int) -> str:
    """Return the line that stands for `count` missing bytes."""
    return f"… {count} byte{'' if count == 1 else 's'} left out …"


def _read(rundir: str, log: str, *, head: int, tail: int) -> str:
    if not log or log[0] == "/" or ".." in log.split("/"):
        return ""
    try:
        fd = os.open(os.path.join(rundir, log), _NO_WAIT)
    except (OSError, ValueError):
        return ""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size <= head + tail:
            return plain(_at(fd, 0, head + tail).decode("utf-8", "replace"))
        return _cut(fd, status.st_size, head, tail)
    except OSError:
        return ""
    finally:
        os.close(fd)


def _cut(fd: int, size: int, head: int, tail: int) -> str:
    """Read both ends, cut at line ends where there are any in the last and the first quarter."""
    first = _at(fd, 0, head)
    end = first.rfind(b"\n") + 1
    first = first[:end] if end > head * 3 // 4 else first
    last = _at(fd, size - tail, tail)
    start = last.find(b"\n", 0, tail // 4) + 1
    last = last[start:] if start else last
    missing = left_out(size - len(first) - len(last))
    before = plain(first.decode("utf-8", "replace"))
    gap = "\n" if before and not before.endswith("\n") else ""
    return f"{before}{gap}{missing}\n{plain(last.decode('utf-8', 'replace'))}"


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
