"""Git's configuration files: their settings, and which of them run a program.

The syntax is that of `git_parse_source` in git's config.c, and a file that git would refuse is refused.

The files that configure git in a folder: those of its repository, their includes, and those of nested repositories.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.model.record import Record
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CONFIG = 1 << 20  # bytes of one file; real ones have less than 100 KiB
_SPACES = b" \t\r\n"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_IN_NAMES = _LETTERS + b"0123456789-"
_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"\\": b"\\", b'"': b'"'}

# Keys that run something during commands that stay in the repository; first and last part, in lower case.
# "" stands for any section, since tools and new versions of git add sections.
_RUNS = {
    "core": ("alternaterefscommand",),
    "diff": ("textconv", "command", "external"),
    "filter": ("clean", "smudge", "process"),
    "merge": ("driver",),
    "browser": ("path",),
    "man": ("path",),
    "mergetool": ("path",),
    "difftool": ("path",),
    "interactive": ("difffilter",),
    "extensions": ("partialclone",),
    "remote": ("promisor",),
}
_RUNS_ANYWHERE = ("command", "cmd", "program", "hook")  # endings of the last part
# Settings that the environment overrides, or that only a network connection would run: there is none.
_OFF = frozenset(
    (
        *("core.fsmonitor", "core.hookspath", "core.pager", "core.editor", "core.askpass", "core.gitproxy"),
        *("core.sshcommand", "sequence.editor", "uploadpack.packobjectshook"),
    )
)
_NAMES_ONLY = names_in(
    "rev-parse show-ref ls-tree merge-base symbolic-ref branch tag rev-list for-each-ref remote"
)
# Subcommands that never read files of the working tree, and those that never show a diff.
_WITHOUT = {
    "filter": _NAMES_ONLY | {"log", "shortlog", "reflog"},
    "diff": _NAMES_ONLY | {"ls-files", "describe"},
}
_WRITES = frozenset(("core.worktree", "format.outputdirectory"))  # values: folders that git then works in


def settings(data: bytes) -> list[tuple[str, str | None]]:
    """Return the settings of a file as pairs of full name and value; None: a name without a value, which means true.

    Section and key are in lower case, a subsection is as written. White space within a value stays as written (git
    before 2.45 has a blank for each). Raises ValueError for files that git refuses, and for NUL characters.
    """
    if b"\0" in data:
        raise ValueError("a NUL character")
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    found: list[tuple[str, str | None]] = []
    section = b""
    at, end = 0, len(data)
    while at < end:
        char = data[at : at + 1]
        if char in _SPACES:
            at += 1
        elif char in b"#;":
            at = _line_end(data, at)
        elif char == b"[":
            section, at = _section(data, at + 1)
        elif char in _LETTERS:
            name, value, at = _setting(data, at)
            found.append((_text(section + name), None if value is None else _text(value)))
        else:
            raise _refusal(data, at)
    return found


def runs_program(name: str, value: str | None, subcommand: str = "") -> bool:
    """Whether a setting runs a program in commands that only read or change the repository itself.

    `subcommand`: of git, if known; "": any.
    """
    if name in _OFF or name.startswith("advice."):
        return False
    section, _, rest = name.partition(".")
    if subcommand in _WITHOUT.get(section, ()):
        return False
    last = rest.rpartition(".")[2]
    if section == "remote" and last == "promisor":
        return (value or "true").lower() not in ("false", "no", "off", "0")
    if section == "submodule" and last == "update":
        return (value or "").startswith("!")
    return last in _RUNS.get(section, ()) or last.endswith(_RUNS_ANYWHERE)


def is_folder(name: str) -> bool:
    """Whether the value of a setting is a folder that git then writes in."""
    return name in _WRITES


def included(name: str) -> bool:
    """Whether the value of a setting is a further file, be it under a condition."""
    return name == "include.path" or (name.startswith("includeif.") and name.endswith(".path"))


def alias(name: str) -> str:
    """Return the command that a setting redefines; empty for other settings."""
    section, _, rest = name.partition(".")
    return rest.removesuffix(".command").lower() if section == "alias" else ""


def _line_end(data: bytes, at: int) -> int:
    found = data.find(b"\n", at)
    return len(data) if found < 0 else found


def _section(data: bytes, at: int) -> tuple[bytes, int]:
    """Read a section after `[`; returns it with its dot, and its end."""
    start = at
    while data[at : at + 1] and data[at : at + 1] in _IN_NAMES + b".":
        at += 1
    name = data[start:at].lower()
    char = data[at : at + 1]
    if char == b"]" and name:
        return name + b".", at + 1
    if not char or char not in _SPACES:
        raise _refusal(data, at)
    while data[at : at + 1] and data[at : at + 1] in b" \t\r":
        at += 1
    if data[at : at + 1] != b'"':
        raise _refusal(data, at)
    subsection, at = _quoted(data, at + 1)
    if data[at : at + 1] != b"]":
        raise _refusal(data, at)
    return name + b"." + subsection + b".", at + 1


def _quoted(data: bytes, at: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    while True:
        char = data[at : at + 1]
        if char == b"\\":
            at += 1
            char = data[at : at + 1]
        elif char == b'"':
            return b"".join(parts), at + 1
        if char in (b"", b"\n"):
            raise _refusal(data, at)
        parts.append(char)
        at += 1


def _setting(data: bytes, at: int) -> tuple[bytes, bytes | None, int]:
    """Read a name and an optional value; returns the end of the line."""
    start = at
    while data[at : at + 1] and data[at : at + 1] in _IN_NAMES:
        at += 1
    name = data[start:at].lower()
    while data[at : at + 1] and data[at : at + 1] in b" \t":
        at += 1
    if data[at : at + 1] in (b"", b"\n"):
        return name, None, at
    if data[at : at + 1] != b"=":
        raise _refusal(data, at)
    value, at = _value(data, at + 1)
    return name, value, at


def _value(data: bytes, at: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    spaces: list[bytes] = []
    quoted = False
    while True:
        char = data[at : at + 1]
        if char in (b"", b"\n"):
            if quoted:
                raise _refusal(data, at)
            return b"".join(parts), at
        if not quoted and char in b" \t\r":
            if parts:
                spaces.append(char)
            at += 1
            continue
        if not quoted and char in b"#;":
            return b"".join(parts), _line_end(data, at)
        parts += spaces
        spaces = []
        at += 1
        if char == b'"':
            quoted = not quoted
        elif char != b"\\":
            parts.append(char)
        else:
            parts += [escaped] if (escaped := _escaped(data, at)) else []
            at += 1


def _escaped(data: bytes, at: int) -> bytes:
    """Return the character of an escape sequence; nothing for the end of a line."""
    char = data[at : at + 1]
    if char in (b"", b"\n"):
        return b""
    if char not in _ESCAPES:
        raise _refusal(data, at)
    return _ESCAPES[char]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _refusal(data: bytes, at: int) -> ValueError:
    line = data.count(b"\n", 0, at) + 1
    return ValueError(f"line {line} is none that git reads")


MAX_DEPTH = 10  # of includes, as in git
MAX_FILES = 200  # of configuration that one command may read
MAX_INDEX = 64 << 20  # bytes
_MAX_POINTER = 4096  # bytes of a file that only names a folder
_GITLINK, _LONG_NAME = 0o16, 0xFFF  # of an index entry: file type; the limit of its name length field
_ENTRY = (62, 74)  # bytes before the name of an entry, with hashes of 20 and 32 bytes
_BEFORE_HASH = 42  # of these, the bytes before the hash


class Unsure(Exception):
    """The configuration of git cannot be determined; the text gives the reason."""


class GitFiles:
    """The files of configuration, each read once until it changes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, ...], list[tuple[str, str | None]]]] = {}
        self._links: dict[str, tuple[tuple[int, ...], list[str]]] = {}

    def read(self, path: str) -> list[tuple[str, str | None]]:
        """Return the settings of a file; none if it is missing. Raises Unsure when it cannot be read as git does."""
        state = _state(path)
        if state is None or path == os.devnull:  # os.devnull disables the file
            self._kept.pop(path, None)
            return []
        known = self._kept.get(path)
        if known is None or known[0] != state:
            try:
                known = self._kept[path] = (state, settings(_bytes(path, MAX_CONFIG)))
            except (OSError, ValueError) as error:
                raise Unsure(f"{path}: {error}") from None
        return known[1]

    def gitlinks(self, path: str) -> list[str]:
        """Return the paths of the repositories that an index names. Raises Unsure for an unknown format."""
        state = _state(path)
        if state is None:
            return []
        known = self._links.get(path)
        if known is None or known[0] != state:
            try:
                known = self._links[path] = (state, gitlinks(_bytes(path, MAX_INDEX)))
            except (OSError, ValueError) as error:
                raise Unsure(f"{path}: {error}") from None
        return known[1]


