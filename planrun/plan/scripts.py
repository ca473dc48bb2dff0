"""Scripts as bytes: regular files of at most 8 MiB, read so that nothing hangs or floods."""

from __future__ import annotations

import os
import stat

from planrun.plan.yaml.file import MAX_BYTES
from planrun.sha256 import sha256

_BLOCK = 65536
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegular(Exception):
    """Something that is no file and no folder either; the text says what it is."""


def read_script(path: str) -> bytes:
    """Return the bytes of a file whose name is not followed; raises OSError, NotRegular, ValueError.

    A folder and a file that is too large are OSErrors with a text of their own.
    """
    _refuse(os.stat(path, follow_symlinks=False))  # before opening: opening a pipe has effects of its own
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW)
    try:
        _refuse(os.fstat(fd))
        blocks: list[bytes] = []
        size = 0
        while block := os.read(fd, _BLOCK):
            size += len(block)
            if size > MAX_BYTES:
                raise OSError(0, f"it has more than {MAX_BYTES >> 20} MiB")
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(fd)


def hash_of(path: str) -> str:
    """Return the sha256 of a script as it is now, links followed; empty when there is none that can be read."""
    try:
        return str(sha256(read_script(os.path.realpath(path))).hexdigest())
    except (OSError, ValueError, NotRegular):
        return ""


def _refuse(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OSError(0, "it is a folder")
    for is_kind, what in _KINDS:
        if is_kind(status.st_mode):
            raise NotRegular(what)
