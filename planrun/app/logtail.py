"""The log of an attempt that may still grow, wherever it is now: as bytes, and as the last clean lines of it."""

from __future__ import annotations

import os

from planrun.executors.logs import elsewhere
from planrun.opening import extent
from planrun.records.logfiles import PIECE, open_log, start_of_last
from planrun.reports.cleaning import CleanLines


class GrowingLog:
    """One log of an attempt that grows, wherever it is now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.at = 0
        self._is_placed = False

    def open(self, rundir: str, log: str, slots: dict[str, str], tail: int | None) -> bool:
        """Open it; False while there is nothing of it."""
        if self.fd < 0:
            self.fd = open_log(rundir, log, slots)
            if self.fd >= 0 and tail is not None:
                self.at = start_of_last(self.fd, tail, extent(self.fd))
        return self.fd >= 0

    def read(self, folder: str) -> bytes:
        """Return what came since; nothing, and closed, when what was opened belongs to another log by now."""
        data = os.pread(self.fd, PIECE, self.at)
        if data and not self._is_placed and not self._is_ours(folder):
            self.close()
            return b""
        self.at += len(data)
        return data

    def _is_ours(self, folder: str) -> bool:
        self._is_placed = _same(self.path, self.fd)
        return (
            self._is_placed
            or _same(elsewhere(folder).get(self.path, ""), self.fd)
            or _same(self.path, self.fd)
        )

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.at = -1, 0


def _same(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(fd))
    except OSError:
        return False


class LogTail:
    """The last lines of a log, and those that are added; for people, in constant memory."""

    def __init__(self, rundir: str, log: str, lines: int, *, colours: bool = False) -> None:
        self._rundir, self._log, self._lines = rundir, log, lines
        self._folder = os.path.join(rundir, "logs")
        self._file = GrowingLog(os.path.join(rundir, log))
        self._clean = CleanLines(colours=colours)

    def news(self, most: int = 1 << 20) -> list[str]:
        """Return the lines that ended since the last call, of at most so many bytes."""
        if not self._file.open(self._rundir, self._log, elsewhere(self._folder), self._lines):
            return []
        until = self._file.at + most
        found: list[str] = []
        while self._file.at < until and (data := self._file.read(self._folder)):
            found += self._clean.feed(data)
        return found

    def begun(self) -> str:
        """Return what has come of a line that has no end yet, and count it as shown."""
        return self._clean.begun()

    def rest(self) -> list[str]:
        """Return the last line of a log that grows no more, if it has no end."""
        return list(self._clean.finish())

    def close(self) -> None:
        """Give the descriptor back."""
        self._file.close()
