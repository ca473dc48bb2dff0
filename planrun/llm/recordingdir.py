"""The folder of a recording: entries are added whole and in order, and no link is ever followed.

A checkout may come from anybody, and the folder is in it: a link there could have planrun write, or show, any file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress

from planrun.errors import InvalidInput, InvalidPlan, RecordsLost
from planrun.llm.entries import MOST_BYTES, entry_in, text_of
from planrun.plan.yaml.file import NotRegular, read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planrun.llm.entries import Entry
    from planrun.plan.problems import Problem

    Mask = Callable[[str], str]

MOST = 9999  # entries of one recording
_NAME = re.compile(r"(\d{1,6})-.*\.yml\Z")
_PART = ".part"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Shelf:
    """A folder that entries are added to, made when it is not there; raises RecordsLost when it cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = _open(path)
            with self._locked():
                self._write(b"")  # what cannot be written is told before anything is paid for
                os.unlink(_PART, dir_fd=self._fd)
        except (OSError, ValueError) as error:
            raise _lost(path, error) from None

    def add(self, entry: Entry, mask: Mask | None = None) -> str:
        """Write an entry under the next number and return the name of its file, on disk when it returns.

        `mask`: an entry that it would change as a whole is refused.

        Raises RecordsLost, ValueError for what no file can hold. A process that dies leaves no half of an entry.
        """
        try:
            with self._locked():
                named = entry.but(number=self._last() + 1)
                text = text_of(named)
                if mask and mask(text) != text:
                    raise ValueError("a secret shows when it is written line by line")
                data = text.encode("utf-8")
                _check(data, named)
                self._write(data)
                os.rename(_PART, named.name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
                os.fsync(self._fd)
        except OSError as error:
            raise _lost(self.path, error) from None
        return named.name

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep out others who record into the same folder."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _last(self) -> int:
        return max(
            [int(found[1]) for name in os.listdir(self._fd) if (found := _NAME.match(name))], default=0
        )

    def _write(self, data: bytes) -> None:
        """Write a file that is no entry yet; one that is there is of somebody who was killed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            os.unlink(_PART, dir_fd=self._fd)
        fd = os.open(_PART, flags, 0o666, dir_fd=self._fd)
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let go of the folder; it stays as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _check(data: bytes, entry: Entry) -> None:
    """Raise ValueError when a file would not be read as what it was written for."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it takes more than {MOST_BYTES >> 20} MiB")
    try:
        back = entry_in(data, entry.name)
    except InvalidPlan as error:
        raise ValueError(f"it could not be read again: {error.problems[0].text}") from None
    if (back.key, back.answer.text) != (entry.key, entry.answer.text):
        raise ValueError("it would be read as something else")


def _open(path: str) -> int:
    """Open a folder, made with all that lead to it; raises OSError for a link in a relative path, or at the end."""
    if not path or "\0" in path:
        raise ValueError("this is no name of a folder")
    whole = os.path.normpath(path)
    above, _, last = whole.rpartition("/") if os.path.isabs(whole) else ("", "", "")
    parts = [last] if last else [part for part in whole.split("/") if part]
    if above:
        os.makedirs(above, exist_ok=True)
    fd = os.open((above or "/") if last else ".", _FOLDER)
    for part in parts:
        try:
            if part not in ("..", "."):
                os.mkdir(part, 0o777, dir_fd=fd)
        except FileExistsError:
            pass
        except OSError:
            os.close(fd)
            raise
        try:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _lost(path: str, error: OSError | ValueError) -> RecordsLost:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", 0) in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        reason = "a part of its path is a link, or no folder"
    return RecordsLost(f"the recording cannot be written to {path}: {reason}")


def entries(path: str) -> list[Entry]:
    """Return the entries of a recording in order; raises InvalidInput, InvalidPlan with every problem of all files."""
    problems: list[Problem] = []
    sources: dict[str, bytes] = {}
    read = []
    for name in _names(path):
        shown = os.path.join(path, name)
        try:
            data = read_script(os.path.join(path, name))
        except NotRegular as kind:
            raise InvalidInput(f"cannot read the recording {shown}: it is {kind}") from None
        except (OSError, ValueError) as error:
            reason = "it is a link" if getattr(error, "errno", 0) == errno.ELOOP else ""
            reason = reason or getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"cannot read the recording {shown}: {reason}") from None
        try:
            entry = entry_in(data, shown, int(found[1]) if (found := _NAME.match(name)) else 0)
        except InvalidPlan as error:
            problems += error.problems
            sources |= error.sources
            continue
        read.append(entry)
    if problems:
        raise InvalidPlan(problems, sources=sources)
    return read


def _names(path: str) -> list[str]:
    """Return the names of the files of a recording in the order of their numbers."""
    try:
        if stat.S_ISLNK(os.lstat(path.rstrip("/") or "/").st_mode):
            raise InvalidInput(f"cannot read the recording in {path}: it is a link")
        names = [name for name in os.listdir(path) if name.endswith(".yml") and not name.startswith(".")]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot read the recording in {path}: {reason}") from None
    if not names:
        raise InvalidInput(f"there is no recording in {path}: it holds no file whose name ends in .yml")
    if len(names) > MOST:
        raise InvalidInput(f"cannot read the recording in {path}: it has more than {MOST} entries")
    return sorted(
        names, key=lambda name: (int(found[1]) if (found := _NAME.match(name)) else MOST * 1000, name)
    )
