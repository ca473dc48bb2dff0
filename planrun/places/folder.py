"""A place in a folder, on this machine or mounted from another one: files, written under temporary names."""

from __future__ import annotations

import errno
import os
import time
from stat import S_ISDIR, S_ISREG

from planrun.errors import RemoteError
from planrun.opening import open_below
from planrun.places.keys import Found, check_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

MOST = 64 << 20
"""Bytes of an object that is read into memory."""
_CHUNK = 1 << 20
_OLD = 86_400.0  # seconds after which a temporary file belongs to a killed process
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = ".new-"


class Folder:
    """Objects as files; `create` is a hard link, of which the file system makes only one."""

    atomic = True

    def __init__(self, path: str) -> None:
        self.path = path
        self.url = path
        self._count = 0

    def require(self) -> None:
        """Need no package."""

    def read(self, key: str, most: int = MOST) -> bytes | None:
        """Return the bytes of an object; None when there is none."""
        fd = self._open(key)
        if fd < 0:
            return None
        try:
            if os.fstat(fd).st_size > most:
                raise RemoteError(f"{self.url}: {key} has more than {most:,} bytes")
            return b"".join(_blocks(fd))
        except OSError as error:
            self._refuse(key, error)
        finally:
            os.close(fd)

    def write(self, key: str, data: bytes) -> None:
        """Create or replace an object, on disk when it returns."""
        self._publish(key, lambda fd: _write(fd, data), sync=True)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object if there is none, on disk when it returns; return whether it was created."""
        return self._publish(key, lambda fd: _write(fd, data), sync=True, replace=False)

    def fetch(self, key: str, target: int, most: int) -> bool:
        """Write the bytes of an object into an open file; False when there is none or it has more than `most`."""
        fd = self._open(key)
        if fd < 0:
            return False
        try:
            if os.fstat(fd).st_size > most:
                return False
            for block in _blocks(fd):
                _write(target, block)
        except OSError as error:
            self._refuse(key, error)
        finally:
            os.close(fd)
        return True

    def send(self, key: str, source: int) -> None:
        """Create or replace an object by the bytes of an open file, from its beginning."""

        def fill(fd: int) -> None:
            os.lseek(source, 0, os.SEEK_SET)
            for block in _blocks(source):
                _write(fd, block)

        self._publish(key, fill)

    def list(self, prefix: str) -> dict[str, Found]:
        """Return the objects whose keys begin with `prefix` and a slash; old temporary files are removed."""
        if prefix:
            check_key(prefix)
        found: dict[str, Found] = {}
        for key, status in self._walk(prefix):
            found[key] = Found(bytes=status.st_size, modified=status.st_mtime)
        return found

    def find(self, key: str) -> Found | None:
        """Return size and age of an object; None when there is none."""
        fd = self._open(key)
        if fd < 0:
            return None
        status = os.fstat(fd)
        os.close(fd)
        return Found(bytes=status.st_size, modified=status.st_mtime)

    def remove(self, key: str) -> None:
        """Remove an object; one that does not exist is no error."""
        check_key(key)
        try:
            os.unlink(f"{self.path}/{key}")
        except FileNotFoundError:
            return
        except OSError as error:
            self._refuse(key, error)

    def now(self) -> float:
        """Return the time by the clock that stamps the files of this folder."""
        try:
            draft, fd = self._draft("clock")
            try:
                return os.fstat(fd).st_mtime
            finally:
                os.close(fd)
                os.unlink(draft)
        except OSError as error:
            self._refuse("", error)

    def close(self) -> None:
        """Hold nothing."""

    def _walk(self, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        folder = f"{self.path}/{prefix}" if prefix else self.path
        try:
            names = sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._refuse(prefix, error)
        for name in names:
            try:
                status = os.lstat(f"{folder}/{name}")
            except OSError:  # removed meanwhile
                continue
            key = f"{prefix}/{name}" if prefix else name
            if name.startswith(_TEMPORARY):
                if time.time() - status.st_mtime > _OLD:
                    _remove(f"{folder}/{name}")
            elif S_ISDIR(status.st_mode):
                yield from self._walk(key)
            elif S_ISREG(status.st_mode):
                yield key, status

    def _open(self, key: str) -> int:
        """Return an open file; -1 when there is none."""
        check_key(key)
        try:
            return open_below(self.path, key)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL):
                return -1
            self._refuse(key, error)

    def _draft(self, key: str) -> tuple[str, int]:
        """Return a temporary name beside a key, and the open file."""
        folder = os.path.dirname(f"{self.path}/{key}")
        self._count += 1
        draft = f"{folder}/{_TEMPORARY}{os.uname().nodename[:40]}-{os.getpid()}-{self._count}-{os.urandom(4).hex()}"
        try:
            return draft, os.open(draft, _NEW, 0o666)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            return draft, os.open(draft, _NEW, 0o666)

    def _publish(
        self, key: str, fill: Callable[[int], None], *, sync: bool = False, replace: bool = True
    ) -> bool:
        check_key(key)
        path = f"{self.path}/{key}"
        draft = ""
        try:
            draft, fd = self._draft(key)
            try:
                fill(fd)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            if replace:
                os.rename(draft, path)
                draft = ""
            else:
                os.link(draft, path)
            if sync:
                _sync(os.path.dirname(path))
        except FileExistsError:
            return False
        except OSError as error:
            self._refuse(key, error)
        finally:
            if draft:
                _remove(draft)
        return True

    def _refuse(self, key: str, error: OSError) -> NoReturn:
        why = error.strerror
        if error.errno in (errno.EPERM, errno.ENOTSUP) and key:
            why = f"{why}; the folder needs a file system with hard links"
        where = f"{self.url}: {key}" if key else self.url
        raise RemoteError(f"{where}: {why}") from None


def _blocks(fd: int) -> Iterator[bytes]:
    while block := os.read(fd, _CHUNK):
        yield block


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