class Found(Record):
    """One setting, its file, and the repository and the top of the working tree that it applies to."""

    file: str
    top: str
    gitdir: str
    name: str
    value: str | None


def effective(files: GitFiles, folder: str, own: list[str], home: str) -> Iterator[Found]:
    """Yield the settings for a command in a folder, conditional ones included.

    `own`: further files of the user who runs it; `home`: the value of `~`. Raises Unsure and OSError.
    """
    budget = [MAX_FILES]
    for path in own:
        yield from _with_includes(files, path, Root(top=folder, gitdir=""), home, budget)
    waiting, seen = roots(folder), set()
    while waiting:
        root = waiting.pop()
        if root.gitdir not in seen:
            seen.add(root.gitdir)
            yield from _of_root(files, root, home, budget)
            # Return the nested repositories that git also reads, since the index of the working tree names them
            names = os.listdir(root.gitdir) if os.path.isdir(root.gitdir) else []
            indexes = [name for name in names if name == "index" or name.startswith("sharedindex.")]
            found = []
            for name in indexes:
                for link in files.gitlinks(os.path.join(root.gitdir, name)):
                    found += _root_at(os.path.join(root.top, link))[0]
            waiting += found


class Root(Record):
    """A repository: the top of its working tree, and its git folder."""

    top: str
    gitdir: str


