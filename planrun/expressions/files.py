"""`hash_files`: one digest over the files that match globs, inside one folder and nowhere else.

Globs know `*`, `?` and `**`. Folders are entered by their own name, never through a link; `.git` and `.planrun`
are entered only when they are named, since both change while nothing that matters does, and so do the copies of scripts
that planrun runs.
"""

from __future__ import annotations

import hashlib
import os
import stat

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.values import called, type_of
from planrun.model.globs import is_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

_MAX_ENTRIES = 200_000  # names looked at
_MAX_BYTES = 1 << 30  # read in all
_MAX_PARTS = 64
_BLOCK = 1 << 20


def hash_files(root: Any, patterns: Sequence[Any]) -> str:
    """Return a sha256, in hex, over names and contents of all matching files in the order of their names.

    Raises AbsentError when nothing matches, EvaluationError for what is outside of `root` or not readable.
    """
    if type(root) is not str:
        raise EvaluationError("hash_files cannot be used here")
    base = os.path.realpath(root)
    try:
        names = sorted(
            {name for pattern in patterns for name in _Search(base).matches(pattern)}, key=os.fsencode
        )
        if not names:
            raise AbsentError(f"hash_files: no file matches {', '.join(patterns)}")
        digest = hashlib.sha256()
        left = _MAX_BYTES
        for name in names:
            content = hashlib.sha256()
            for block in _blocks(base, name):
                content.update(block)
                left -= len(block)
                if left < 0:
                    raise EvaluationError(f"hash_files: more than {_MAX_BYTES} bytes")
            digest.update(os.fsencode(name) + b"\0" + content.digest())
    except (OSError, ValueError) as error:
        raise EvaluationError(f"hash_files: {error}") from None
    return digest.hexdigest()


def _blocks(base: str, name: str) -> Iterator[bytes]:
    """Yield the content of a regular file; raises EvaluationError when a link leads out of `base`."""
    path = os.path.realpath(os.path.join(base, name))
    if not path.startswith(base.rstrip("/") + "/"):
        raise EvaluationError(f"hash_files: {name} is outside of the workspace")
    # Not blocking: a pipe that takes the file's place must not stop the run.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise EvaluationError(f"hash_files: {name} is not a regular file")
        while block := os.read(descriptor, _BLOCK):
            yield block
    finally:
        os.close(descriptor)


class _Search:
    """One glob on its way through the folders; counts the names it looks at."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.entries = 0

    def matches(self, pattern: Any) -> Iterator[str]:
        """Yield the names, relative to the base, of the files that match; some may come twice."""
        parts = _parts(pattern)
        waiting = [("", 0)]
        seen = set(waiting)
        while waiting:
            folder, at = waiting.pop()
            for name, following in self._step(folder, parts, at):
                if following == len(parts):
                    yield name
                elif (name, following) not in seen:
                    seen.add((name, following))
                    waiting.append((name, following))

    def _step(self, folder: str, parts: list[str], at: int) -> Iterator[tuple[str, int]]:
        """Yield what can be reached from a folder: folders with the next part, files with the number of parts."""
        part, last = parts[at], at == len(parts) - 1
        if part == "**":
            yield folder, at + 1
        elif "*" not in part and "?" not in part:
            name = folder + part
            path = os.path.join(self.base, name)
            if last and os.path.isfile(path):
                yield name, at + 1
            elif not last and os.path.isdir(path):
                yield name + "/", at + 1
            return
        for entry in self._entries(folder):
            if is_hidden(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if not (part != "**" and last) and _fits(entry.name, part):
                    yield f"{folder}{entry.name}/", at if part == "**" else at + 1
            elif last and part != "**" and _fits(entry.name, part) and entry.is_file():
                yield folder + entry.name, at + 1

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        with os.scandir(os.path.join(self.base, folder)) as entries:
            for entry in entries:
                self.entries += 1
                if self.entries > _MAX_ENTRIES:
                    raise EvaluationError(f"hash_files: more than {_MAX_ENTRIES} files to search")
                yield entry


def _parts(pattern: Any) -> list[str]:
    """Return the parts of a glob; raises EvaluationError for one that leads out, or that is no glob of ours."""
    if type(pattern) is not str:
        raise EvaluationError(f"hash_files requires strings, got {called(type_of(pattern))}")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise EvaluationError(f"hash_files: {pattern} is outside of the workspace")
    if "[" in pattern or "{" in pattern:
        raise EvaluationError(f"hash_files: {pattern}: only `*`, `?` and `**` are supported")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or len(parts) > _MAX_PARTS:
        raise EvaluationError(f"hash_files: {pattern!r} is not a glob of 1 to {_MAX_PARTS} parts")
    if parts[-1] == "**":
        parts.append("*")
    return parts


def _fits(name: str, part: str) -> bool:
    """Return whether a name matches a part with `*` and `?`; the time is at most the product of their lengths."""
    at = index = 0
    star, retry = -1, 0
    while index < len(name):
        if at < len(part) and part[at] == "*":
            star, retry = at, index
            at += 1
        elif at < len(part) and part[at] in ("?", name[index]):
            at += 1
            index += 1
        elif star >= 0:
            at, retry = star + 1, retry + 1
            index = retry
        else:
            return False
    return all(char == "*" for char in part[at:])
