"""Files of a result put back into the workspace: all of them are checked before the first is in its place."""

from __future__ import annotations

import os

from planrun.folders import make_private
from planrun.store.entries import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planrun.store.entries import Kept, Store

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_sound(path: object) -> bool:
    """Say whether a path stays below the folder that it is seen from, whatever is in an entry."""
    if not isinstance(path, str) or not path or "\0" in path or path.startswith("/"):
        return False
    return not {"", ".", "..", ".git", ".planrun"} & {*path.split("/")}


def place(files: Sequence[Kept], stores: Iterable[Store], workspace: str, drafts: str) -> None:
    """Put files into a workspace, each at once or not at all; `drafts` is a folder for them to wait in.

    Raises Damaged when the bytes of one are gone or altered, OSError when one cannot be put into its place.
    """
    stores = tuple(stores)
    clear(drafts)
    make_private(drafts)
    try:
        ready = [_fetched(each, stores, f"{drafts}/{number}") for number, each in enumerate(files)]
        for each, draft in zip(files, ready, strict=True):
            _put(each, draft, workspace)
    finally:
        clear(drafts)


def clear(drafts: str) -> None:
    """Remove what a killed process left half done."""
    try:
        names = os.listdir(drafts)
    except OSError:
        return
    for name in names:
        os.unlink(f"{drafts}/{name}")


def _fetched(file: Kept, stores: Sequence[Store], draft: str) -> str:
    fd = os.open(draft, _NEW, 0o600)
    try:
        if not any(_fetch(store, file.sha256, fd) for store in stores):
            raise Damaged("bytes of a file are gone")
        if not file.link:
            os.fchmod(fd, file.mode & 0o777)
            return draft
        text = os.pread(fd, 1 << 16, 0)
    finally:
        os.close(fd)
    os.unlink(draft)
    os.symlink(text, os.fsencode(draft))
    return draft


def _fetch(store: Store, digest: str, fd: int) -> bool:
    try:
        return store.fetch(digest, fd)
    except Damaged:
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        return False  # another store may have them


def _put(file: Kept, draft: str, workspace: str) -> None:
    *folders, name = file.path.split("/")
    fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = _inner(fd, folder)
            os.close(fd)
            fd = inner
        os.rename(draft, name, dst_dir_fd=fd)
    finally:
        os.close(fd)


def _inner(fd: int, name: str) -> int:
    """Open a folder in another one, made where it is missing; nobody goes through a link."""
    try:
        return os.open(name, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=fd)
        return os.open(name, _FOLDER, dir_fd=fd)
