"""A store of cached results: entries by key, files by the sha256 of their bytes; restore, size and pruning.

Its folders are `entries/`, `blobs/` and `last/` (for explanations); a store at a URL (`planrun.store.remote`) is alike.
Several processes on several machines may use it at the same time: files are written under temporary names and renamed
when complete. Readers check hashes: a partial, replaced or altered file is no result; it is removed, and the step runs.
Any other problem with the folder counts as no result, too.

`place` restores the files of a result in the workspace: all are checked before the first one is renamed. Pruning
removes the least recently used entries first.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from stat import S_IWGRP, S_IWOTH  # os has loaded it already

from planrun.folders import make_private
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Protocol

    class AnyStore(Protocol):
        """What a store offers, in a folder or at a URL."""

        path: str
        shared: bool

        def open(self) -> str:
            """Return why the store cannot be used, "" when it can."""

        def read(self, key: str) -> Entry | None:
            """Return the entry of a key; None when there is none. Raises Damaged."""

        def used(self, key: str) -> None:
            """Record that an entry was used."""

        def drop(self, key: str) -> None:
            """Remove an entry."""

        def write(self, entry: Entry) -> bool:
            """Write an entry whose bytes are stored; return whether that succeeded."""

        def has(self, digest: str, size: int) -> bool:
            """Return whether there are bytes of this hash, by their size."""

        def add(self, source: int, digest: str, size: int) -> bool:
            """Store the bytes of an open file; return whether that succeeded."""

        def fetch(self, digest: str, target: int, size: int) -> bool:
            """Write bytes into an open file; False when there are none. Raises Damaged, OSError."""

        def files(self, kind: str) -> Iterator[Listed]:
            """Yield the files of one kind."""

        def remove(self, kind: str, name: str) -> None:
            """Remove a file."""

        def now(self) -> float:
            """Return the time with which `Listed.used` is compared."""

        def close(self) -> None:
            """Release what the store holds."""


ENTRIES, BLOBS, LAST = "entries", "blobs", "last"
MAX_ENTRY = 64 << 20  # bytes of one entry: it names each file with some 150
CHUNK = 1 << 20
_FORM = b"planrun result 1 "
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Kept(Record):
    """One file of a result; `mode`: its permissions; `link`: its bytes are the target of a symbolic link."""

    path: str
    sha256: str
    bytes: int
    mode: int
    link: bool = False


class Entry(Record):
    """A result: its run and step, when it ended, its seconds, outputs, files, and its signature in a shared store.

    `cases`: the test cases that it reported, as the run keeps them; None: it reports none.
    """

    key: str
    run: str
    step: str
    at: str
    seconds: float
    outputs: dict[str, Any]
    files: tuple[Kept, ...]
    signature: str = ""
    cases: str | None = None


class Listed(Record):
    """A file of a store; `used`: the time of its last use, in seconds since 1970."""

    name: str
    bytes: int
    used: float


class Damaged(Exception):
    """A file in the store was damaged; the message names it."""


class Store:
    """A folder of results; `shared`: other users may write to it and own its permissions."""

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self.path = path
        self.shared = shared
        self._count = 0

    def is_ours(self) -> bool:
        """Return whether results may be used: only this user may write to a private store."""
        return not self._refusal()

    def open(self) -> str:
        """Create the folder if it is missing; return why the store cannot be used, "" when it can."""
        try:
            self._make(self.path)
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        return self._refusal()

    def _refusal(self) -> str:
        try:
            status = os.stat(self.path)
        except OSError as error:
            return f"{self.path}: {error.strerror}"
        if not self.shared and status.st_uid != os.geteuid():
            return f"{self.path} belongs to another user"
        if not self.shared and status.st_mode & (S_IWGRP | S_IWOTH):
            return f"other users can write to {self.path}; remove it, or run chmod go-w on it"
        return ""

    def _make(self, path: str) -> None:
        if self.shared:
            os.makedirs(path, exist_ok=True)
        else:
            make_private(path)

    def read(self, key: str) -> Entry | None:
        """Return the entry of a key; None when there is none. Raises Damaged when it is invalid."""
        data = self._read(ENTRIES, key)
        if data is None or not self.is_ours():
            return None
        try:
            return unpacked(data, key)
        except Damaged:
            _remove(self._path(ENTRIES, key))
            raise

    def used(self, key: str) -> None:
        """Record that an entry was used: the least recently used ones are pruned first."""
        try:
            os.utime(self._path(ENTRIES, key))
        except OSError:
            return

    def drop(self, key: str) -> None:
        """Remove an entry."""
        _remove(self._path(ENTRIES, key))

    def write(self, entry: Entry) -> bool:
        """Write an entry whose bytes are stored; return whether that succeeded."""
        data = packed(entry)
        return len(data) <= MAX_ENTRY and self._publish(ENTRIES, entry.key, [data])

    def has(self, digest: str, size: int) -> bool:
        """Return whether there are bytes of this hash, by their size; readers check the hash."""
        try:
            return os.lstat(self._path(BLOBS, digest)).st_size == size
        except OSError:
            return False

    def add(self, source: int, digest: str, size: int) -> bool:
        """Store the bytes of an open file; False when that fails or when they do not match the hash."""
        if self.has(digest, size):
            return True
        try:
            draft, fd = self._draft(BLOBS, digest)
        except OSError:
            return False
        try:
            right = copy(source, fd) == digest
            os.close(fd)
            if right:
                os.rename(draft, self._path(BLOBS, digest))
                return True
        except OSError:
            right = False
        _remove(draft)
        return False

    def fetch(self, digest: str, target: int, _size: int) -> bool:
        """Write the bytes of a hash into an open file; False when there are none. Raises Damaged, OSError."""
        path = self._path(BLOBS, digest)
        try:
            fd = self._opened(BLOBS, digest)
        except OSError:
            return False
        try:
            if copy(fd, target) == digest:
                return True
        finally:
            os.close(fd)
        _remove(path)
        raise Damaged("bytes of a file are damaged")

    def opened(self, digest: str) -> int:
        """Return the bytes of a hash as an open file; -1 when there are none."""
        try:
            return self._opened(BLOBS, digest)
        except OSError:
            return -1

    def remember(self, name: str, parts: Sequence[tuple[str, str]]) -> None:
        """Store what a step depended on, to explain differences the next time."""
        self._publish(LAST, name, [json.dumps(list(parts)).encode()])

    def recall(self, name: str) -> list[tuple[str, str]] | None:
        """Return what a step depended on the last time; None when that is unknown."""
        data = self._read(LAST, name)
        try:
            return [(str(part), str(value)) for part, value in json.loads(data or b"null")]
        except (ValueError, TypeError):
            return None

    def files(self, kind: str) -> Iterator[Listed]:
        """Yield the files of one kind; old temporary files of killed processes are removed."""
        old = time.time() - YOUNG
        for folder in _listed(f"{self.path}/{kind}"):
            for path in _listed(folder):
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if path.endswith(".part"):
                    if status.st_mtime < old:
                        _remove(path)
                else:
                    yield Listed(name=os.path.basename(path), bytes=status.st_size, used=status.st_mtime)

    def remove(self, kind: str, name: str) -> None:
        """Remove a file."""
        _remove(self._path(kind, name))

    def now(self) -> float:
        """Return the time with which `Listed.used` is compared."""
        return time.time()

    def close(self) -> None:
        """Hold nothing."""

    def _path(self, kind: str, name: str) -> str:
        return f"{self.path}/{kind}/{name[:2]}/{name}"

    def _opened(self, kind: str, name: str) -> int:
        from planrun.opening import open_below  # only plans with a cache open it

        return open_below(self.path, f"{kind}/{name[:2]}/{name}")

    def _read(self, kind: str, name: str) -> bytes | None:
        try:
            with open(self._opened(kind, name), "rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_ENTRY:
                    return None
                return file.read(MAX_ENTRY)
        except OSError:
            return None

    def _draft(self, kind: str, name: str) -> tuple[str, int]:
        """Return the temporary name of a new file, and the open file."""
        self._count += 1
        place = self._path(kind, name)
        draft = f"{place}.{os.uname().nodename[:40]}.{os.getpid()}.{self._count}.part"
        try:
            return draft, os.open(draft, _NEW, 0o666 if self.shared else 0o600)
        except FileNotFoundError:
            self._make(os.path.dirname(place))
        except FileExistsError:  # of a process that was killed and had the same id
            _remove(draft)
        return draft, os.open(draft, _NEW, 0o666 if self.shared else 0o600)

    def _publish(self, kind: str, name: str, parts: Sequence[bytes]) -> bool:
        try:
            draft, fd = self._draft(kind, name)
            try:
                for part in parts:
                    _write(fd, part)
            except OSError:
                _remove(draft)
                return False
            finally:
                os.close(fd)
            os.rename(draft, self._path(kind, name))
        except OSError:
            return False
        return True


def packed(entry: Entry) -> bytes:
    """Return an entry as it is stored: its form and the hash of the rest, then JSON."""
    fields = {**vars(entry), "files": [vars(each) for each in entry.files]}
    data = json.dumps(fields).encode() + b"\n"
    return _FORM + sha256(data).hexdigest().encode() + b"\n" + data


def unpacked(data: bytes, key: str) -> Entry:
    """Return the entry of a key from its stored form; raises Damaged."""
    head, _, rest = data.partition(b"\n")
    entry = _entry(rest) if head == _FORM + sha256(rest).hexdigest().encode() else None
    if entry is None or entry.key != key:
        raise Damaged("the entry is damaged")
    return entry


def _entry(data: bytes) -> Entry | None:
    """Parse an entry; None when it is invalid."""
    try:
        fields = json.loads(data)
        files = tuple([Kept(**row) for row in fields.pop("files")])
        entry = Entry(files=files, **fields)
        kinds = {(type(each.path), type(each.mode), type(each.sha256), type(each.bytes)) for each in files}
        sound = kinds <= {(str, int, str, int)} and type(fields["outputs"]) is dict
        sound = sound and isinstance(entry.cases, str | None)
        return entry if sound and entry.key and entry.run else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def copy(source: int, target: int) -> str:
    """Copy the rest of a file and return its sha256; raises OSError."""
    digest = hashlib.sha256()
    while block := os.read(source, CHUNK):
        digest.update(block)
        _write(target, block)
    return digest.hexdigest()


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RESTORE_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_sound(path: object) -> bool:
    """Return whether the path of an entry stays below the workspace."""
    if not isinstance(path, str) or not path or "\0" in path or path.startswith("/"):
        return False
    return not {"", ".", "..", ".git", ".planrun"} & {*path.split("/")}


def place(files: Sequence[Kept], stores: Iterable[AnyStore], workspace: str, drafts: str) -> None:
    """Put files into a workspace, each atomically; `drafts`: the folder for their temporary copies.

    Raises Damaged when the bytes of one are gone or altered, OSError when one cannot be written.
    """
    stores = tuple(stores)
    clear(drafts)
    make_private(drafts)
    try:
        ready = [_fetched(each, stores, f"{drafts}/{number}") for number, each in enumerate(files)]
        for each, draft in zip(files, ready, strict=True):
            _put(each, draft, workspace)
    finally:
        clear(drafts)


def clear(drafts: str) -> None:
    """Remove the temporary files of a killed process."""
    try:
        names = os.listdir(drafts)
    except OSError:
        return
    for name in names:
        os.unlink(f"{drafts}/{name}")


def _fetched(file: Kept, stores: Sequence[AnyStore], draft: str) -> str:
    fd = os.open(draft, _RESTORE_NEW, 0o600)
    try:
        if not any(_fetch(store, file, fd) for store in stores):
            raise Damaged("bytes of a file are gone")
        if not file.link:
            os.fchmod(fd, file.mode & 0o777)
            return draft
        text = os.pread(fd, 1 << 16, 0)
    finally:
        os.close(fd)
    os.unlink(draft)
    os.symlink(text, os.fsencode(draft))
    return draft


def _fetch(store: AnyStore, file: Kept, fd: int) -> bool:
    try:
        return store.fetch(file.sha256, fd, file.bytes)
    except Damaged:
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        return False  # another store may have them


def _put(file: Kept, draft: str, workspace: str) -> None:
    *folders, name = file.path.split("/")
    fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            try:
                inner = os.open(folder, _FOLDER, dir_fd=fd)
            except FileNotFoundError:
                os.mkdir(folder, dir_fd=fd)
                inner = os.open(folder, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
        os.rename(draft, name, dst_dir_fd=fd)
    finally:
        os.close(fd)


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


def size(store: AnyStore) -> int:
    """Return how many bytes the files in a store take."""
    return sum([found.bytes for found in store.files(BLOBS)])


def rows(store: AnyStore) -> list[Row]:
    """Return the entries of a store, most recently used first; damaged ones are removed."""
    entries = []
    for found in store.files(ENTRIES):
        try:
            entry = store.read(found.name)
        except Damaged:
            continue
        if entry is not None:
            entries.append(Row(entry=entry, used=found.used))
    return sorted(entries, key=lambda row: row.used, reverse=True)


def prune(store: AnyStore, most: int, oldest: float = 0.0) -> Pruned:
    """Remove entries until a store holds at most `most` bytes, and bytes that no entry names.

    `oldest`: entries that were used last before this time, in seconds since 1970, are removed, too.
    """
    kept: dict[str, int] = {}
    dropped: set[str] = set()
    total, removed = 0, 0
    for row in rows(store):
        own = {each.sha256: each.bytes for each in row.entry.files}
        more = sum([number for digest, number in own.items() if digest not in kept])
        if total + more > most or row.used < oldest:
            store.drop(row.entry.key)
            dropped |= own.keys()
            removed += 1
        else:
            kept |= own
            total += more
    freed, young = 0, store.now() - YOUNG
    for found in store.files(BLOBS):
        if found.name not in kept and (found.name in dropped or found.used < young):
            freed += found.bytes
            store.remove(BLOBS, found.name)
    return Pruned(entries=removed, bytes=freed)


def clear_store(store: AnyStore) -> Pruned:
    """Remove everything."""
    pruned = prune(store, -1)
    for kind in (ENTRIES, BLOBS, LAST):
        for found in list(store.files(kind)):
            store.remove(kind, found.name)
    return pruned


def verify(store: AnyStore) -> tuple[int, list[str]]:
    """Verify everything; return how many entries and files are valid, and which were removed as damaged."""
    sound, damaged = 0, []
    for found in list(store.files(ENTRIES)):
        try:
            sound += store.read(found.name) is not None
        except Damaged:
            damaged.append(f"{ENTRIES}/{found.name}")
    with open(os.devnull, "wb") as nowhere:
        for found in list(store.files(BLOBS)):
            try:
                sound += store.fetch(found.name, nowhere.fileno(), found.bytes)
            except Damaged:
                damaged.append(f"{BLOBS}/{found.name}")
    return sound, damaged


def _listed(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    except OSError:
        return []
