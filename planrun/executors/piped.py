"""Logs that planrun writes itself from a pipe, so that secrets are masked before they are written.

stdout and stderr share one pipe, so their order is kept. The file is created with its first byte: an attempt without
output costs a pipe and no file.
"""

from __future__ import annotations

import fcntl
import os
import select

from planrun.executors.logs import create, digest, lost, recover, removed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.spawn import FileAction
    from planrun.ports import MaskedStream, Masks

_PIECE = 1 << 16  # bytes; the default capacity of a pipe (pipe(7))
_LARGE = 1 << 20  # bytes; what every user may have a pipe hold, as long as few pipes do (/proc/sys/fs/pipe-*)
_KEPT = 1 << 22  # bytes: half of the free memory that is kept for the next pieces
# O_NONBLOCK: a step may have put a named pipe in the log's place.
_APPENDS = os.O_RDWR | os.O_APPEND | os.O_TRUNC | os.O_NONBLOCK


class PipedLog:
    """The pipe one attempt writes into, the masks over it, and the log."""

    __slots__ = (
        "_broken",
        "_capacity",
        "_ended",
        "_file",
        "_received",
        "_size",
        "_stream",
        "_widened",
        "_write_end",
        "digest",
        "opening",
        "path",
        "source",
    )

    shown = True

    def __init__(self, path: str, stream: MaskedStream) -> None:
        self.path = path
        self.digest = ""
        # Both are closed on exec: of all children only this one gets the write end, as its descriptors 1 and 2.
        self.source, self._write_end = os.pipe()
        os.set_blocking(self.source, False)
        self.opening: list[FileAction] = [
            (os.POSIX_SPAWN_DUP2, self._write_end, 1),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        self._stream = stream
        self._capacity = _PIECE
        self._widened = False
        self._received = 0  # bytes out of the pipe
        self._ended = False  # all output was received and no writer is left
        self._file = -1
        self._size = 0  # bytes in the log
        self._broken = False  # the log cannot be written, which was reported

    def refusal(self) -> None:
        """None: the child opens nothing."""

    def begin(self) -> None:
        """Leave the pipe to the child: when its processes have closed it, it ends."""
        os.close(self._write_end)
        self._write_end = -1

    def main_ended(self, *, failed: bool) -> None:
        """Do nothing: the origin of a byte, stdout or stderr, is unknown."""

    def last_errors(self) -> tuple[int, int] | None:
        """Return that both outputs are mixed; None when there is none."""
        return (-1, self._received) if self._received else None

    def receive(self) -> bool:
        """Take one piece; False when nothing more can come."""
        self._take()
        return not self._ended

    def size(self) -> int:
        """Bytes received so far."""
        return self._received

    def read(self, start: int, size: int) -> bytes:
        """Return what is in the log from byte `start` on, at most `size` bytes: masked, as it was written."""
        return os.pread(self._file, size, start) if self._file >= 0 and start < self._size else b""

    def held(self) -> bool:
        """Whether any process still has the pipe open for writing."""
        if self._ended:
            return False
        poll = select.poll()
        poll.register(self.source, 0)
        return not poll.poll(0)  # POLLHUP, which comes unasked: no writer is left

    def held_as(self) -> tuple[int, int] | None:
        """Device and inode of the pipe; None when it has no writer."""
        if not self.held():
            return None
        stat = os.fstat(self.source)
        return stat.st_dev, stat.st_ino

    def unfinished(self) -> bool:
        """Whether the pipe still has a writer."""
        return self.held()

    def show(self) -> None:
        """Do nothing: the log is in its place from its first byte on."""

    def settle(self) -> int:
        """Empty the pipe, write what the masks held back, close everything; return the log's size in bytes."""
        if self._write_end >= 0:  # the child could not be started
            self.begin()
        try:
            # At most one capacity: a process that still writes could not be ended and may write for ever.
            limit = self._received + self._capacity
            while self._received < limit and self._take():
                pass
            self._write(self._stream.finish())
            if self._file >= 0:
                if not os.fstat(self._file).st_nlink:
                    raise removed(self.path, self._size)
                self.digest = digest(self._file, self._size)
        finally:
            os.close(self.source)
            if self._file >= 0:
                os.close(self._file)
        return self._size

    def _take(self) -> int:
        """Move one piece from the pipe to the log; return how much it was, 0 when there is none."""
        try:
            data = os.read(self.source, self._capacity)
        except BlockingIOError:
            return 0
        if data:
            self._received += len(data)
            if len(data) * 2 >= _PIECE and not self._widened:
                self._widen()
            self._write(self._stream.feed(data))
        else:
            self._ended = True
        return len(data)

    def _widen(self) -> None:
        """Enlarge the pipe of an attempt with much output: fewer and larger pieces are masked faster."""
        self._widened = True
        # glibc keeps twice as much free memory as the largest block that it has mapped and unmapped. Else it returns
        # the copies of each piece to the kernel, and a sixth of all time goes into page faults.
        bytes(_KEPT)
        try:
            self._capacity = fcntl.fcntl(self.source, fcntl.F_SETPIPE_SZ, _LARGE)
        except (AttributeError, OSError):  # not Linux; this user has many large pipes already
            return

    def _write(self, data: bytes) -> None:
        if not data or self._broken:
            return
        try:
            if self._file < 0:
                self._file = create(self.path, _APPENDS)
                os.lseek(self._file, 0, os.SEEK_CUR)  # fails for a named pipe
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, memoryview(data)[written:])
        except OSError as error:
            self._broken = True
            raise lost(self.path, error) from None
        self._size += len(data)


class PipedLogs:
    """Hands out logs that are written through masks; `folder` is where all logs lie, "" where that is unknown."""

    def __init__(self, masks: Masks, folder: str = "") -> None:
        self._masks = masks
        self._folder = folder

    def open(self, path: str) -> PipedLog:
        """Return an empty log for an attempt whose output belongs to `path`."""
        if self._folder:
            # A planrun before this one may have run without masks, and died.
            recover(self._folder)
            self._folder = ""
        return PipedLog(path, self._masks.stream())

    def close(self) -> None:
        """Do nothing: each log has closed its own."""
