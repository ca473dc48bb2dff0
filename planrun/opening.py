"""The one way to open a recorded file: nothing below the records folder may lead elsewhere, block or be endless."""

from __future__ import annotations

import errno
import os
import stat

HOME = ".planrun"  # as in planrun.records.rundir, which a run imports without this module
MOST = 1 << 30
"""Bytes of a record that is read into memory at once: about two million events."""
NO_RECORD = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.EFBIG}
)
"""Errors of a name that has no file, or something in its place that is no record."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_below(base: str, path: str) -> int:
    """Return a descriptor of a regular file below a folder; no component of `path` may be a link.

    Raises OSError: a link, a device, a pipe, a socket or a folder is no record.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "not a path below its folder")
    *folders, name = path.split("/")
    if not name or any(part in ("", ".", "..") for part in path.split("/")):
        raise OSError(errno.EINVAL, "not a path below its folder", path)
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
        return _regular(os.open(name, _FILE, dir_fd=at), path)
    finally:
        os.close(at)


def open_record(path: str) -> int:
    """Return a descriptor of a recorded file; raises OSError as `open_below` does.

    No component below the records folder of a workspace may be a link; of a path elsewhere, the last may not.
    """
    parts = path.split("/")
    if ".." in parts[parts.index(HOME) if HOME in parts else len(parts) :]:
        raise OSError(errno.EINVAL, "its path leaves the records folder")
    parts = os.path.normpath(path).split("/")
    if HOME in parts[:-1]:
        at = parts.index(HOME)
        return open_below("/".join(parts[:at]) or ("/" if path[:1] == "/" else "."), "/".join(parts[at:]))
    if "\0" in path:
        raise OSError(errno.EINVAL, "not a path")
    return _regular(os.open(path, _FILE), path)


def read_record(path: str, most: int = MOST) -> bytes:
    """Return the content of a recorded file; raises OSError as `open_below` does, and for one of over `most` bytes."""
    fd = open_record(path)
    with open(fd, "rb") as file:
        if os.fstat(fd).st_size > most:
            raise OSError(errno.EFBIG, f"it has over {most} bytes", path)
        return file.read(most)


def extent(fd: int, recorded: int = -1) -> int:
    """Return how many bytes of a log are to be read: up to its first hole, which no log has, and to its recorded size.

    `recorded`: bytes, -1 where no size was recorded.
    """
    size = os.fstat(fd).st_size
    try:
        size = min(size, os.lseek(fd, 0, os.SEEK_HOLE))
    except OSError:  # an empty file, or a file system that knows no holes
        pass
    return size if recorded < 0 else min(size, recorded)


def _regular(fd: int, path: str) -> int:
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)
