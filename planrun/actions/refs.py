"""The branches and tags of a repository, read from its files: no git is started."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

KINDS = {"heads": "branch", "tags": "tag"}
"""What the refs below these folders of `refs` are called."""
MOST = 1000
"""Rows of one attempt."""


def refs_of(root: str) -> dict[tuple[str, str], str]:
    """Return what each branch and tag of the repository in a folder points at, by kind and name."""
    git = os.path.join(root, ".git")
    try:
        if os.path.isfile(git):  # of a worktree, whose refs are those of the main one
            with open(git, encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(root, file.read().removeprefix("gitdir:").strip())
            with open(f"{git}/commondir", encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(git, file.read().strip())
        found = dict(_packed(git))
    except OSError:
        found = {}
    for folder, kind in KINDS.items():
        found.update(_loose(f"{git}/refs/{folder}", kind))
    return found


def _packed(git: str) -> Iterator[tuple[tuple[str, str], str]]:
    try:
        with open(f"{git}/packed-refs", encoding="utf-8", errors="surrogateescape") as file:
            rows = file.read().splitlines()
    except FileNotFoundError:
        return
    for row in rows:
        target, _, name = row.partition(" ")
        _, folder, short = (*name.split("/", 2), "", "")[:3]
        if folder in KINDS and short and not row.startswith(("#", "^")):
            yield (KINDS[folder], short), target


def _loose(top: str, kind: str) -> Iterator[tuple[tuple[str, str], str]]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    yield (kind, os.path.relpath(path, top)), file.read().strip()
            except OSError:  # it is being written, or gone
                continue


def changes(
    before: Mapping[tuple[str, str], str], after: Mapping[tuple[str, str], str]
) -> tuple[dict[str, Any], ...]:
    """Return a row for each branch or tag that was created, moved or deleted."""
    rows = []
    for kind, name in sorted({*before, *after}):
        old, new = before.get((kind, name)), after.get((kind, name))
        if old != new:
            action = "created" if old is None else "deleted" if new is None else "changed"
            rows.append({"kind": kind, "id": name, "action": action})
    return tuple(rows[:MOST])