def roots(folder: str) -> list[Root]:
    """Return the repository that git finds from a folder upwards, and those below it that it might use instead."""
    found = []
    while True:
        here, certain = _root_at(folder)
        found += here
        above = os.path.dirname(folder)
        if certain or above == folder:
            return found
        folder = above


def _root_at(folder: str) -> tuple[list[Root], bool]:
    """Return the possible repository in a folder, and whether git certainly uses it."""
    marker = os.path.join(folder, ".git")
    if os.path.isfile(marker):
        return [Root(top=folder, gitdir=_pointed(marker, b"gitdir: "))], True
    found = []
    for gitdir in (marker, folder):
        if os.path.lexists(os.path.join(gitdir, "HEAD")):
            found.append(Root(top=folder, gitdir=gitdir))
            if _is_sound(gitdir):
                return found, True
    return found, False


def _is_sound(gitdir: str) -> bool:
    """Whether git certainly treats a folder with a HEAD as a repository."""
    try:
        head = _bytes(os.path.join(gitdir, "HEAD"), _MAX_POINTER)
    except (OSError, ValueError):
        return False
    folders = all(os.path.isdir(os.path.join(gitdir, name)) for name in ("objects", "refs"))
    return folders and head.startswith(b"ref: refs/")


def gitlinks(data: bytes) -> list[str]:
    """Return the paths of entries that are repositories of their own, sorted. Raises ValueError."""
    return entries(data)[1]


