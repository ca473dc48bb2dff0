"""The contents of files that a worker has, each once, under its digest."""

from __future__ import annotations

import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WINDOW = 8 << 20  # bytes that are asked for at once
_ASKED = 500  # contents as well
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class _Arriving:
    """A content on its way: the file that takes it, and the digest so far."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, _NEW, 0o600)
        self.found = hashlib.sha256()


class Contents:
    """Contents in a folder; what is missing is asked for by `due`, some megabytes at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.mkdir(folder, 0o700)
        self._here: set[str] = set()
        self._missing: dict[str, int] = {}  # bytes by digest; not asked for yet
        self._asked: dict[str, int] = {}
        self._numbers: dict[str, int] = {}  # how often a content was asked for
        self._arriving: dict[str, _Arriving] = {}
        self._failed: dict[str, str] = {}  # why, by digest

    def path(self, digest: str) -> str:
        """Return where a content is, or will be."""
        return os.path.join(self._folder, digest)

    def want(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Ask for contents, digest and bytes, that are neither here nor asked for; also those that failed before."""
        for digest, size in wanted:
            if digest not in self._here and digest not in self._asked:
                self._failed.pop(digest, None)
                self._missing[digest] = size

    def due(self) -> list[tuple[str, int]]:
        """Return what to ask for now: digests and bytes."""
        due: list[tuple[str, int]] = []
        total = sum(self._asked.values())
        while self._missing and len(self._asked) < _ASKED and (total < _WINDOW or not self._asked):
            digest, size = self._missing.popitem()
            self._asked[digest] = size
            self._numbers[digest] = self._numbers.get(digest, 0) + 1
            total += size
            due.append((digest, size))
        return due

    def has(self, digest: str) -> bool:
        """Return whether a content is here."""
        return digest in self._here

    def failure(self, digest: str) -> str:
        """Return why a content cannot be here; empty: it is, or it is on its way."""
        return self._failed.get(digest, "")

    def number(self, digest: str) -> int:
        """Return how often a content was asked for: pieces that answer an earlier request are still to come."""
        return self._numbers.get(digest, 0)

    def take(self, digest: str, data: bytes, *, number: int, is_last: bool) -> None:
        """Take the next piece of a content, in answer to the request with a number."""
        if digest in self._failed or digest not in self._asked or number != self.number(digest):
            return
        try:
            arriving = self._arriving.get(digest)
            if arriving is None:
                arriving = self._arriving[digest] = _Arriving(self.path(digest) + ".part")
            arriving.found.update(data)
            while data:
                data = data[os.write(arriving.fd, data) :]
            if is_last:
                if arriving.found.hexdigest() != digest:
                    self.fail(digest, "it changed while it was sent")
                else:
                    os.close(arriving.fd)
                    del self._arriving[digest]
                    os.rename(self.path(digest) + ".part", self.path(digest))
                    self.arrived(digest)
        except OSError as error:
            self.fail(digest, f"the worker cannot keep it: {error.strerror}")

    def arrived(self, digest: str) -> None:
        """Take note of a content that is here."""
        self._asked.pop(digest, None)
        self._missing.pop(digest, None)
        self._here.add(digest)

    def fail(self, digest: str, why: str) -> None:
        """Take note of a content that cannot be here."""
        self._asked.pop(digest, None)
        arriving = self._arriving.pop(digest, None)
        if arriving is not None:
            os.close(arriving.fd)
            os.unlink(self.path(digest) + ".part")
        self._failed[digest] = why
