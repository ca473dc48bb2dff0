"""Which files configure git in a folder: of its repository, what they include, and of the repositories inside it."""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.steps.surroundings.gitconfig import MAX_CONFIG, included, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 10  # of includes, as in git
MAX_FILES = 200  # of configuration that one command may read
MAX_INDEX = 64 << 20  # bytes
_MAX_POINTER = 4096  # bytes of a file that only names a folder
_GITLINK, _LONG_NAME = 0o16, 0xFFF  # of an entry of the index: kind of file; names that are longer than that
_ENTRY = (62, 74)  # bytes before the name of an entry, with hashes of 20 and 32 bytes


class Unsure(Exception):
    """What configures git cannot be told; the text says why."""


class GitFiles:
    """The files of configuration, each read once as long as it does not change."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, ...], list[tuple[str, str | None]]]] = {}
        self._links: dict[str, tuple[tuple[int, ...], list[str]]] = {}

    def read(self, path: str) -> list[tuple[str, str | None]]:
        """Return what a file sets; nothing when there is none. Raises Unsure when it cannot be read as git does."""
        state = _state(path)
        if state is None:
            self._kept.pop(path, None)
            return []
        known = self._kept.get(path)
        if known is None or known[0] != state:
            try:
                known = self._kept[path] = (state, settings(_bytes(path, MAX_CONFIG)))
            except (OSError, ValueError) as error:
                raise Unsure(f"{path}: {error}") from None
        return known[1]

    def gitlinks(self, path: str) -> list[str]:
        """Return the paths of the repositories that an index names. Raises Unsure when it is not understood."""
        state = _state(path)
        if state is None:
            return []
        known = self._links.get(path)
        if known is None or known[0] != state:
            try:
                known = self._links[path] = (state, gitlinks(_bytes(path, MAX_INDEX)))
            except (OSError, ValueError, IndexError) as error:
                raise Unsure(f"{path}: {error}") from None
        return known[1]


def effective(
    files: GitFiles, folder: str, own: list[str], home: str
) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield file, top of the working tree, name and value of each setting for a command in a folder.

    `own`: further files that count, of the person who runs it; `home`: what `~` stands for. What stands under a
    condition counts. Raises Unsure.
    """
    budget = [MAX_FILES]
    for path in own:
        yield from _with_includes(files, path, folder, home, budget)
    top, gitdir = discover(folder)
    if gitdir:
        yield from _of_repository(files, top, gitdir, home, budget)


def discover(folder: str) -> tuple[str, str]:
    """Return top and repository folder as git finds them from a folder upwards; both empty when there is none."""
    while True:
        marker = os.path.join(folder, ".git")
        if os.path.isfile(marker):
            return folder, _pointed(marker, b"gitdir: ")
        if os.path.isdir(marker) and _is_repository(marker):
            return folder, marker
        if _is_repository(folder):
            return folder, folder
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def gitlinks(data: bytes) -> list[str]:
    """Return the paths of entries that are repositories of their own. Raises ValueError and IndexError."""
    if data[:4] != b"DIRC":
        raise ValueError("no index of git")
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if version not in (2, 3, 4):
        raise ValueError(f"an index of version {version}")
    if b"\xe0" not in data:  # in the mode of each of them
        return []
    for fixed in _ENTRY:
        try:
            return _walk(data, count, fixed, is_short=version == 4)
        except (ValueError, IndexError):
            continue
    raise ValueError("an index that is not understood")


def _walk(data: bytes, count: int, fixed: int, *, is_short: bool) -> list[str]:
    """Walk over the entries; `is_short`: each name is given as what differs from the one before."""
    found, at, end, name = [], 12, len(data), b""
    for _ in range(count):
        flags = int.from_bytes(data[at + fixed - 2 : at + fixed], "big")
        start = at + fixed + (2 if flags & 0x4000 else 0)
        if is_short:
            strip, start = _varint(data, start)
            stop = data.index(b"\0", start)
            name = name[: len(name) - strip] + data[start:stop]
            following = stop + 1
        else:
            length = flags & 0xFFF
            stop = data.index(b"\0", start) if length == _LONG_NAME else start + length
            following = at + ((stop - at + 8) & ~7)
            if data[stop] or following > end:
                raise ValueError("an entry that does not end")
        if data[at + 26] >> 4 == _GITLINK:
            found.append(os.fsdecode(name if is_short else data[start:stop]))
        at = following
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 127)
    return value, at + 1


def _of_repository(
    files: GitFiles, top: str, gitdir: str, home: str, budget: list[int]
) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield the settings of a repository, of its working trees, and of those inside it that git looks into as well."""
    waiting, seen = [(top, gitdir)], set()
    while waiting:
        top, gitdir = waiting.pop()
        if gitdir in seen:
            continue
        seen.add(gitdir)
        common = os.path.join(gitdir, "commondir")
        shared = _pointed(common, b"") if os.path.isfile(common) else gitdir
        for path in (os.path.join(shared, "config"), os.path.join(gitdir, "config.worktree")):
            yield from _with_includes(files, path, top, home, budget)
        links = files.gitlinks(os.path.join(gitdir, "index"))
        for name in os.listdir(gitdir):
            if name.startswith("sharedindex."):
                links = links + files.gitlinks(os.path.join(gitdir, name))
        for link in links:
            inner = os.path.join(top, link)
            found, repository = discover(inner) if os.path.lexists(os.path.join(inner, ".git")) else ("", "")
            if repository:
                waiting.append((found, repository))


def _with_includes(
    files: GitFiles, path: str, top: str, home: str, budget: list[int]
) -> Iterator[tuple[str, str, str, str | None]]:
    waiting = [(path, 0)]
    while waiting:
        path, depth = waiting.pop()
        budget[0] -= 1
        if budget[0] < 0 or depth > MAX_DEPTH:
            raise Unsure(f"{path}: more files of configuration than are looked at")
        for name, value in files.read(path):
            yield path, top, name, value
            if included(name) and value:
                waiting.append((_place(value, path, home), depth + 1))


def _place(value: str, path: str, home: str) -> str:
    """Return the path that an include means."""
    if any(char in value for char in "\t\r\n") or value.startswith("%("):
        raise Unsure(f"{path}: includes a file with an odd name")
    if value == "~" or value.startswith("~/"):
        value = home + value[1:]
    elif value.startswith("~"):
        value = os.path.expanduser(value)
    return os.path.join(os.path.dirname(os.path.realpath(path)), value)


def _is_repository(folder: str) -> bool:
    """Whether git takes a folder for a repository, or might."""
    return os.path.lexists(os.path.join(folder, "HEAD")) and (
        os.path.isdir(os.path.join(folder, "objects")) or os.path.isfile(os.path.join(folder, "commondir"))
    )


def _pointed(path: str, prefix: bytes) -> str:
    """Return the folder that a file names, relative to where it lies."""
    try:
        data = _bytes(path, _MAX_POINTER)
    except (OSError, ValueError) as error:
        raise Unsure(f"{path}: {error}") from None
    if not data.startswith(prefix):
        raise Unsure(f"{path}: names no repository")
    named = os.fsdecode(data[len(prefix) :].rstrip(b"\r\n"))
    if "\0" in named:
        raise Unsure(f"{path}: names no repository")
    return os.path.join(os.path.dirname(path), named)


def _state(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _bytes(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("no regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError("larger than is looked at")
    return data
