"""The ledger: one JSON line an event, each with a hash over itself and the hash of the line before.

A line is `{"seq":n,"type":"…",…,"hash":"…"}`. Its hash is the sha256, in hex, of the hash of the line before
(64 zeros before the first) followed by the bytes of the line up to `,"hash"`. So a changed line is known by itself,
and a moved or missing one by the next. The hash of the last line is the head: whoever knows it can tell a rewritten
ledger.

A piece of the disk that is kept for the last records of a run, which have to fit when nothing else does.

One file a workspace, `.planrun/reserve`. Who writes or removes it has the workspace lock.
"""

from __future__ import annotations

import errno
import os

from planrun.errors import RecordsLost
from planrun.model.events import NAMES
from planrun.model.jsontext import dumps
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.model.record import Record

GENESIS = "0" * 64
NEW = ".new"
"""What a reserve's name ends with until the names of the folders above the run are on the disk."""
_GONE, _REMOVED = errno.ENOENT, "it was removed or replaced while the run went on"
_CHANGED = "something else wrote into it while the run went on"


class Ledger:
    """The one writer of a ledger file, opened for appending; its run holds the workspace lock.

    The file `reserve` is given back to a full disk, so that the last records fit. `beside`: files and folders
    without which the ledger is of no use; they are synced together with its first events. Once something cannot be
    written `lost` says what; from then on what still fits is written, whole lines only.
    """

    _names: Mapping[type[Any], str] = NAMES  # of what it keeps: the events of a run

    def __init__(
        self,
        path: str,
        *,
        seq: int = 0,
        head: str = GENESIS,
        reserve: str = "",
        beside: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.records = seq
        self.head = head
        self.lost: RecordsLost | None = None
        self._reserve = reserve
        self._beside = beside
        self._dirty = False
        self._dead = False  # nothing more can be written
        self._founded = False  # whether its name, and what it needs, are known to survive a power cut
        # For benchmarks only: what durability costs is the difference.
        self._durable = "PLANRUN_NO_SYNC" not in os.environ
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o600)
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            raise self._told(error) from None

    def append(self, event: Record) -> None:
        """Write one event; on return it survives the death of this process, or `lost` says why it may not."""
        if self._dead:
            return
        fields = dumps(event.__dict__)
        body = f'{{"seq":{self.records + 1},"type":"{self._names[type(event)]}",{fields[1:-1]}'
        head = sha256((self.head + body).encode()).hexdigest()
        line = f'{body},"hash":"{head}"}}\n'.encode()
        if self._write(line):
            self.records += 1
            self.head = head
            self._size += len(line)
            self._dirty = True

    def sync(self) -> None:
        """Make what was appended survive a power cut; does nothing when nothing was. See `lost`."""
        if not self._dirty or self._dead:
            return
        self._dirty = False
        try:
            if not self._founded:
                self._found()
            if self._durable:
                _sync(self._fd)
            self._look_after()
        except OSError as error:
            # The kernel tells once that it could not write; asked again it would say that all is well.
            self._durable = False
            self._lose(error)

    def _look_after(self) -> None:
        """Raise OSError when the file is not what was written: found here, and not by whoever needs it later."""
        ours = os.fstat(self._fd)
        if not os.path.samestat(ours, os.stat(self.path, follow_symlinks=False)):
            raise FileNotFoundError(_GONE, _REMOVED)
        if ours.st_size != self._size:
            raise OSError(errno.EIO, _CHANGED)

    def close(self) -> None:
        """Sync and close."""
        if self._fd >= 0:
            self.sync()
            try:
                os.close(self._fd)
            except OSError as error:
                self._lose(error)
            self._fd = -1

    def _write(self, line: bytes) -> bool:
        """Append one line whole or not at all; says whether it is there. A full disk gets a second try."""
        for again in (True, False):
            try:
                self._put(line)
            except OSError as error:
                self._lose(error)
                self._dead = not (self._cut_back() and again and self._make_room(error))
                if self._dead:
                    return False
            else:
                return True
        return False

    def _put(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        while written < len(line):  # a full disk or a signal cuts a write short
            line = line[written:]
            written = os.write(self._fd, line)
        if not os.fstat(self._fd).st_nlink:  # a step cleaned up more than its own
            raise FileNotFoundError(_GONE, _REMOVED)

    def _cut_back(self) -> bool:
        """Leave no half line behind, to which the next one would be glued."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return False
        return True

    def _make_room(self, error: OSError) -> bool:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._reserve:
            return False

        return free(self._reserve)

    def _found(self) -> None:
        """Have all that a resume needs on the disk."""
        self._founded = True
        if self._durable:
            for path in self._beside:
                sync_path(path)
        if self._reserve.endswith(NEW):
            name = self._reserve.removesuffix(NEW)
            try:
                os.rename(self._reserve, name)
            except OSError:  # there was no room for it; the next run tries again
                return
            self._reserve = name

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or self._told(error)

    def _told(self, error: OSError) -> RecordsLost:
        # Of what lies beside it the error knows the name.
        return RecordsLost(f"the records cannot be written: {error.filename or self.path}: {error.strerror}")


def sync_path(path: str) -> None:
    """Make a file, or the names in a folder, survive a power cut; raises OSError that names it."""
    try:
        # A step may have put a pipe in the place of a record, which nobody is to wait for.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:  # a folder that may be used and not listed: the workspace of somebody else
        return
    try:
        os.fsync(fd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)


# macOS has no fdatasync
_sync = getattr(os, "fdatasync", os.fsync)


SIZE = 64 * 1024
"""Bytes: the ends of some 150 steps that run at once, and that of the run."""


def fill(path: str) -> None:
    """Make the reserve; where it cannot be had, the next run tries again."""
    try:
        _write(path)
    except OSError:  # half of a reserve would be room taken from the run
        free(path)


def free(path: str) -> bool:
    """Give its room back to the file system; says whether there was any."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _write(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Bytes of chance: a file system that compresses would keep next to nothing for zeros.
        data = os.urandom(SIZE)
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
