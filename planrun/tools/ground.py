"""Refusals of calls, and the files that a tool may touch: those below the workspace, where no link leads outside.

A path is walked component by component, each folder opened relative to the previous one without following links. A
link is read and its components are walked in turn; `..` is the previous folder. So an opened file is always below the
workspace, even if other processes change folders and links meanwhile. planrun's records and `.git` are excluded.

Files are written atomically: a name refers to the old file or the new one, whenever the process ends.

The results of a call are lines in its log, and outputs in $PLANRUN_OUTPUT.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from planrun.model.jsontext import dumps, quote
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self


class Refusal(Exception):
    """The call is refused; the message is one line for the user."""


MAX_LINKS = 40  # in one path, the limit of Linux
MAX_NAME = 255  # bytes
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
RECORDS = ".planrun"
GIT = ".git"


class Place:
    """A name in an open folder; `path` is relative to the workspace, links resolved.

    Close it, or use it in a `with`.
    """

    __slots__ = ("fd", "name", "path")

    def __init__(self, fd: int, name: str, path: str) -> None:
        self.fd = fd
        self.name = name
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self.fd)

    def status(self) -> os.stat_result | None:
        """Return the status of the name, a link not followed; None if it does not exist."""
        try:
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """Return a descriptor of the regular file; raises Refusal for anything else."""
        try:
            fd = os.open(self.name, _READ, dir_fd=self.fd)
        except FileNotFoundError:
            raise Refusal(f"{self.path}: there is no such file") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise Refusal(f"{self.path}: it became a link meanwhile") from None
            raise Refusal(f"{self.path}: {error.strerror}") from None
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(fd)
            raise Refusal(f"{self.path}: it is {kind_of(mode)}, and no file")
        return fd


class Ground:
    """The workspace, and the folder in it that paths are relative to."""

    def __init__(self, workspace: str, cwd: str) -> None:
        self.top = os.path.realpath(workspace)
        self.cwd = os.path.realpath(cwd)
        relative = os.path.relpath(self.cwd, self.top)
        if relative.split("/")[0] == "..":
            raise Refusal("the folder of the step lies outside of the workspace")
        self.base = [] if relative == "." else relative.split("/")
        self._root = os.open(self.top, _FOLDER)

    def close(self) -> None:
        """Close the workspace."""
        os.close(self._root)

    def readable(self, path: str) -> Place:
        """Return the place of a file to read; follows links inside the workspace."""
        return self._found(path, (RECORDS,), (), follow=path)

    def writable(self, path: str, *flags: str) -> Place:
        """Return the place of a file to write or remove; `make` creates missing folders.

        Does not follow the last component if it is a link.
        """
        return self._found(path, (RECORDS, GIT), flags, follow="")

    def _found(self, path: str, guarded: tuple[str, ...], flags: tuple[str, ...], follow: str) -> Place:
        words = [*self.base, *words_of(path)]
        _guard(words, guarded)
        place = self._walk(words, flags, follow)
        try:
            _guard(place.path.split("/"), guarded)
        except Refusal:
            os.close(place.fd)
            raise
        return place

    def _walk(self, words: list[str], flags: tuple[str, ...], follow: str) -> Place:
        walk = _Walk(self._root, self.top, "/".join(words))
        waiting = words[::-1]
        try:
            while waiting:
                word = waiting.pop()
                if word == "..":
                    walk.back()
                    continue
                target = walk.link(word) if waiting or follow else None
                if target is not None:
                    waiting += walk.targets(target)
                elif waiting:
                    walk.enter(word, flags)
                else:
                    return walk.place(word)
            return walk.here()
        finally:
            walk.close()


class _Walk:
    """The open folders from the workspace to the current one of a walk; `path` is the requested path."""

    def __init__(self, root: int, top: str, path: str) -> None:
        self._folders = [os.dup(root)]
        self._names: list[str] = []
        self._top = top
        self._path = path
        self._links = 0

    def close(self) -> None:
        for fd in self._folders:
            os.close(fd)
        self._folders.clear()

    def place(self, name: str) -> Place:
        """Return a name in the current folder."""
        return Place(os.dup(self._folders[-1]), name, "/".join([*self._names, name]))

    def here(self) -> Place:
        """Return the current folder, as a name in its parent."""
        if not self._names:
            raise Refusal("the workspace itself is no file")
        os.close(self._folders.pop())
        return self.place(self._names.pop())

    def back(self) -> None:
        if not self._names:
            raise Refusal(f"{self._path}: a link on the way leads out of the workspace")
        os.close(self._folders.pop())
        self._names.pop()

    def link(self, name: str) -> str | None:
        """Return the target of a link; None when it is no link or does not exist."""
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError:
            return None

    def targets(self, target: str) -> list[str]:
        """Return the components of a link target in reverse order; an absolute one restarts at the workspace."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise Refusal(f"{self._path}: too many links on the way")
        if target.startswith("/"):
            if target != self._top and not target.startswith(self._top.rstrip("/") + "/"):
                raise Refusal(f"{self._path}: a link on the way leads out of the workspace")
            target = target[len(self._top) :]
            while self._names:
                self.back()
        return [word for word in reversed(target.split("/")) if word not in ("", ".")]

    def enter(self, name: str, flags: tuple[str, ...]) -> None:
        """Enter a folder; `make` creates a missing one."""
        path = "/".join([*self._names, name])
        self._folders.append(_entered(name, self._folders[-1], path, flags))
        self._names.append(name)


