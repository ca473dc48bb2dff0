"""read, glob, grep, tree, list_dir and diff of agents: what a model sees of a workspace."""

from __future__ import annotations

import os
import re
import stat
import sys

from planrun.model.agenttools import MAX_LINES, MAX_READ, MAX_RESULT
from planrun.model.globs import BadGlob, matches, parse
from planrun.risk.sensitive import looks_secret
from planrun.tools.copies import BASE_VARIABLE
from planrun.tools.ground import Refusal, kind_of, read_whole
from planrun.tools.walking import SKIPPED, Folder, files_below, folder_of, shown_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground

_LONGEST = 500  # characters of one line of a search
_MATCHES = 200
_LISTED = 1000  # names of one list
_DEPTH = 3
_BINARY = 8192  # bytes that are looked at for a NUL


def put(lines: list[str] | str) -> None:
    """Write the result of a tool."""
    text = lines if isinstance(lines, str) else "\n".join(lines) + ("\n" if lines else "")
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def read(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Show a file with line numbers."""
    with ground.readable(args["path"]) as place:
        status = place.status()
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise Refusal(f"{place.path}: it is a folder; `list_dir` lists it")
        if status is None and os.environ.get(BASE_VARIABLE) and looks_secret(place.path):
            raise Refusal(f"{place.path}: a file that may hold secrets is not in the copy that you work on")
        size = status.st_size if status is not None else 0
        data = read_whole(place, max(MAX_READ, size)) if size <= 16 * MAX_READ else b""
        path = place.path
    if size > 16 * MAX_READ:
        raise Refusal(f"{path}: it has {size:,} bytes, more than is read; search it with `grep`")
    if b"\0" in data[:_BINARY]:
        raise Refusal(f"{path}: it is no text file ({size:,} bytes)")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        del lines[-1]
    first = args.get("offset", 1)
    chosen = lines[first - 1 : first - 1 + args.get("limit", MAX_LINES)]
    skipped = args.get("column", 1) - 1
    shown: list[str] = []
    used = 0
    for number, text in enumerate(chosen, first):
        part = text[skipped:] if number == first else text
        room = MAX_RESULT - 400 - used - 8
        if len(part) > room and shown:
            break
        shown.append(f"{number:6}\t{part[:room]}")
        used += len(part) + 8
        if len(part) > room:
            at = skipped + room + 1
            shown.append(
                f"[line {number} has {len(text)} characters; give offset {number} and column {at} for the rest]"
            )
            break
    last = first - 1 + len(shown)
    if last < len(lines):
        shown.append(f"[lines {first} to {last} of {len(lines)}; give `offset` for the rest]")
    put(shown or ["[the file is empty]" if not lines else f"[the file has {len(lines)} lines]"])
    return {}


def glob(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """List files by a pattern."""
    fits = _pattern(args["pattern"])
    found = [path for path, _, _ in files_below(folder_of(ground, args)) if fits(path)]
    put([*found[:_LISTED], *_more(len(found), _LISTED, "files")] or ["[no file matches]"])
    return {}


def grep(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Search files for a regular expression."""
    try:
        pattern = re.compile(args["pattern"], re.IGNORECASE if args.get("ignore_case") else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refusal(f"the pattern is no regular expression: {error}") from None
    fits = _pattern(args["glob"]) if args.get("glob") else None
    most, found, used = args.get("limit", _MATCHES), [], 0
    named = str(args.get("path") or "").removeprefix("./")
    for path, fd, name in _searched(ground, args):
        if (fits is not None and not fits(path)) or (path != named and looks_secret(path)):
            continue
        for number, text in _matches(pattern, fd, name):
            line = f"{path}:{number}: {text[:_LONGEST]}"
            used += len(line)
            found.append(line)
            if len(found) >= most or used > MAX_RESULT - 200:
                put([*found, "[more lines match; search in fewer files]"])
                return {}
    put(found or ["[no line matches]"])
    return {}


def _searched(ground: Ground, args: dict[str, Any]) -> Any:
    """Yield the files of a search: those below a folder, or the one file that `path` names."""
    path = str(args.get("path") or "")
    if path.strip("./"):
        with ground.readable(path) as place:
            status = place.status()
            if status is not None and stat.S_ISREG(status.st_mode):
                yield place.path, place.fd, place.name
                return
    yield from files_below(folder_of(ground, args))


def _matches(pattern: re.Pattern[str], folder: int, name: str) -> Any:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        data = file.read(16 * MAX_READ)
    if b"\0" in data[:_BINARY]:
        return
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(text):
            yield number, text


def tree(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Show folders and files as a tree."""
    folder = folder_of(ground, args)
    rows: list[str] = [f"{folder.path or '.'}/"]
    _branch(folder, "", args.get("depth", _DEPTH), rows)
    put([*rows[:_LISTED], *_more(len(rows), _LISTED, "entries")])
    return {}


def _branch(folder: Folder, indent: str, depth: int, rows: list[str]) -> None:
    fd = folder.fd
    for name in shown_names(fd, folder.path):
        if len(rows) > 2 * _LISTED:
            return
        mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        rows.append(f"{indent}  {_shown(name)}{_mark(mode)}")
        if not stat.S_ISDIR(mode) or depth <= 1 or name.lower() in SKIPPED:
            continue
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            path = f"{folder.path}/{name}" if folder.path else name
            _branch(Folder(inner, path), f"{indent}  ", depth - 1, rows)
        finally:
            os.close(inner)


def list_dir(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """List one folder."""
    folder = folder_of(ground, args)
    rows = []
    for name in shown_names(folder.fd, folder.path):
        status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        size = f", {status.st_size} bytes" if stat.S_ISREG(status.st_mode) else ""
        rows.append(f"{_shown(name)}{_mark(status.st_mode)} ({kind_of(status.st_mode).split()[-1]}{size})")
    put([*rows[:_LISTED], *_more(len(rows), _LISTED, "entries")] or ["[the folder is empty]"])
    return {}


def diff(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Show what changed since the copy was made, or since the last commit."""
    from planrun.tools.copies import changes  # few tools need git

    put(changes(ground, str(args.get("path") or "")) or "[nothing changed]\n")
    return {}


def _pattern(text: str) -> Any:
    try:
        globs = parse(text.removeprefix("./"))
    except BadGlob as error:
        raise Refusal(f"the pattern is invalid: {error}") from None
    return lambda path: matches(globs, path)


def _mark(mode: int) -> str:
    return "/" if stat.S_ISDIR(mode) else "@" if stat.S_ISLNK(mode) else ""


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)[1:-1]


def _more(count: int, most: int, what: str) -> list[str]:
    return [f"[{count - most:,} more {what}]"] if count > most else []
