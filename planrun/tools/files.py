"""file.move, file.remove, file.mkdir.

file.read, file.write, file.replace, file.copy.

file.glob.
"""

from __future__ import annotations

import os
import stat
from fnmatch import fnmatchcase

from planrun.sha256 import sha256
from planrun.tools.ground import (
    GIT,
    RECORDS,
    Refusal,
    blocks,
    existing,
    permissions,
    plural,
    put,
    read_whole,
    say,
    words_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground, Place

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def move(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Rename a file or folder; an existing target is replaced only when the call requests it."""
    with ground.writable(args["path"]) as source, ground.writable(args["to"], "make") as place:
        if source.status() is None:
            raise Refusal(f"{source.path}: there is no such file")
        _keep_whole(source)
        there = place.status()
        if there is not None and (not args.get("overwrite", False) or stat.S_ISDIR(there.st_mode)):
            raise Refusal(f"{place.path}: it is there already")
        os.rename(source.name, place.name, src_dir_fd=source.fd, dst_dir_fd=place.fd)
        say(f"moved {source.path} to {place.path}")
    return {}


def remove(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Remove files, and folders if the call requests it."""
    removed = 0
    for path in each(args["paths"]):
        try:
            place = ground.writable(path)
        except Refusal as refusal:
            if args.get("missing_ok", False) and "no such folder" in str(refusal):
                continue
            raise
        with place:
            removed += _remove_one(place, args)
    say(f"removed {plural(removed, 'entry').replace('entrys', 'entries')}")
    return {"removed": removed}


def mkdir(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Make folders."""
    made = 0
    for path in each(args["paths"]):
        with ground.writable(path, "make") as place:
            status = place.status()
            if status is None:
                os.mkdir(place.name, 0o777, dir_fd=place.fd)
                made += 1
            elif not stat.S_ISDIR(status.st_mode):
                raise Refusal(f"{place.path}: it is there already, and no folder")
            say(f"{'made' if status is None else 'found'} {place.path}")
    return {"made": made}


def each(value: Any) -> list[str]:
    """Return one or several as a list."""
    return value if isinstance(value, list) else [value]


def _remove_one(place: Place, args: dict[str, Any]) -> int:
    status = place.status()
    if status is None:
        if args.get("missing_ok", False):
            return 0
        raise Refusal(f"{place.path}: there is no such file")
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(place.name, dir_fd=place.fd)
        return 1
    if not args.get("recursive", False):
        raise Refusal(f"{place.path}: it is a folder; `recursive: true` removes it with all that is in it")
    _keep_whole(place)
    _remove_below(place.name, place.fd, status.st_dev)
    return 1


def _keep_whole(place: Place) -> None:
    """Raise Refusal for a folder that contains a repository or planrun's records, which would be removed too."""
    _look_below(place.name, place.fd, place.path)


def _look_below(name: str, folder: int, path: str) -> None:
    try:
        fd = os.open(name, _LIST, dir_fd=folder)
    except OSError:  # no folder, or an unreadable one: removing it reports the error
        return
    try:
        for inner in os.listdir(fd):
            if inner.lower() in (GIT, RECORDS):
                raise Refusal(f"{path}/{inner}: it would go, too, and is not for tools")
            _look_below(inner, fd, f"{path}/{inner}")
    finally:
        os.close(fd)


def _remove_below(name: str, folder: int, device: int) -> None:
    """Remove a folder and its content; follows no links."""
    fd = os.open(name, _LIST, dir_fd=folder)
    try:
        if os.fstat(fd).st_dev != device:
            raise Refusal(f"{name}: another file system is mounted there")
        for inner in os.listdir(fd):
            status = os.stat(inner, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _remove_below(inner, fd, device)
            else:
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=folder)


def read(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a file, and print it."""
    with ground.readable(args["path"]) as place:
        data = read_whole(place, args.get("max_bytes", 65_536))
        text = text_of(place, data)
    os.write(1, data)
    return {"text": text, "size": len(data), "sha256": _hash(data)}


def write(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Write, create or append to a file."""
    data = encoded(args["content"])
    mode = args.get("mode", "overwrite")
    with ground.writable(args["path"], "make") as place:
        status = existing(place)
        check_expected(place, args)
        before = read_whole(place) if mode == "append" and status else b""
        rights = permissions(status, executable=args.get("executable", False))
        size, digest = put(place, (before, data), rights, replace=mode != "create")
        was = "made" if status is None else "lengthened" if mode == "append" else "replaced"
        say(f"{was} {place.path}, {plural(size, 'byte')}")
    return {"size": size, "sha256": digest}


def replace(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Replace an exact text in a file."""
    old, new, wanted = args["old"], args["new"], args.get("count", 1)
    with ground.writable(args["path"]) as place:
        status = existing(place)
        text = text_of(place, read_whole(place))
        found = text.count(old)
        if found == 0 or (wanted and found != wanted):
            times = "once" if wanted == 1 else f"{wanted:,} times"
            problem = f"stands there {found:,} times, not {times}" if found else "does not stand there"
            raise Refusal(f"{place.path}: the text {problem}")
        data = encoded(text.replace(old, new))
        _, digest = put(place, (data,), permissions(status, executable=False), replace=True)
        say(f"replaced {plural(found, 'place')} in {place.path}")
    return {"replaced": found, "sha256": digest}


def copy(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Copy a file with its permissions."""
    with ground.readable(args["path"]) as source, ground.writable(args["to"], "make") as place:
        existing(place)
        fd = source.open_file()
        try:
            mode = os.fstat(fd).st_mode & 0o777
            size, digest = put(place, blocks(fd), mode, replace=args.get("overwrite", False))
        finally:
            os.close(fd)
        say(f"copied {source.path} to {place.path}, {plural(size, 'byte')}")
    return {"size": size, "sha256": digest}


def text_of(place: Place, data: bytes) -> str:
    """Return bytes as text; raises Refusal for invalid UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refusal(f"{place.path}: it is no UTF-8 text: byte {error.start}") from None


def encoded(text: str) -> bytes:
    """Return a text as UTF-8; raises Refusal for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refusal("the text has a half of a character, which cannot be written") from None


def check_expected(place: Place, args: dict[str, Any]) -> None:
    """Raise Refusal when a file differs from the hash that `expected` names."""
    wanted = args.get("expected")
    if wanted is not None:
        found = _hash(read_whole(place))
        if found != wanted:
            raise Refusal(f"{place.path}: it is not what was expected, but {found}")


def _hash(data: bytes) -> str:
    return str(sha256(data).hexdigest())


MAX_LOOKED_AT = 1_000_000  # names
_ANY = "**"


def glob(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """List the files that match one of the patterns."""
    search = _Search(args.get("max_files", 1000), hidden=args.get("hidden", False))
    root = os.open(ground.top, _LIST)
    try:
        folder = root
        for name in ground.base:
            inner = os.open(name, _LIST, dir_fd=folder)
            if folder != root:
                os.close(folder)
            folder = inner
        for pattern in each(args["patterns"]):
            search.below(folder, words_of(pattern), "")
        if folder != root:
            os.close(folder)
    finally:
        os.close(root)
    files = sorted(search.found)
    for path in files:
        say(path)
    say(plural(len(files), "file"))
    return {"files": files, "count": len(files)}


class _Search:
    """Matching files by path, each once; links are listed and not followed."""

    def __init__(self, most: int, *, hidden: bool) -> None:
        self.found: set[str] = set()
        self._most = most
        self._hidden = hidden
        self._looked_at = 0

    def below(self, folder: int, pattern: list[str], path: str) -> None:
        """Find matches of the components of a pattern below an open folder."""
        if len(pattern) == 1 and pattern[0] != _ANY:
            self._files(folder, pattern[0], path)
            return
        word, rest = pattern[0], pattern[1:]
        if word == _ANY:
            self.below(folder, rest or ["*"], path)
        for name in self._names(folder):
            if name.lower() in (GIT, RECORDS) or not self._fits(name, "*" if word == _ANY else word):
                continue
            try:
                inner = os.open(name, _LIST, dir_fd=folder)
            except OSError:  # no folder, a link, or not readable
                continue
            try:
                self.below(inner, pattern if word == _ANY else rest, f"{path}{name}/")
            finally:
                os.close(inner)

    def _files(self, folder: int, word: str, path: str) -> None:
        for name in self._names(folder):
            if self._fits(name, word) and not stat.S_ISDIR(
                os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            ):
                self.found.add(path + name)
                if len(self.found) > self._most:
                    raise Refusal(f"more than {self._most:,} files fit; see `max_files`")

    def _names(self, folder: int) -> list[str]:
        names = os.listdir(folder)
        self._looked_at += len(names)
        if self._looked_at > MAX_LOOKED_AT:
            raise Refusal(f"there are more than {MAX_LOOKED_AT:,} names to look at")
        return names

    def _fits(self, name: str, word: str) -> bool:
        if name.startswith(".") and not self._hidden and not word.startswith("."):
            return False
        return fnmatchcase(name, word)
