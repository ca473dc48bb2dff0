"""The folders of a worker in which steps run: each has the files of the tree, and one step at a time.

Before a step starts, its folder is made equal to the tree as it is then. After it ended, what it made, changed and
deleted is found by the times of files. What is not declared does not reach another step, on whichever worker.
"""

from __future__ import annotations

import hashlib
import os
import time
from stat import S_ISDIR, S_ISLNK, S_ISREG

from planrun.cluster.files.entries import CACHES, FILE, LINK, PROGRAM, has_linked_folder, is_same, umask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.cluster.files.contents import Contents
    from planrun.cluster.files.entries import Entry

    State = tuple[int, int, int, int, int]  # times of content and of status in ns, size, inode, mode

_SLICE = 0.05  # seconds of work between two looks at what else is to be done
_CHUNK = 1 << 20
_UNKNOWN: Entry = ("", 0, "unknown", 0)


class CannotPlace(Exception):
    """The files of a step cannot be brought to the worker; the message is a line for people."""


class Made:
    """What a step made and declared, as rows of path and entry; what it deleted; and what it did not declare."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Entry]] = []
        self.deleted: list[str] = []
        self.undeclared: list[str] = []
        self.unreadable: list[str] = []


class Lane:
    """One folder; `root` is where the workspace is."""

    def __init__(self, root: str, contents: Contents) -> None:
        self.root = root
        self._contents = contents
        self._have: dict[str, Entry] = {}
        self._states: dict[str, State] = {}
        self._folders: set[str] = set()
        self.stale: dict[str, None] = {}  # paths that may differ from the tree
        os.makedirs(root, 0o700)

    def prepare(self, tree: Mapping[str, Entry], own: Mapping[str, Entry]) -> Iterator[bool]:
        """Make the folder equal to the tree and the attempt's own files; yields whether it waits for contents.

        Raises CannotPlace.
        """
        wanted: dict[str, Entry | None] = {path: tree.get(path) for path in self.stale}
        wanted.update(own)
        changes = {path: entry for path, entry in wanted.items() if not is_same(self._have.get(path), entry)}
        missing = {
            entry[0]: (path, entry[1])
            for path, entry in changes.items()
            if entry is not None and entry[2] != LINK and not self._contents.has(entry[0])
        }
        self._contents.want([(digest, size) for digest, (_, size) in missing.items()])
        while missing:
            for digest, (path, _) in list(missing.items()):
                if self._contents.has(digest):
                    del missing[digest]
                elif why := self._contents.failure(digest):
                    raise CannotPlace(f"{path} did not arrive on the worker: {why}")
            if missing:
                yield True
        try:
            yield from self._place(changes)
        except OSError as error:
            name = os.path.relpath(error.filename or "", self.root) if error.filename else "files"
            raise CannotPlace(f"the worker cannot place {name}: {error.strerror}") from None
        self.stale = dict.fromkeys(own)

    def _place(self, changes: Mapping[str, Entry | None]) -> Iterator[bool]:
        until = time.monotonic() + _SLICE
        # What goes comes first: a file may take the place of a folder, and the other way round.
        for path, entry in sorted(changes.items(), key=lambda row: (row[1] is not None, row[0])):
            if entry is None:
                self._have.pop(path, None)
                self._states.pop(path, None)
                full = os.path.join(self.root, path)
                if not has_linked_folder(self.root, path):
                    try:
                        os.unlink(full)
                    except (FileNotFoundError, NotADirectoryError):
                        pass
                    except (IsADirectoryError, PermissionError):
                        os.rmdir(full)
                    self._tidy(os.path.dirname(path))
            else:
                yield from self._put(path, entry)
            if time.monotonic() > until:
                yield False
                until = time.monotonic() + _SLICE

    def _tidy(self, folder: str) -> None:
        """Remove folders that are empty now."""
        while folder:
            try:
                os.rmdir(os.path.join(self.root, folder))
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _put(self, path: str, entry: Entry) -> Iterator[bool]:
        full, draft = os.path.join(self.root, path), os.path.join(self.root, ".planrun-placing")
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if entry[2] == LINK:
            os.symlink(entry[3], draft)
        else:
            yield from _copied(self._contents.path(entry[0]), draft)
            os.chmod(draft, (0o777 if entry[2] == PROGRAM else 0o666) & ~umask())
            os.utime(draft, ns=(entry[3], entry[3]))
        if os.path.isdir(full) and not os.path.islink(full):
            os.rmdir(full)
        os.rename(draft, full)
        self._have[path] = entry
        self._states[path] = _state(os.lstat(full))

    def clear_folders(self) -> None:
        """Remove empty folders that a step made."""
        for folder in sorted(self._folders, reverse=True):
            self._tidy(folder)
        self._folders.clear()

    def collect(self, is_declared: Callable[[str], bool]) -> Iterator[Made]:
        """Find what a step changed; yields the result from time to time, and at last complete."""
        made = Made()
        seen: dict[str, State] = {}
        self._folders = set(_walk(self.root, "", seen))
        yield made
        gone = [path for path in self._have if path not in seen]
        for path in gone:
            del self._have[path], self._states[path]
            self.stale[path] = None
            (made.deleted if is_declared(path) else made.undeclared).append(path)
        until = time.monotonic() + _SLICE
        for path, state in seen.items():
            if self._states.get(path) == state:
                continue
            self.stale[path] = None
            declared = is_declared(path)
            # What is not known is compared with nothing, so the next step gets the file of the tree.
            entry: Entry | None = _UNKNOWN
            if declared:
                entry = None
                for found in self._entry(path):
                    entry = found
                    yield made
            if entry is None:
                made.unreadable.append(path)
                entry = _UNKNOWN
            elif declared:
                made.rows.append((path, entry))
            elif CACHES.isdisjoint(path.split("/")):
                made.undeclared.append(path)
            self._have[path], self._states[path] = entry, state
            if time.monotonic() > until:
                yield made
                until = time.monotonic() + _SLICE
        yield made

    def _entry(self, path: str) -> Iterator[Entry | None]:
        """Keep the content of a file, and yield it as an entry at last; None if it cannot be read or is no file."""
        full = os.path.join(self.root, path)
        try:
            status = os.lstat(full)
            if S_ISLNK(status.st_mode):
                target = os.readlink(full)
                data = os.fsencode(target)
                yield [hashlib.sha256(data).hexdigest(), len(data), LINK, target]
                return
            if not S_ISREG(status.st_mode):
                return
            digest, found = "", hashlib.sha256()
            draft = os.path.join(self.root, ".planrun-collecting")
            for _ in _copied(full, draft, found):
                yield None
            digest = found.hexdigest()
            os.rename(draft, self._contents.path(digest))
        except OSError:
            return
        self._contents.arrived(digest)
        kind = PROGRAM if status.st_mode & 0o100 else FILE
        yield [digest, os.path.getsize(self._contents.path(digest)), kind, status.st_mtime_ns]


def _state(status: os.stat_result) -> State:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode


def _walk(root: str, before: str, seen: dict[str, State]) -> Iterator[str]:
    """Add the files below a folder, and yield the folders."""
    inner = []
    try:
        with os.scandir(os.path.join(root, before)) as listed:
            for each in listed:
                status = each.stat(follow_symlinks=False)
                if S_ISDIR(status.st_mode):
                    inner.append(before + each.name)
                else:
                    seen[before + each.name] = _state(status)
    except OSError:  # a step closed it
        return
    for folder in inner:
        yield folder
        yield from _walk(root, f"{folder}/", seen)


def _copied(source: str, target: str, found: Any = None) -> Iterator[bool]:
    """Copy a file, and add what it has to a hash; yields from time to time. Raises OSError."""
    until = time.monotonic() + _SLICE
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            while data := os.read(reading, _CHUNK):
                if found is not None:
                    found.update(data)
                while data:
                    data = data[os.write(writing, data) :]
                if time.monotonic() > until:
                    yield False
                    until = time.monotonic() + _SLICE
        finally:
            os.close(writing)
    finally:
        os.close(reading)
