"""The files of a workspace that a plan can name: in git the tracked ones, elsewhere those that there are. HOT."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from planrun.actions.gitconfig import Root, Unsure, entries, roots
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 20_000  # files of a workspace without git; more are not listed
_INDEX = 256 << 20  # bytes
_OWN = (".planrun", "planrun-out")
_OTHERS = frozenset((".git", "node_modules", "__pycache__"))  # folders that no plan brings along
_DEEP = 4  # repositories in each other


class Listing:
    """The files of a workspace, `is_git` those that git tracks; `stamp` changes whenever the names do.

    `note`: why some are missing, "" otherwise.
    """

    def __init__(self, workspace: str) -> None:
        self.note = ""
        self._folder = os.path.realpath(workspace)
        self._root = _root_of(self._folder)
        self.is_git = self._root is not None
        self._names: list[str] | None = None
        if self._root is None:
            self._names = sorted(self._walk())
            self.stamp = str(sha256("\0".join(self._names).encode("utf-8", "surrogateescape")).hexdigest())
        else:
            self.stamp = repr(state_of(os.path.join(self._root.gitdir, "index")))

    @property
    def names(self) -> list[str]:
        """The paths from the workspace, sorted. Raises InvalidInput for an index that cannot be read."""
        if self._names is None:
            assert self._root is not None
            inner = os.path.relpath(self._folder, os.path.realpath(self._root.top))
            prefix = "" if inner == "." else f"{inner}/"
            found = _tracked(self._root, "", _DEEP)
            below = [path[len(prefix) :] for path in found if path.startswith(prefix)]
            self._names = sorted([name for name in below if not name.startswith(_OWN)])
        return self._names

    def _walk(self) -> Iterator[str]:
        count, folders = 0, [""]
        while folders:
            folder = folders.pop()
            try:
                found = sorted(os.scandir(os.path.join(self._folder, folder)), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in found:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _OTHERS and not path.startswith(_OWN):
                        folders.append(path)
                    continue
                count += 1
                if count > _MOST:
                    self.note = (
                        f"the workspace has more than {_MOST} files, and no git that lists those that count"
                    )
                    return
                if not entry.name.startswith(".planrun-"):
                    yield path


def _root_of(folder: str) -> Root | None:
    try:
        found = roots(folder)
    except (Unsure, OSError, ValueError):
        return None
    usable = [root for root in found if root.gitdir != root.top]
    return usable[0] if usable else None


def _tracked(root: Root, prefix: str, depth: int) -> Iterable[str]:
    path = os.path.join(root.gitdir, "index")
    try:
        with open(path, "rb") as file:
            data = file.read(_INDEX)
        is_split = any(name.startswith("sharedindex.") for name in os.listdir(root.gitdir))
        found = [prefix + name for name in entries(b"" if is_split else data, links=False)]
        links = entries(data, links=True) if depth else []
    except FileNotFoundError:  # nothing was added yet
        return []
    except (OSError, ValueError):  # a form that only git knows
        from planrun.plan.revisions import tracked_files

        return [prefix + name for name in tracked_files(root.top)]
    for link in links:
        inner = _root_of(os.path.realpath(os.path.join(root.top, link)))
        if inner is not None and inner.top != root.top:
            found += _tracked(inner, f"{prefix}{link}/", depth - 1)
    return found


def state_of(path: str) -> tuple[int, ...]:
    """Return what changes when a file changes, links followed; empty when there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    kind = 1 if S_ISREG(found.st_mode) else 2 if S_ISDIR(found.st_mode) else 3
    return kind, found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns
