"""A store of cached results at a URL, which several machines share: entries and files by the same names as in a folder.

It is never needed: when it does not answer, or holds something that cannot be used, it has no result. The first call
that fails is the last one, and `problem` says why. What arrives is checked by its hash before it is used.
"""

from __future__ import annotations

import os
import tempfile

from planrun.errors import PlanrunError
from planrun.store.entries import BLOBS, ENTRIES, MAX_ENTRY, Damaged, Listed, copy, packed, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    from planrun.places.keys import Found
    from planrun.places.place import Place
    from planrun.store.entries import Entry

    Result = TypeVar("Result")

TOUCHED = 86_400.0
"""Seconds after which a use of an entry is recorded again: its age decides what is pruned."""


class RemoteStore:
    """Results in a shared place; `strict`: errors are raised, for verbs that inspect the store."""

    shared = True

    def __init__(self, place: Place, *, strict: bool = False) -> None:
        self.path = place.url
        self.problem = ""
        self._place = place
        self._strict = strict
        self._data: dict[str, bytes] = {}  # entries that were read

    def open(self) -> str:
        """Return why the store cannot be used, "" when it can."""
        return self.problem

    def read(self, key: str) -> Entry | None:
        """Return the entry of a key; None when there is none. Raises Damaged when it is invalid."""
        data = self._ask(lambda: self._place.read(_key(ENTRIES, key), MAX_ENTRY), None)
        if data is None:
            return None
        try:
            entry = unpacked(data, key)
        except Damaged:
            self.drop(key)
            raise
        self._data = {key: data}
        return entry

    def used(self, key: str) -> None:
        """Record that an entry was used, at most once a day."""
        data = self._data.get(key)
        if data is None:
            return
        found = self._ask(lambda: self._place.find(_key(ENTRIES, key)), None)
        if found and self._ask(self._place.now, 0.0) - found.modified > TOUCHED:
            self._ask(lambda: self._place.write(_key(ENTRIES, key), data), None)

    def drop(self, key: str) -> None:
        """Remove an entry."""
        self.remove(ENTRIES, key)

    def write(self, entry: Entry) -> bool:
        """Write an entry whose bytes are stored; return whether that succeeded."""
        data = packed(entry)

        def put() -> bool:
            self._place.write(_key(ENTRIES, entry.key), data)
            return True

        return len(data) <= MAX_ENTRY and self._ask(put, default=False)

    def has(self, digest: str, size: int) -> bool:
        """Return whether there are bytes of this hash, by their size; readers check the hash."""
        found = self._ask(lambda: self._place.find(_key(BLOBS, digest)), None)
        return found is not None and found.bytes == size

    def add(self, source: int, digest: str, size: int) -> bool:
        """Store the bytes of an open file; False when that fails or when they do not match the hash."""
        if self.has(digest, size):
            return True

        def put() -> bool:
            # A copy: the file may change while it is sent, and no reader could use what arrives.
            with tempfile.TemporaryFile() as draft:
                if copy(source, draft.fileno()) != digest:
                    return False
                self._place.send(_key(BLOBS, digest), draft.fileno())
            return True

        return self._ask(put, default=False)

    def fetch(self, digest: str, target: int, size: int) -> bool:
        """Write the bytes of a hash into an open file; False when there are none. Raises Damaged, OSError."""
        with tempfile.TemporaryFile() as draft:
            fd = draft.fileno()
            if not self._ask(lambda: self._place.fetch(_key(BLOBS, digest), fd, size), default=False):
                return False
            os.lseek(fd, 0, os.SEEK_SET)
            if copy(fd, target) == digest:
                return True
        self.remove(BLOBS, digest)
        raise Damaged("bytes of a file are damaged")

    def files(self, kind: str) -> Iterator[Listed]:
        """Yield the files of one kind."""
        listed: Mapping[str, Found] = {}
        for key, found in self._ask(lambda: self._place.list(kind), listed).items():
            yield Listed(name=key.rpartition("/")[2], bytes=found.bytes, used=found.modified)

    def remove(self, kind: str, name: str) -> None:
        """Remove a file; one that may not be removed stays."""
        try:
            self._place.remove(_key(kind, name))
        except PlanrunError:
            if self._strict:
                raise

    def now(self) -> float:
        """Return the time by the clock of the place."""
        return self._ask(self._place.now, 0.0)

    def close(self) -> None:
        """Release the connection."""
        self._place.close()

    def _ask(self, call: Callable[[], Result], default: Result) -> Result:
        if self.problem:
            return default
        try:
            return call()
        except PlanrunError as error:
            self._note(error)
            return default

    def _note(self, error: PlanrunError) -> None:
        if self._strict:
            raise error
        self.problem = self.problem or str(error)


def _key(kind: str, name: str) -> str:
    return f"{kind}/{name[:2]}/{name}"
