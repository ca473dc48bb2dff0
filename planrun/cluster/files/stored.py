"""A store beside the connections: large contents go through a folder or URL that planrun and its workers reach.

A thread speaks to it, since it may take long; whatever fails there goes over the connection instead.
"""

from __future__ import annotations

import hashlib
import os
import queue
import threading

from planrun.errors import InvalidInput, RemoteError
from planrun.places.place import open_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.places.place import Place

_CHUNK = 1 << 20


def key_of(digest: str) -> str:
    """Return the key of a content."""
    return f"contents/{digest[:2]}/{digest}"


def fetch(place: Place, digest: str, path: str, size: int) -> bool:
    """Write a content into a file; False when there is none or it is another one. Raises OSError, RemoteError."""
    draft = f"{path}.part"
    fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        is_there = place.fetch(key_of(digest), fd, size)
        os.lseek(fd, 0, os.SEEK_SET)
        found = hashlib.sha256()
        while data := os.read(fd, _CHUNK):
            found.update(data)
    finally:
        os.close(fd)
    if not is_there or found.hexdigest() != digest:
        os.unlink(draft)
        return False
    os.rename(draft, path)
    return True


def send(place: Place, digest: str, path: str) -> bool:
    """Store a content from a file; False when the file has another one by now. Raises OSError, RemoteError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = hashlib.sha256()
        while data := os.read(fd, _CHUNK):
            found.update(data)
        if found.hexdigest() != digest:
            return False
        place.send(key_of(digest), fd)
    finally:
        os.close(fd)
    return True


class StoreThread:
    """Fetches and sends contents beside the loop of a runner.

    `results` has what ended: verb, digest, whether it went well.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._asked: queue.SimpleQueue[tuple[str, str, str, int]] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[tuple[str, str, bool]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, verb: str, digest: str, path: str, size: int) -> None:
        """Have a content fetched into a file, or sent from it."""
        self._asked.put((verb, digest, path, size))

    def _work(self) -> None:
        place: Place | None = None
        while True:
            verb, digest, path, size = self._asked.get()
            try:
                if place is None:
                    place = open_place(self._url)
                went = fetch(place, digest, path, size) if verb == "fetch" else send(place, digest, path)
            except (OSError, InvalidInput, RemoteError):  # the connection is there
                went = False
            self.results.put((verb, digest, went))
