"""Reads log files of any size in pieces: finished ones, and ones that are not in their place yet."""

from __future__ import annotations

import os

from planrun.opening import open_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 1 << 18  # bytes that are read at once


def open_log(rundir: str, log: str, slots: dict[str, str]) -> int:
    """Return a descriptor of a log or of the slot that has it now; -1 where there is none that can be read."""
    if log[:1] == "/" or ".." in log.split("/"):
        return -1
    path = os.path.join(rundir, log)
    fd = _open(path)
    if fd < 0 and path in slots:
        fd = _open(slots[path])
        again = _open(path)  # it may have been put in its place in between
        if again >= 0 and fd >= 0:
            os.close(fd)
        fd = again if again >= 0 else fd
    return fd


def _open(path: str) -> int:
    try:
        return open_record(path)
    except (OSError, ValueError):  # a name with NUL
        return -1


def pieces(fd: int, start: int, end: int, lines: int = 0) -> Iterator[bytes]:
    """Yield the content of a file between two positions; `lines`: at most so many, 0: all."""
    left = lines
    while piece := os.pread(fd, min(PIECE, end - start), start):
        if lines:
            piece, left = _first_lines(piece, left)
        start += len(piece)
        yield piece
        if lines and not left:
            return


def _first_lines(piece: bytes, count: int) -> tuple[bytes, int]:
    """Return the first lines of a piece, and how many are still to come."""
    at = -1
    while count:
        at = piece.find(b"\n", at + 1)
        if at < 0:
            return piece, count
        count -= 1
    return piece[: at + 1], 0


def start_of_last(fd: int, lines: int, end: int) -> int:
    """Return the position where the last lines before `end` begin; `end` where none are wanted."""
    if not lines or not end:
        return end
    at = end
    wanted = lines + (os.pread(fd, 1, end - 1) == b"\n")  # a line end at the very end begins no line
    while at > 0:
        begin = max(0, at - PIECE)
        piece = os.pread(fd, at - begin, begin)
        cut = len(piece)
        while wanted and (cut := piece.rfind(b"\n", 0, cut)) >= 0:
            wanted -= 1
        if not wanted:
            return begin + cut + 1
        at = begin
    return 0
