"""One file of a tree as plain data, and which paths and links are taken."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Entry = Sequence[Any]
    """sha256, bytes, kind, time of its content in ns; of a link: its target in place of the time."""

FILE, PROGRAM, LINK = "file", "program", "link"
CACHES = frozenset(("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"))
"""Folders that programs fill for themselves: nothing is said of them."""
LARGE = 256 << 10
"""Bytes from which a content goes through a store; smaller ones are faster over the connection."""
PIECE = 192 << 10  # bytes of a file that are sent at once


def is_same(one: Entry | None, other: Entry | None) -> bool:
    """Return whether two files are interchangeable for a step."""
    if one is None or other is None:
        return one is other
    return bool(one[0] == other[0] and one[2] == other[2])


def is_inside(path: str) -> bool:
    """Return whether a path names something in a folder, whatever is in it."""
    return bool(path) and not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))


def has_linked_folder(root: str, path: str) -> bool:
    """Return whether a folder above a path is a link: what is written there would be written elsewhere."""
    at = root
    for name in path.split("/")[:-1]:
        at = f"{at}/{name}"
        if os.path.islink(at):
            return True
    return False


def umask() -> int:
    """Return the permissions that new files do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def named(paths: Sequence[str], most: int = 5) -> str:
    """Return the names of files in few words: folders with many of them once, by how many."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, _ = path.partition("/")
        by_folder.setdefault(folder + slash, []).append(path)
    words = []
    for folder, inner in by_folder.items():
        words += inner if len(inner) <= 2 else [f"{folder} ({len(inner):,} files)"]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
