"""The files that a step changed, whether it names them or not: two looks at the tree, before and after.

Loaded for plans with `track_files`. A file counts as changed when its time, size or inode did; its hash is that of its
content when the step ended. The hash before is there where an earlier step of the same process left the file so.
"""

from __future__ import annotations

import os

from planrun.steps.files import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.model.job import Outcome
    from planrun.model.plan import Step
    from planrun.model.state import RunState

    State = tuple[int, int, int]  # mtime in ns, size, inode
    Tree = dict[str, State]

MAX_FILES = 20_000  # of a tree; a larger one is not looked at, and the record says so
MAX_LISTED = 1000  # rows of one attempt
MAX_HASHED = 16 << 20  # bytes of one file: hashing happens between two steps
ALL_HASHED = 64 << 20  # bytes of one attempt
KEY = "tracked"  # what tells such a row from those of files that a step names
_NEVER = (".git", ".planrun", "planrun-out")


class TooMany(Exception):
    """The tree has more than MAX_FILES files."""


class Tracking:
    """What changed in the tree of a run; `hidden`: folders in it that hold reports."""

    def __init__(self, root: str, hidden: Sequence[str]) -> None:
        self._root = root
        self._hidden = frozenset((*_NEVER, *hidden))
        self._begun: dict[str, Tree | None] = {}  # None: there were too many
        self._beside: dict[str, dict[str, None]] = {}  # the steps that ran in the same time
        self._hashes: dict[str, tuple[State, str]] = {}

    def begin(self, step: Step, state: RunState) -> None:
        """Look at the tree before an attempt starts."""
        running = [name for name, each in state.steps.items() if each.status == "running" and name != step.id]
        running = [name for name in running if state.steps[name].step.kind != "group"]
        self._beside[step.id] = dict.fromkeys(running)
        for name in running:
            if name in self._beside:
                self._beside[name][step.id] = None
        self._begun[step.id] = self._tree()

    def ended(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt with a row for each file that changed and that no row is about yet."""
        if step.id not in self._begun:
            return outcome
        before, after, beside = self._begun.pop(step.id), self._tree(), self._beside.pop(step.id)
        if before is None or after is None:
            told = f"what it changed is not recorded: the tree has more than {MAX_FILES:,} files"
            return outcome.but(notes=(*outcome.notes, told))
        known = {row.get("path") for row in outcome.files}
        changed = [path for path, state in after.items() if before.get(path) != state]
        paths = sorted({*changed, *[path for path in before if path not in after]} - known)
        left, room = len(paths) - MAX_LISTED, ALL_HASHED
        rows: list[dict[str, Any]] = []
        for path in paths[:MAX_LISTED]:
            row = self._row(path, before.get(path), after.get(path), room)
            room -= row["bytes"] if row["sha256"] else 0
            rows.append({**row, "key": KEY, **({"also": list(beside)} if beside else {})})
        if left > 0:
            rows.append({"op": "more", "count": left, "bytes": 0, "sha256": "", "key": KEY})
        return outcome.but(files=(*outcome.files, *rows)) if rows else outcome

    def _row(self, path: str, old: State | None, new: State | None, room: int) -> dict[str, Any]:
        """Return one row; `room`: how many bytes may still be hashed. An empty hash is one that is not known."""
        state, sha256 = self._hashes.pop(path, (None, ""))
        before = {"before": sha256} if sha256 and state == old else {}
        if new is None:
            return {"path": path, "op": "deleted", "sha256": "", "bytes": 0, **before}
        found = self._hash(path) if new[1] <= min(MAX_HASHED, room) else ""
        if found:
            self._hashes[path] = new, found
        op = "created" if old is None else "changed"
        return {"path": path, "op": op, "sha256": found, "bytes": new[1], **before}

    def _hash(self, path: str) -> str:
        try:
            seen = look(os.path.join(self._root, path))
        except OSError:
            return ""
        return seen.sha256 if seen else ""

    def _tree(self) -> Tree | None:
        found: Tree = {}
        try:
            self._walk(self._root, "", found)
        except TooMany:
            return None
        return found

    def _walk(self, folder: str, before: str, found: Tree) -> None:
        """Add all files below a folder; what may not be read is left out."""
        inner: list[str] = []
        try:
            with os.scandir(folder) as listed:
                for entry in listed:
                    name = entry.name
                    if name in _NEVER or before + name in self._hidden:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(name)
                        continue
                    status = entry.stat(follow_symlinks=False)
                    found[before + name] = status.st_mtime_ns, status.st_size, status.st_ino
        except OSError:
            pass
        if len(found) > MAX_FILES:
            raise TooMany
        for name in inner:
            self._walk(f"{folder}/{name}", f"{before}{name}/", found)