def entries(data: bytes) -> tuple[list[str], list[str]]:
    """Return the paths of an index, sorted: of files and links, and of repositories of their own. Raises ValueError."""
    if data[:4] != b"DIRC":
        raise ValueError("no index of git")
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if version not in (2, 3, 4):
        raise ValueError(f"an index of version {version}")
    found: tuple[dict[bytes, None], dict[bytes, None]] = ({}, {})  # in order, which makes sorting them cheap
    sound = 0
    for fixed in _ENTRY:  # the index does not name its hash size; a wrong one almost never parses
        try:
            files, links = _walk(data, count, fixed, is_short=version == 4)
        except (ValueError, IndexError):
            continue
        found[0].update(dict.fromkeys(files))
        found[1].update(dict.fromkeys(links))
        sound += 1
    if not sound:
        raise ValueError("an index that is not understood")
    return _decoded(found[0]), _decoded(found[1])


def _decoded(names: dict[bytes, None]) -> list[str]:
    return (
        sorted(os.fsdecode(b"\0".join(names)).split("\0")) if names else []
    )  # one by one takes ten times as long


def _walk(data: bytes, count: int, fixed: int, *, is_short: bool) -> tuple[list[bytes], list[bytes]]:
    """Walk over the entries; `is_short`: each name is compressed against the previous one."""
    found: tuple[list[bytes], list[bytes]] = ([], [])
    at, end, name = 12, len(data), b""
    for _ in range(count):
        start = at + fixed
        high, low = data[start - 2], data[start - 1]  # of the flags
        if high & 0x40:
            start += 2
        if is_short:
            strip, start = _varint(data, start)
            stop = data.index(b"\0", start)
            name = name[: len(name) - strip] + data[start:stop]
            following = stop + 1
        else:
            stop = data.index(b"\0", start)
            following = at + ((stop - at + 8) & ~7)
            if following > end or ((high & 15) << 8 | low) not in (stop - start, _LONG_NAME):
                raise ValueError("an entry that does not end")
        found[data[at + 26] >> 4 == _GITLINK].append(name if is_short else data[start:stop])
        at = following
    while end - at > fixed - _BEFORE_HASH:  # extensions, until only the final hash remains
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if end - at != fixed - _BEFORE_HASH:
        raise ValueError("an index that does not come out even")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) + (data[at] & 127)
    return value, at + 1


def _of_root(files: GitFiles, root: Root, home: str, budget: list[int]) -> Iterator[Found]:
    common = os.path.join(root.gitdir, "commondir")
    shared = _pointed(common, b"") if os.path.isfile(common) else root.gitdir
    for path in (os.path.join(shared, "config"), os.path.join(root.gitdir, "config.worktree")):
        yield from _with_includes(files, path, root, home, budget)


def _with_includes(files: GitFiles, path: str, root: Root, home: str, budget: list[int]) -> Iterator[Found]:
    waiting = [(path, 0)]
    while waiting:
        path, depth = waiting.pop()
        budget[0] -= 1
        if budget[0] < 0 or depth > MAX_DEPTH:
            raise Unsure(f"{path}: more files of configuration than are looked at")
        for name, value in files.read(path):
            yield Found(file=path, top=root.top, gitdir=root.gitdir, name=name, value=value)
            if included(name) and value:
                waiting.append((_place(value, path, home), depth + 1))


def _place(value: str, path: str, home: str) -> str:
    """Return the path of an include."""
    if any(char in value for char in "\t\r\n") or value.startswith("%("):
        raise Unsure(f"{path}: includes a file with an odd name")
    if value == "~" or value.startswith("~/"):
        value = home + value[1:]
    elif value.startswith("~"):
        value = os.path.expanduser(value)
    return os.path.join(os.path.dirname(os.path.realpath(path)), value)


def _pointed(path: str, prefix: bytes) -> str:
    """Return the folder that a file names, relative to its own folder."""
    try:
        data = _bytes(path, _MAX_POINTER)
    except (OSError, ValueError) as error:
        raise Unsure(f"{path}: {error}") from None
    if not data.startswith(prefix):
        raise Unsure(f"{path}: names no repository")
    named = os.fsdecode(data[len(prefix) :].rstrip(b"\r\n"))
    if "\0" in named:
        raise Unsure(f"{path}: names no repository")
    return os.path.join(os.path.dirname(path), named)


def _state(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _bytes(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("no regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError("larger than is looked at")
    return data