def _guard(words: list[str], guarded: tuple[str, ...]) -> None:
    """Raise Refusal for a path with an excluded name, in any spelling that a file system may treat as equal."""
    for name in words:
        if name.lower() in guarded:
            what = "the records of planrun are" if name.lower() == RECORDS else "the inside of git is"
            raise Refusal(f"{'/'.join(words)}: {what} not for tools")


def words_of(path: str) -> list[str]:
    """Return the components of a path in a plan; raises Refusal for one that leaves the workspace."""
    if not path.isprintable():
        raise Refusal(f"{path!a}: a path with a character that cannot be seen")
    if path.startswith("/"):
        raise Refusal(f"{path}: a path has to be relative, and in the workspace")
    words = [word for word in path.split("/") if word not in ("", ".")]
    if ".." in words:
        raise Refusal(f"{path}: a path must not lead upwards")
    if not words:
        raise Refusal(f"{path or 'an empty path'}: it names no file")
    if any(len(word.encode("utf-8", "surrogatepass")) > MAX_NAME for word in words):
        raise Refusal(f"{path[:60]}…: a name in it is too long")
    return words


def kind_of(mode: int) -> str:
    """Return the file type of a mode of stat(2), with its article."""
    for is_kind, what in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return what
    return "a file" if stat.S_ISREG(mode) else "a device"


def _entered(name: str, folder: int, path: str, flags: tuple[str, ...]) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if "make" not in flags or name.lower() in (RECORDS, GIT):
            raise Refusal(f"{path}: there is no such folder") from None
    except NotADirectoryError:
        raise Refusal(f"{path}: it is no folder") from None
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from None
    try:
        os.mkdir(name, 0o777, dir_fd=folder)
    except FileExistsError:  # another process was faster
        pass
    return os.open(name, _FOLDER, dir_fd=folder)


MAX_READ = 64 << 20  # bytes of a file that is read at once
_BLOCK = 1 << 20
_NAMELESS = getattr(os, "O_TMPFILE", 0)


def read_whole(place: Place, most: int = MAX_READ) -> bytes:
    """Return the bytes of a file; raises Refusal for more than `most`."""
    fd = place.open_file()
    try:
        size = os.fstat(fd).st_size
        if size > most:
            raise Refusal(f"{place.path}: it has {size:,} bytes, more than {most:,}")
        data = b"".join(blocks(fd, most + 1))
    finally:
        os.close(fd)
    if len(data) > most:
        raise Refusal(f"{place.path}: it has more than {most:,} bytes")
    return data


