"""The files that a step reads, makes and changes, as they are at one moment: found by patterns, told by their content.

A symbolic link is a file of its own, whose content is where it points; nobody goes through one. What is neither file
nor link is left out. Nothing goes by times: they say when a file was written, and not what is in it.
"""

from __future__ import annotations

import os
from errno import EACCES, ELOOP, ENOENT, ENOTDIR
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG  # os has loaded it already

from planrun.errors import EvaluationError
from planrun.model.globs import BadGlob, fits, is_hidden, matches, parse
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.globs import Glob
    from planrun.model.plan import Text

CHUNK = 1 << 20  # bytes that are read at a time
LARGE = 1 << 18  # bytes from which on OpenSSL's implementation is worth the 3 ms that it takes to load
DEEPEST = 200  # folders in each other
_GONE = (EACCES, ELOOP, ENOENT, ENOTDIR)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Seen(Record):
    """One file: the sha256 of its bytes, or of the text of a link; its mode (of a link 0), and how many bytes."""

    sha256: str
    bytes: int
    mode: int
    link: bool = False

    @property
    def same(self) -> tuple[str, bool, bool]:
        """What two files have in common exactly when one can stand for the other."""
        return self.sha256, self.link, bool(self.mode & 0o100)


class Patterns(Record):
    """What some texts of a plan mean: each text with its globs, and those that take away."""

    texts: tuple[str, ...]
    wanted: tuple[tuple[Glob, ...], ...]
    unwanted: tuple[tuple[Glob, ...], ...] = ()

    def takes(self, path: str) -> bool:
        """Say whether a path is meant."""
        return any(matches(globs, path) for globs in self.wanted) and not self.leaves(path)

    def leaves(self, path: str) -> bool:
        """Say whether a path is taken away."""
        return any(matches(globs, path) for globs in self.unwanted)


def patterns(texts: Sequence[Text], scope: dict[str, Any]) -> Patterns:
    """Return the patterns that texts of a step are, values filled in; raises EvaluationError."""
    return patterns_of([rendered(text, scope) for text in texts])


def patterns_of(texts: Sequence[str]) -> Patterns:
    """Return the patterns that some texts are; raises EvaluationError."""
    wanted: dict[str, tuple[Glob, ...]] = {}
    unwanted: list[tuple[Glob, ...]] = []
    for text in texts:
        try:
            if text.startswith("!"):
                unwanted.append(parse(text[1:]))
            else:
                wanted[text] = parse(text)
        except BadGlob as error:
            raise EvaluationError(f'the pattern "{text}" {error}') from None
    return Patterns(texts=tuple(wanted), wanted=tuple(wanted.values()), unwanted=tuple(unwanted))


def rendered(text: Text, scope: dict[str, Any]) -> str:
    """Return a pattern with its values, which stand for themselves; raises EvaluationError."""
    if isinstance(text, str):
        return text
    from planrun.expressions.render import render_pattern  # few patterns have values in them

    return render_pattern(text, scope)


def snapshot(root: str, wanted: Patterns, hidden: Sequence[str] = ()) -> dict[str, Seen]:
    """Return what all files of a workspace are that some patterns mean, by path, in order.

    `hidden`: folders of planrun's own that no pattern means. Raises OSError for a file that cannot be read.
    """
    seen = {path: look(os.path.join(root, path)) for path in matching(root, wanted, hidden)}
    return {path: each for path, each in seen.items() if each is not None}


def matching(root: str, wanted: Patterns, hidden: Sequence[str] = ()) -> list[str]:
    """Return the paths in a folder that some patterns mean, in order; raises OSError for folders too deep."""
    found: dict[str, None] = {}
    for globs in wanted.wanted:
        for glob in globs:
            found.update(dict.fromkeys(_found(root, glob)))
    return [path for path in sorted(found) if not wanted.leaves(path) and not _is_within(path, hidden)]


def unmatched(wanted: Patterns, seen: Mapping[str, Seen]) -> list[str]:
    """Return the texts of the patterns that match none of some files."""
    return [
        text
        for text, globs in zip(wanted.texts, wanted.wanted, strict=True)
        if not any(matches(globs, path) for path in seen)
    ]


def look(path: str) -> Seen | None:
    """Return what a file is; None where there is neither a file nor a link. Raises OSError."""
    try:
        fd = os.open(path, _READ)
    except OSError:
        return _link(path)
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            return None
        return Seen(sha256=hash_of(fd, status.st_size), bytes=status.st_size, mode=S_IMODE(status.st_mode))
    finally:
        os.close(fd)


def _link(path: str) -> Seen | None:
    try:
        mode = os.lstat(path).st_mode
        if not S_ISLNK(mode):
            if S_ISREG(mode):
                raise PermissionError(13, "Permission denied", path)
            return None
        text = os.fsencode(os.readlink(path))
    except FileNotFoundError:
        return None
    return Seen(sha256=sha256(text).hexdigest(), bytes=len(text), mode=0, link=True)


def hash_of(fd: int, size: int) -> str:
    """Return the sha256 of what is left to read of a file, hex; `size`: about how much that is."""
    if size <= LARGE:
        found = sha256()
    else:
        import hashlib  # five times as fast, where there is something to hash

        found = hashlib.sha256()
    while block := os.read(fd, CHUNK):
        found.update(block)
    return str(found.hexdigest())


def _is_within(path: str, hidden: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in hidden)


def _found(root: str, glob: Glob) -> Iterator[str]:
    """Yield the files that a glob matches, and all that is in the folders that it matches."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from _below(fd, "", glob, frozenset((0,)))
    finally:
        os.close(fd)


def _below(folder: int, before: str, glob: Glob, places: frozenset[int]) -> Iterator[str]:
    """Walk an open folder with all places of the glob that its name may have come to."""
    if before.count("/") > DEEPEST:
        raise OSError(ELOOP, f"more than {DEEPEST} folders in each other", before)
    at = _beyond(glob, places)
    for name, is_folder in _names(folder, glob, at):
        ahead = frozenset(
            place if place == len(glob) or glob[place] is None else place + 1
            for place in at
            if place == len(glob) or glob[place] is None or fits(glob[place] or (), name)
        )
        if not ahead:
            continue
        if not is_folder:
            if len(glob) in _beyond(glob, ahead):
                yield before + name
            continue
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in _GONE:  # or it may not be read: what is in it is not there for the step either
                continue
            raise
        try:
            yield from _below(inner, f"{before}{name}/", glob, ahead)
        finally:
            os.close(inner)


def _beyond(glob: Glob, places: frozenset[int]) -> frozenset[int]:
    """Add the places that come after a `**` that stands for nothing."""
    return places | {place + 1 for place in places if place < len(glob) and glob[place] is None}


def _names(folder: int, glob: Glob, at: frozenset[int]) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder that may count, and whether each is a folder; one name alone is looked up."""
    if len(at) == 1 and (place := next(iter(at))) < len(glob):
        part = glob[place]
        if part is not None and all(len(token) == 1 and len(token[0]) == 1 for token in part):
            name = "".join([str(token[0]) for token in part])
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            except (OSError, ValueError):
                return
            if not is_hidden(name):
                yield name, S_ISDIR(mode)
            return
    with os.scandir(folder) as listed:
        rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
    yield from [row for row in sorted(rows) if not is_hidden(row[0])]
