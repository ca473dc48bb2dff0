"""The named functions of expressions, each total: any arguments give a value or an EvaluationError.

`hash_files` is one digest over the files that match globs in one folder. Globs have `*`, `?` and `**`. Folders are
entered by their own name, never through a link; `.git`, `.planrun` and planrun's copies of scripts are included only
where a glob names them, since they change in every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.tree import MAX_INTEGER, MAX_SIZE, bounded, called, json_text, same, text_of, type_of
from planrun.model.globs import is_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
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


_MAX_JSON_DEPTH = 64
_MAX_DIGITS = 19
_INFINITY = float("inf")


def length(value: Any) -> int:
    """Return the number of characters, items or keys."""
    found = type_of(value)
    if found not in ("string", "array", "object"):
        raise EvaluationError(f"len requires a string, an array or an object, got {called(found)}")
    return len(value)


def contains(whole: Any, part: Any) -> bool:
    """Return whether a string has a part, an array an item, an object a key."""
    found = type_of(whole)
    if found == "array":
        return any(same(item, part) for item in whole)
    if found not in ("string", "object"):
        raise EvaluationError(f"contains requires a string, an array or an object, got {called(found)}")
    if type(part) is not str:
        wanted = "a part of a string" if found == "string" else "a key"
        raise EvaluationError(f"{wanted} must be a string, got {called(type_of(part))}")
    return part in whole


def startswith(text: Any, part: Any) -> bool:
    """Return whether a string begins with another."""
    return _string("startswith", text).startswith(_string("startswith", part))


def endswith(text: Any, part: Any) -> bool:
    """Return whether a string ends with another."""
    return _string("endswith", text).endswith(_string("endswith", part))


def join(items: Any, separator: Any = "") -> str:
    """Return the texts of an array's items in one, with `separator` between."""
    found = type_of(items)
    if found != "array":
        raise EvaluationError(f"join requires an array, got {called(found)}")
    between = _string("join", separator)
    texts: list[str] = []
    size = 0
    for item in items:
        texts.append(text_of(item))
        size += len(texts[-1]) + len(between)
        if size > MAX_SIZE + len(between):
            break
    return bounded(between.join(texts))


def tojson(value: Any) -> str:
    """Return a value as compact JSON."""
    return json_text(value)


def fromjson(text: Any) -> Any:
    """Return the value of a JSON text; numbers beyond 64 bits, NaN and deep nesting are errors."""
    source = bounded(_string("fromjson", text))
    try:
        value = json.loads(source, parse_int=_integer, parse_float=_number, parse_constant=_refuse)
    except RecursionError:
        raise EvaluationError("fromjson: the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise EvaluationError(f"fromjson: {error}") from None
    _refuse_strange(value)
    return value


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS + 1 or not -MAX_INTEGER <= int(digits) <= MAX_INTEGER:
        raise EvaluationError("fromjson: a number has more than 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if value in (_INFINITY, -_INFINITY):
        raise EvaluationError("fromjson: a number is too large")
    return value


def _refuse(word: str) -> None:
    raise EvaluationError(f"fromjson: {word} is not valid JSON")


def _refuse_strange(value: Any) -> None:
    """Refuse half characters, which no file and no process takes, and what is nested too deep to be walked."""
    waiting = [(value, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise EvaluationError("fromjson: a string contains a lone surrogate")
        elif isinstance(value, (list, dict)):
            if depth > _MAX_JSON_DEPTH:
                raise EvaluationError(f"fromjson: the value is nested deeper than {_MAX_JSON_DEPTH}")
            waiting.extend((item, depth + 1) for item in value)
            if isinstance(value, dict):
                waiting.extend((item, depth + 1) for item in value.values())


def _string(function: str, value: Any) -> str:
    if type(value) is not str:
        raise EvaluationError(f"{function} requires a string, got {called(type_of(value))}")
    return value


# `default` and `hash_files` are not here: they need the tree and the scope, see `evaluate`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": length,
    "contains": contains,
    "startswith": startswith,
    "endswith": endswith,
    "join": join,
    "tojson": tojson,
    "fromjson": fromjson,
}
