"""One run at a time in a workspace, by a lock that the kernel gives back when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os

from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class WorkspaceLock:
    """An exclusive `flock` on `.planrun/lock`; the text in the file only tells people who holds it."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "lock")
        self.used_before = False  # whether there was a run in this workspace before the one that has the lock
        self._fd = -1

    def acquire(self, owner: str) -> None:
        """Take the lock and write `owner` into it; raises InvalidInput naming the holder when it is taken."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._fd = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise InvalidInput(f"cannot lock this workspace: {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._refuse(error)
        self.used_before = os.fstat(self._fd).st_size > 0
        text = owner.encode()
        # In this order: ext4 writes a file out at once when it is closed after it was cut to nothing.
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))

    def _refuse(self, error: OSError) -> None:
        holder = os.pread(self._fd, 400, 0).decode("utf-8", "replace").strip()
        self.release()
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            who = f": {holder}" if holder else ""
            raise InvalidInput(f"another run holds this workspace{who}") from None
        raise InvalidInput(f"cannot lock this workspace: {self.path}: {error.strerror}") from None

    def release(self) -> None:
        """Give the lock back; closing is enough."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()
