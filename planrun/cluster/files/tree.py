"""The files of planrun's workspace that steps on workers find: what git lists, what steps read, what steps made."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG

from planrun.actions.files import look
from planrun.cluster.files.entries import CACHES, FILE, LARGE, LINK, PROGRAM
from planrun.plan.revisions import listed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planrun.cluster.files.entries import Entry

    State = tuple[int, int, int, int]  # times of content and of status in ns, size, inode

_NEVER = frozenset((".git", ".planrun", *CACHES, "node_modules"))
_MARKS = ("pyvenv.cfg", "CACHEDIR.TAG")  # a folder with one of these can be made again


class Tree:
    """The files by path; `hidden`: folders of reports. Methods raise OSError for files that cannot be read.

    `is_secret`: whether a file must not get into a store; None: there is none.
    """

    def __init__(
        self, root: str, hidden: Sequence[str], is_secret: Callable[[str], bool] | None = None
    ) -> None:
        self._root = root
        self._hidden = tuple(hidden)
        self._is_secret = is_secret
        self.secret: set[str] = set()  # digests of large files with a secret
        self._states: dict[str, State] = {}
        self._named: dict[str, None] = {}  # by steps, whether git lists them or not
        self._changes: dict[str, Entry | None] = {}  # since the last call of changes()
        self.entries: dict[str, Entry] = {}

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum([entry[1] for entry in self.entries.values()])

    def changes(self) -> dict[str, Entry | None]:
        """Return what changed since the last call; None: it is gone."""
        changes, self._changes = self._changes, {}
        return changes

    def scan(self) -> None:
        """Look at the whole workspace; files that seem unchanged are not read again."""
        found = listed_files(self._root)
        if found is None:
            found = _walked(self._root, "")
        hidden = tuple([f"{name}/" for name in (".git", ".planrun", *self._hidden)])
        paths = dict.fromkeys([*[path for path in found if not path.startswith(hidden)], *self._named])
        for path in [path for path in self.entries if path not in paths]:
            self._drop(path)
        self.look(paths)

    def name(self, paths: Iterable[str]) -> None:
        """Take in files that steps name, and look at them."""
        paths = list(paths)
        self._named.update(dict.fromkeys(paths))
        self.look(paths)

    def look(self, paths: Iterable[str]) -> None:
        """Look at some files."""
        for path in paths:
            full = os.path.join(self._root, path)
            try:
                status = os.lstat(full)
            except (FileNotFoundError, NotADirectoryError):
                self._drop(path)
                continue
            state = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if self._states.get(path) == state:
                continue
            entry = entry_of(full, status)
            if entry is None:
                self._drop(path)
                continue
            self._states[path] = state
            if self._is_secret and entry[1] >= LARGE and entry[2] != LINK and self._is_secret(full):
                self.secret.add(entry[0])
            if self.entries.get(path) != entry:
                self.entries[path] = self._changes[path] = entry

    def _drop(self, path: str) -> None:
        self._states.pop(path, None)
        if self.entries.pop(path, None) is not None:
            self._changes[path] = None


def entry_of(path: str, status: os.stat_result) -> Entry | None:
    """Return a file or link as an entry of a tree; None for anything else."""
    if not (S_ISREG(status.st_mode) or S_ISLNK(status.st_mode)):
        return None
    seen = look(path)
    if seen is None:
        return None
    if seen.link:
        return [seen.sha256, seen.bytes, LINK, os.readlink(path)]
    return [seen.sha256, seen.bytes, PROGRAM if seen.mode & 0o100 else FILE, status.st_mtime_ns]


def _walked(root: str, before: str) -> list[str]:
    folder = os.path.join(root, before)
    try:
        with os.scandir(folder) as listed:
            rows = sorted((each.name, each.stat(follow_symlinks=False).st_mode) for each in listed)
    except FileNotFoundError:
        return []
    if before and any(name in _MARKS for name, _ in rows):
        return []
    found = [before + name for name, mode in rows if not S_ISDIR(mode)]
    for name, mode in rows:
        if S_ISDIR(mode) and name not in _NEVER:
            found += _walked(root, f"{before}{name}/")
    return found
