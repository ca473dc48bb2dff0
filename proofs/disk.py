"""What a disk may hold after a power cut, from the system calls that were made before it.

Sure to be there is what was synced: the content of a file by fsync or fdatasync of it, a name by fsync of its folder.
Of the rest anything may be missing: bytes from any edge of a sector on (the file is shorter, or its end is zeros),
single sectors in between (zeros), all of them; and names, from the last one back to the first, or single ones.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECTOR = 512
_EDGES = 16
"""Of more sectors than twice as many only the first and the last are tried."""
TRACED = (
    *("openat", "write", "pwrite64", "fdatasync", "fsync", "ftruncate", "truncate", "fallocate"),
    *(
        "rename",
        "renameat",
        "renameat2",
        "mkdir",
        "mkdirat",
        "unlink",
        "unlinkat",
        "clone",
        "clone3",
        "vfork",
    ),
)
"""The system calls that a trace has to have; those that a machine does not know can be left out."""
Contents = dict[str, bytes | None]
"""Paths of a folder: the content of a file, None for a folder."""

_CALL = re.compile(r"(\w+)\((.*)\) += (\d+)(?:<([^>]*)>)?$")
_DESCRIPTOR = re.compile(r"\d+<([^>]*)>")
_TEXT = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Call:
    """One system call that went well: its name, the paths in it, the bytes it wrote, its numbers."""

    name: str
    paths: tuple[str, ...]
    data: bytes = b""
    numbers: tuple[int, ...] = ()
    flags: str = ""


def calls(trace: str, folder: str) -> list[Call]:
    """Read what `strace -y -xx` wrote; paths are below the folder, calls that have nothing to do with it left out."""
    found = []
    for row in trace.splitlines():
        match = _CALL.match(row)
        if not match:
            continue
        name, words, _, opened = match.groups()
        if name in ("clone", "clone3", "vfork"):
            found.append(Call("spawn", ()))
            continue
        texts = [_plain(text) for text in _TEXT.findall(words)]
        descriptor = _DESCRIPTOR.match(words)
        data = texts[0] if "write" in name and texts else b""
        if opened:
            paths = [_plain(opened)]
        elif descriptor:
            paths = [_plain(descriptor[1])]
        else:
            paths = texts
        inside = [
            path.decode()
            for path in paths
            if path.startswith(folder.encode() + b"/") or path == folder.encode()
        ]
        if inside:
            numbers = [int(number) for number in re.findall(r", (\d+)", words)]
            found.append(
                Call(name, tuple(posixpath.relpath(p, folder) for p in inside), data, tuple(numbers), words)
            )
    return found


def _plain(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


@dataclass
class File:
    """A file: what is sure to be on the disk, and what was written since."""

    durable: bytes = b""
    full: bytes = b""

    def states(self) -> Iterator[bytes]:
        """Yield every content it may have after a power cut; the first is the whole, the second what was synced."""
        yield self.full
        yield self.durable
        if not self.full.startswith(self.durable):
            return
        start, end = len(self.durable), len(self.full)
        edges = [start, *range(start - start % SECTOR + SECTOR, end, SECTOR), end]
        if len(edges) > 2 * _EDGES:
            edges = edges[:_EDGES] + edges[-_EDGES:]
        for at, after in pairwise(edges):
            yield self.full[:at]
            yield self.full[:at] + bytes(end - at)
            yield self.full[:at] + bytes(after - at) + self.full[after:]


@dataclass
class Disk:
    """A folder as it is seen, and as it may be after a power cut.

    `others`: the contents that files have at last to which other processes wrote, by the names they were given.
    """

    others: Contents = field(default_factory=dict)
    nodes: dict[int, File | None] = field(default_factory=dict)  # None: a folder
    seen: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    pending: list[tuple[str, str, int]] = field(
        default_factory=list
    )  # what was done to which name with which node

    @classmethod
    def holding(cls, contents: Contents, others: Contents) -> Disk:
        """Return a disk on which everything is that it holds."""
        disk = cls(others)
        for path, content in contents.items():
            disk.seen[path] = disk._new(None if content is None else File(content, content))
        disk.durable = dict(disk.seen)
        return disk

    def make(self, call: Call) -> None:
        """Have a system call happen."""
        name, path = call.name.removesuffix("at"), call.paths[0] if call.paths else ""
        self._renamed = name in ("open", "mkdir", "unlink", "rename", "renameat2")
        self._written = -1
        if name == "open":
            self._open(path, call.flags)
        elif name == "mkdir":
            self._name("add", path, self._new(None))
        elif name == "unlink":
            if path in self.seen:
                self._name("drop", path, self.seen[path])
        elif name in ("rename", "renameat2"):
            self._rename(*call.paths)
        elif name == "spawn":
            return
        elif name in ("fsync", "fdatasync"):
            self._sync(path)
        else:
            self._write(name, path, call)

    def states(self) -> Iterator[Contents]:
        """Yield what the folder may hold after a power cut right after the last call; some more than once.

        After a call that changed names every combination of names is tried, with all bytes and with the synced ones;
        after one that changed a file all names are there, the file is in each of its states, and the others as they
        were seen or as they were synced.
        """
        unsure = [number for number in self._reachable() if self._is_unsure(number)]
        kept: dict[int, bytes] = {}
        dropped = {number: file.durable for number in unsure if (file := self.nodes[number])}
        for names in self._names() if self._renamed else (self.seen, self.durable):
            yield self._contents(names, kept)
            yield self._contents(names, dropped)
        file = self.nodes.get(self._written)
        for content in file.states() if file else ():
            yield self._contents(self.seen, {self._written: content})
            yield self._contents(self.seen, {**dropped, self._written: content})

    def file(self, path: str) -> File:
        """The file of a name, as it is seen; an empty one when there is none."""
        return self.nodes.get(self.seen.get(path, -1)) or File()

    def _reachable(self) -> set[int]:
        return {*self.seen.values(), *self.durable.values()}

    def _is_unsure(self, number: int) -> bool:
        file = self.nodes[number]
        return file is not None and file.full != file.durable

    def _names(self) -> Iterator[dict[str, int]]:
        """Yield the names that may be there: all, all but the last ones, all but one."""
        yield self.seen
        for at in range(len(self.pending)):
            yield self._named(self.pending[:at])
            yield self._named(self.pending[:at] + self.pending[at + 1 :])

    def _named(self, done: list[tuple[str, str, int]]) -> dict[str, int]:
        names = dict(self.durable)
        for what, path, number in done:
            if what == "add":
                names[path] = number
            else:
                names.pop(path, None)
        return names

    def _contents(self, names: Mapping[str, int], instead: Mapping[int, bytes]) -> Contents:
        found: Contents = {}
        for path in sorted(names):
            above = posixpath.dirname(path)
            if above in found or not above:
                file = self.nodes[names[path]]
                found[path] = None if file is None else instead.get(names[path], file.full)
        return found

    def _new(self, file: File | None) -> int:
        self.nodes[len(self.nodes)] = file
        return len(self.nodes) - 1

    def _name(self, what: str, path: str, number: int) -> None:
        self.pending.append((what, path, number))
        self.seen = self._named(self.pending)

    def _rename(self, old: str, new: str) -> None:
        number = self.seen[old]
        file = self.nodes[number]
        if file is not None:
            file.full = file.full or self.others.get(new) or b""
        self._name("add", new, number)
        self._name("drop", old, number)

    def _open(self, path: str, flags: str) -> None:
        if path == ".":
            return
        if path not in self.seen and "O_CREAT" in flags:
            self._name("add", path, self._new(File()))
        elif "O_TRUNC" in flags:
            self.file(path).full = b""

    def _sync(self, path: str) -> None:
        number = self.seen.get(path)
        file = None if number is None else self.nodes[number]
        if file is not None:
            file.durable = file.full
            return
        folder = "" if path == "." else path
        ready = [step for step in self.pending if posixpath.dirname(step[1]) == folder]
        self.durable = {
            **{name: node for name, node in self.durable.items() if posixpath.dirname(name) != folder},
            **{name: node for name, node in self.seen.items() if posixpath.dirname(name) == folder},
        }
        self.pending = [step for step in self.pending if step not in ready]

    def _write(self, name: str, path: str, call: Call) -> None:
        if path not in self.seen:  # it has no name any more
            return
        self._written = self.seen[path]
        file = self.file(path)
        if name == "write":
            file.full += call.data
        elif name == "pwrite64":
            at = call.numbers[-1]
            file.full = file.full[:at].ljust(at, b"\0") + call.data + file.full[at + len(call.data) :]
        elif name in ("truncate", "ftruncate"):
            size = call.numbers[0]
            file.full = file.full[:size].ljust(size, b"\0")
        elif name == "fallocate" and "KEEP_SIZE" not in call.flags:
            file.full = file.full.ljust(sum(call.numbers[-2:]), b"\0")
