"""A piece of the disk that is kept for the last records of a run, which have to fit when nothing else does.

One file a workspace, `.planrun/reserve`. Who writes or removes it has the workspace lock.
"""

from __future__ import annotations

import os

SIZE = 64 * 1024
"""Bytes: the ends of some 150 steps that run at once, and that of the run."""


def fill(path: str) -> None:
    """Make the reserve; where it cannot be had, the next run tries again."""
    try:
        _write(path)
    except OSError:  # half of a reserve would be room taken from the run
        free(path)


def free(path: str) -> bool:
    """Give its room back to the file system; says whether there was any."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _write(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Bytes of chance: a file system that compresses would keep next to nothing for zeros.
        data = os.urandom(SIZE)
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
