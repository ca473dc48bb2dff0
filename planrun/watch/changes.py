"""Which of the watched files have changed, by looking at them again and again: time and size first, then content."""

from __future__ import annotations

import os
import time

from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.watch.subject import Subject

    Stamp = tuple[int, int, int]

LEAST = 0.3  # seconds between two looks
MOST = 5.0
_SHARE = 0.015
"""Of one processor, for looking."""
_LISTED = 2.0  # seconds after which the files are listed anew, though no known folder has changed
_LARGE = 1 << 20  # bytes of a file, and of all together, whose contents are compared
_ALL = 32 << 20


class Changes(Record):
    """What is different since the last look: paths, in order."""

    modified: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every path."""
        return (*self.modified, *self.created, *self.deleted)


class Tracker:
    """The watched files as they were at the last look."""

    def __init__(self) -> None:
        self._subject: Subject | None = None
        self._files: dict[str, Stamp] = {}
        self._folders: dict[str, Stamp | None] = {}
        self._contents: dict[str, str] = {}  # of the files that were compared
        self._listed = 0.0  # when they were listed, on the monotonic clock
        self._cost = 0.0  # seconds of processor time of a look
        self._listing = 0.0  # the same of a list

    @property
    def count(self) -> int:
        """How many files are watched."""
        return len(self._files)

    @property
    def pause(self) -> float:
        """Seconds until the next look, so that all looks together take little of a processor."""
        return min(MOST, max(LEAST, self._cost / _SHARE))

    def begin(self, subject: Subject) -> None:
        """Take the files as they are now for unchanged."""
        self._subject = subject
        files = self._list()
        known, total = self._files, 0
        self._files = {path: stamp for path in files if (stamp := self._stamp(path)) is not None}
        for path, stamp in self._files.items():
            total += stamp[1]
            if known.get(path) == stamp and path in self._contents:
                continue
            if stamp[1] <= _LARGE and total <= _ALL:
                self._contents[path] = _content(self._path(path))
            else:
                self._contents.pop(path, None)
        for path in [path for path in self._contents if path not in self._files]:
            del self._contents[path]

    def look(self) -> Changes:
        """Return what has changed since the last look."""
        began = time.thread_time()
        stale = any(self._stamp(folder) != stamp for folder, stamp in self._folders.items())
        age = time.monotonic() - self._listed
        paths: Iterable[str] = self._files
        if stale or age > max(_LISTED, self._listing / _SHARE):
            paths = self._list()
        modified, created, deleted = [], [], []
        now: dict[str, Stamp] = {}
        for path in paths:
            stamp = self._stamp(path)
            if stamp is None:
                continue
            now[path] = stamp
            if path not in self._files:
                created.append(path)
            elif stamp != self._files[path] and self._differs(path, stamp):
                modified.append(path)
        deleted = [path for path in self._files if path not in now]
        self._files = now
        self._cost = time.thread_time() - began
        return Changes(modified=tuple(modified), created=tuple(sorted(created)), deleted=tuple(deleted))

    def _differs(self, path: str, stamp: Stamp) -> bool:
        """Whether the content of a file is another one, as far as it was small enough to be known."""
        before = self._contents.get(path)
        if stamp[1] > _LARGE:
            self._contents.pop(path, None)
            return True
        self._contents[path] = _content(self._path(path))
        return before != self._contents[path]

    def _list(self) -> set[str]:
        assert self._subject is not None
        began = time.perf_counter()
        files = self._subject.files()
        folders: set[str] = {""}
        for path in files:
            while (path := os.path.dirname(path)) and path not in folders and path != "/":
                folders.add(path)
        self._folders = {folder: self._stamp(folder) for folder in folders}
        self._listed = time.monotonic()
        self._listing = time.perf_counter() - began
        return files

    def _path(self, path: str) -> str:
        assert self._subject is not None
        return os.path.join(self._subject.root, path)

    def _stamp(self, path: str) -> Stamp | None:
        try:
            found = os.stat(self._path(path))
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _content(path: str) -> str:
    """Return the hash of a file's content; "" for one that cannot be read."""
    try:
        # Not open() with the descriptor, which would stay open where the path is a folder, as that of a submodule.
        with open(path, "rb", opener=_without_waiting) as file:
            return str(sha256(file.read(_LARGE + 1)).hexdigest())
    except OSError:
        return ""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
