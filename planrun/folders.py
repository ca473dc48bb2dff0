"""Folders for this user alone, and files that are written whole or not at all."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 60  # characters of the name that the draft shows: no file system refuses it

DEPENDENCIES = frozenset((".venv", "bower_components", "node_modules", "venv"))
"""Names of folders with installed packages, which projects do not keep in git."""
_DEPTH = 3  # folders below the workspace, as in a repository with several packages


def make_private(path: str) -> None:
    """Make a folder, and every missing one above it, with mode 0700; raises OSError.

    `os.makedirs` gives its mode to the last folder alone: under umask 002 others of the group could write above it.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if above in (path, ""):
            raise
        make_private(above)
        os.mkdir(path, 0o700)


def write_atomically(
    path: str, content: bytes | Callable[[BinaryIO], None], *, mode: int | None = None, sync: bool = False
) -> None:
    """Put a file in the place of `path`, or leave what was there; raises OSError, and what `content` raises.

    `content`: the bytes, or a function that writes them. `mode`: its permissions; None: what the umask leaves of 0666.
    `sync`: the bytes survive a power cut. A link at `path` is replaced, not followed. A failed write leaves no draft.
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name[:_LONGEST]}.part")
    try:
        os.unlink(draft)  # left over by a process that was killed
    except FileNotFoundError:
        pass
    fd = os.open(draft, _NEW, 0o666 if mode is None else 0o600)
    try:
        with open(fd, "wb", buffering=65536) as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            if mode is not None:
                os.fchmod(fd, mode)
            if sync:
                os.fsync(fd)
        os.rename(draft, path)
    except BaseException:
        try:
            os.unlink(draft)
        except OSError:  # the error that kept the file from being written is the one to report
            pass
        raise


def dependencies(top: str) -> list[str]:
    """Return the folders of installed packages in a workspace, relative to it; links are none."""
    found: list[str] = []
    below = [("", 1)]
    while below:
        within, depth = below.pop()
        try:
            with os.scandir(os.path.join(top, within)) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:  # it is gone, or nobody may read it
            continue
        found += [os.path.join(within, name) for name in names if name in DEPENDENCIES]
        if depth < _DEPTH:
            others = [name for name in names if name not in DEPENDENCIES and not name.startswith(".")]
            below += [(os.path.join(within, name), depth + 1) for name in others]
    return sorted(found)
