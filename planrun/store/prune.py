"""The size of a store, and its pruning: the least recently used entries are removed first."""

from __future__ import annotations

import os
import time

from planrun.model.record import Record
from planrun.store.entries import BLOBS, ENTRIES, LAST, Damaged, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.store.entries import Entry

MAX_SIZE = 2 << 30
"""Default limit of a user's store, in bytes."""
YOUNG = 3600.0
"""Seconds that bytes without an entry stay: a run may be about to write the entry."""


class Row(Record):
    """One entry with the time of its last use, seconds since 1970."""

    entry: Entry
    used: float


class Pruned(Record):
    """What was removed: entries, and bytes of files."""

    entries: int
    bytes: int


def as_bytes(text: str) -> int | None:
    """Parse a size such as 500M or 2G in bytes; None when it is invalid."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    return int(digits) * factor if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def size(store: Store) -> int:
    """Return how many bytes the files in a store take."""
    return sum([status.st_size for _, status in _files(store, BLOBS)])


def rows(store: Store) -> list[Row]:
    """Return the entries of a store, most recently used first; damaged ones are removed."""
    entries = []
    for path, status in _files(store, ENTRIES):
        try:
            entry = store.read(os.path.basename(path))
        except Damaged:
            continue
        if entry is not None:
            entries.append(Row(entry=entry, used=status.st_mtime))
    return sorted(entries, key=lambda row: row.used, reverse=True)


def prune(store: Store, most: int) -> Pruned:
    """Remove entries until a store holds at most `most` bytes, and bytes that no entry names."""
    kept: dict[str, int] = {}
    dropped: set[str] = set()
    total, removed = 0, 0
    for row in rows(store):
        own = {each.sha256: each.bytes for each in row.entry.files}
        more = sum([number for digest, number in own.items() if digest not in kept])
        if total + more > most:
            store.drop(row.entry.key)
            dropped |= own.keys()
            removed += 1
        else:
            kept |= own
            total += more
    freed, young = 0, time.time() - YOUNG
    for path, status in _files(store, BLOBS):
        name = os.path.basename(path)
        if name not in kept and (name in dropped or status.st_mtime < young):
            freed += status.st_size
            _remove(path)
    return Pruned(entries=removed, bytes=freed)


def clear(store: Store) -> Pruned:
    """Remove everything."""
    pruned = prune(store, -1)
    for kind in (ENTRIES, BLOBS, LAST):
        for path, _ in list(_files(store, kind)):
            _remove(path)
    return pruned


def verify(store: Store) -> tuple[int, list[str]]:
    """Verify everything; return how many entries and files are valid, and which were removed as damaged."""
    sound, damaged = 0, []
    for path, _ in list(_files(store, ENTRIES)):
        name = os.path.basename(path)
        try:
            sound += store.read(name) is not None
        except Damaged:
            damaged.append(f"{ENTRIES}/{name}")
    with open(os.devnull, "wb") as nowhere:
        for path, _ in list(_files(store, BLOBS)):
            name = os.path.basename(path)
            try:
                sound += store.fetch(name, nowhere.fileno())
            except Damaged:
                damaged.append(f"{BLOBS}/{name}")
    return sound, damaged


def _files(store: Store, kind: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files of one kind; old temporary files of killed processes are removed."""
    old = time.time() - YOUNG
    for folder in _listed(f"{store.path}/{kind}"):
        for path in _listed(folder):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if path.endswith(".part"):
                if status.st_mtime < old:
                    _remove(path)
            else:
                yield path, status


def _listed(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
