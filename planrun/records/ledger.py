"""The ledger: one JSON line per event, each with a hash over itself and the hash of the line before.

A line is `{"seq":n,"type":"…",…,"hash":"…"}`. Its hash is the sha256, in hex, of the hash of the line before
(64 zeros before the first) followed by the bytes of the line up to `,"hash"`. So a changed line fails its own check,
and a moved or missing one the check of the next. The hash of the last line is the head: with it a rewritten ledger
can be detected.

The reserve is disk space for the last records of a run, one file per workspace: `.planrun/reserve`. It is written and
removed under the workspace lock.
"""

from __future__ import annotations

import errno
import os

from planrun.errors import RecordsLost
from planrun.model.events import NAMES
from planrun.model.jsontext import members
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.model.record import Record

GENESIS = "0" * 64
NEW = ".new"
"""Suffix of the reserve until the names of the folders above the run are synced."""
_GONE, _REMOVED = errno.ENOENT, "it was removed or replaced during the run"
_CHANGED = "another process wrote to it during the run"


class Ledger:
    """The only writer of a ledger file, opened for appending; its run holds the workspace lock.

    When the disk is full, the file `reserve` is deleted so that the last records fit. `beside`: files and folders
    that a resume needs; they are synced together with the first events. `lost`: the first failed write; after it,
    whole lines are still written as far as they fit.
    """

    _names: Mapping[type[Any], str] = NAMES  # the kinds of its records: the events of a run

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
        self._held: list[tuple[bytes, str]] = []  # lines to be written, each with the hash before it
        self._dirty = False
        self._dead = False  # nothing more can be written
        self._is_durable_path = False  # its name, and `beside`, survive a power cut
        # For benchmarks only: the difference is the cost of durability.
        self._durable = "PLANRUN_NO_SYNC" not in os.environ
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o600)
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            raise self._error(error) from None

    def append(self, event: Record) -> None:
        """Write one event after those held; on return it survives the death of this process, or `lost` is set."""
        self.hold(event)
        self.flush()

    def hold(self, event: Record) -> None:
        """Take one event that is written with the next one, or by flush() or sync()."""
        if self._dead:
            return
        self.records += 1
        body = f'{{"seq":{self.records},"type":"{self._names[type(event)]}",{members(event.__dict__)}'
        before, self.head = self.head, sha256((self.head + body).encode()).hexdigest()
        self._held.append((f'{body},"hash":"{self.head}"}}\n'.encode(), before))

    def flush(self) -> None:
        """Write the events that are held, in one system call; see `lost`."""
        if not self._held:
            return
        held, self._held = self._held, []
        if len(held) > 1 and self._attempt(b"".join([line for line, _ in held])) is None:
            return
        for place, (line, before) in enumerate(held):  # as many as fit, if not all do
            if self._dead or not self._write(line):
                self.records -= len(held) - place
                self.head = before
                return

    def sync(self) -> None:
        """Make all events survive a power cut; does nothing without new events. See `lost`."""
        self.flush()
        if not self._dirty or self._dead:
            return
        self._dirty = False
        try:
            if not self._is_durable_path:
                self._sync_parents()
            if self._durable:
                _sync(self._fd)
            ours = os.fstat(self._fd)
            if not os.path.samestat(ours, os.stat(self.path, follow_symlinks=False)):
                raise FileNotFoundError(_GONE, _REMOVED)
            if ours.st_size != self._size:
                raise OSError(errno.EIO, _CHANGED)
        except OSError as error:
            # The kernel reports a failed write only once; a second sync would succeed.
            self._durable = False
            # What is synced beside it goes with it, and either may be missed first.
            self._lose(FileNotFoundError(_GONE, _REMOVED) if error.errno == errno.ENOENT else error)

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
        """Append one line whole or not at all; return whether it is written. A full disk gets a second try."""
        error = self._attempt(line)
        if error is not None and not self._dead and self._make_room(error):
            error = self._attempt(line)
        self._dead = error is not None
        return not self._dead

    def _attempt(self, lines: bytes) -> OSError | None:
        """Append whole lines, all of them or none; return what prevented it."""
        try:
            self._put(lines)
        except OSError as error:
            self._lose(error)
            self._dead = not self._cut_back()
            return error
        self._size += len(lines)
        self._dirty = True
        return None

    def _put(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        while written < len(line):  # a full disk or a signal cuts a write short
            line = line[written:]
            written = os.write(self._fd, line)
        if not os.fstat(self._fd).st_nlink:  # a step deleted it
            raise FileNotFoundError(_GONE, _REMOVED)

    def _cut_back(self) -> bool:
        """Remove a partial line, to which the next one would be appended."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return False
        return True

    def _make_room(self, error: OSError) -> bool:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._reserve:
            return False

        return free(self._reserve)

    def _sync_parents(self) -> None:
        """Sync everything that a resume needs."""
        self._is_durable_path = True
        if self._durable:
            for path in self._beside:
                sync_path(path)
        if self._reserve.endswith(NEW):
            name = self._reserve.removesuffix(NEW)
            try:
                os.rename(self._reserve, name)
            except OSError:  # there was no space; the next run tries again
                return
            self._reserve = name

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or self._error(error)

    def _error(self, error: OSError) -> RecordsLost:
        # An error about `beside` has the name of the file.
        return RecordsLost(f"the records cannot be written: {error.filename or self.path}: {error.strerror}")


def sync_path(path: str) -> None:
    """Make a file, or the names in a folder, survive a power cut; raises OSError that names it."""
    try:
        # O_NONBLOCK: a step may have replaced a record with a named pipe.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:  # a folder with search permission only: the workspace of another user
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
"""Bytes: enough for the ends of some 150 concurrent steps and of the run."""


def fill(path: str) -> None:
    """Create the reserve; when that fails, the next run tries again."""
    try:
        _write(path)
    except OSError:  # a partial reserve would only take space from the run
        free(path)


def free(path: str) -> bool:
    """Delete the reserve; return whether there was one."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _write(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Random bytes: a compressing file system would allocate almost nothing for zeros.
        data = os.urandom(SIZE)
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