def blocks(fd: int, most: int = 1 << 62) -> Iterable[bytes]:
    """Yield blocks read from a descriptor, up to about `most` bytes."""
    left = most
    while left > 0 and (block := os.read(fd, min(_BLOCK, left))):
        left -= len(block)
        yield block


def existing(place: Place) -> os.stat_result | None:
    """Return the status of the regular file to replace; None when there is none. Raises Refusal for other types."""
    status = place.status()
    if status is None or stat.S_ISREG(status.st_mode):
        return status
    hint = "; name the file that it leads to" if stat.S_ISLNK(status.st_mode) else ""
    raise Refusal(f"{place.path}: it is {kind_of(status.st_mode)}, which is not written to{hint}")


def put(place: Place, data: Iterable[bytes], mode: int, *, replace: bool) -> tuple[int, str]:
    """Write a file atomically and return its size and sha256; `mode`: its permissions.

    Without `replace` an existing file is an error.
    """
    fd, temporary = _begun(place, mode)
    try:
        size, digest = _filled(fd, data)
        os.fchmod(fd, mode)
        os.fsync(fd)
        if not temporary and not replace:
            _link(fd, place, place.name)
            return size, digest
        if not temporary:
            temporary = _temporary(place)
            _link(fd, place, temporary)
        if replace:
            os.rename(temporary, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        else:
            os.link(temporary, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd, follow_symlinks=False)
            os.unlink(temporary, dir_fd=place.fd)
        temporary = ""
        return size, digest
    except FileExistsError:
        raise Refusal(f"{place.path}: it is there already") from None
    finally:
        os.close(fd)
        if temporary:
            _forget(place, temporary)


def permissions(status: os.stat_result | None, *, executable: bool) -> int:
    """Return the permissions of a new file: those of the old one, else the default of the umask."""
    if status is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        mode = status.st_mode & 0o777
    return mode | ((mode & 0o444) >> 2) if executable else mode


def _begun(place: Place, mode: int) -> tuple[int, str]:
    """Open an unnamed file if the file system supports it, else a temporary one; returns it and its temporary name."""
    if _NAMELESS:
        try:
            flags = os.O_WRONLY | _NAMELESS | os.O_CLOEXEC
            return os.open(".", flags, mode & 0o777 | 0o200, dir_fd=place.fd), ""
        except OSError:  # the file system does not support it
            pass
    name = _temporary(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, mode & 0o777 | 0o200, dir_fd=place.fd), name


def _filled(fd: int, data: Iterable[bytes]) -> tuple[int, str]:
    digest, size = sha256(), 0
    for block in data:
        digest.update(block)
        size += len(block)
        while block:
            block = block[os.write(fd, block) :]  # noqa: PLW2901 - the remaining bytes
    return size, str(digest.hexdigest())


def _link(fd: int, place: Place, name: str) -> None:
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=place.fd, follow_symlinks=True)


def _temporary(place: Place) -> str:
    chance = os.urandom(6).hex()
    return f".{place.name[:60].encode('ascii', 'ignore').decode()}.{chance}.tmp"


def _forget(place: Place, name: str) -> None:
    try:
        os.unlink(name, dir_fd=place.fd)
    except OSError:
        return


MOST_FILES = 1000  # names in one output


def say(text: str) -> None:
    """Print a line of the log; control characters are escaped."""
    shown = text if text.isprintable() else quote(text)[1:-1]
    sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def listed(files: list[str]) -> list[str]:
    """Return at most MOST_FILES names."""
    return files[:MOST_FILES]


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def hand_on(path: str, outputs: dict[str, Any]) -> None:
    """Append outputs to the file at `path` in planrun's format: one block each, lines unchanged."""
    if not path or not outputs:
        return
    text = "".join([_block(name, value) for name, value in outputs.items()])
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def _block(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value)
    # No line of the text can equal the end word of the block, which contains the hash of the text.
    word = f"end-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"{name}<<{word}\n{text}\n{word}\n"
