"""Plan files that are too large or too binary to be kept: each made when asked for, with the finding it must give."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from planrun.plan import load
from planrun.plan.printing import render_text
from planrun.plan.problems import MAX_PROBLEMS
from planrun.plan.yaml import document
from planrun.plan.yaml.file import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_MEMORY = 150
"""MiB, for any plan file."""
# The heaviest of each sort as measured: bombs, depth, size, encodings, binaries.
HEAVIEST = (
    "billion-laughs", "quadratic-aliases", "merge-chain", "aliases-of-text", "nested-30000-flow",
    "nested-30000-block", "nested-4-million", "short-steps", "single-pairs", "keys", "equal-keys",
    "anchors", "long-quoted", "long-root-text", "too-large-by-one", "utf-16-le", "latin-1",
    "escape-character", "nul", "gzip", "empty",
)  # fmt: skip
STEPS = b"version: 1\nsteps:\n"
STEP = b"  - run: make\n"


class Hostile(NamedTuple):
    """The bytes of a file, and code and place of the finding that ends its reading."""

    make: Callable[[], bytes]
    code: str
    line: int
    col: int

    @property
    def data(self) -> bytes:
        """Make the bytes."""
        return self.make()


def _laughs() -> bytes:
    rows = [b"x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    rows += [b"x-%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)]
    return b"\n".join(rows) + b"\n" + STEPS + STEP


def _merges() -> bytes:
    rows = [b"x-0: &a0 {%s}" % b", ".join(b"k%d: 1" % n for n in range(1000))]
    rows += [b"x-%d: {<<: *a0, l%d: 1}" % (n, n) for n in range(1, 300)]
    return b"\n".join(rows) + b"\n" + STEPS + STEP


def _chain() -> bytes:
    rows = [b"x-0: &a0 {k: 1}"]
    rows += [b"x-%d: &a%d {<<: *a%d, l%d: 1}" % (n, n, n - 1, n) for n in range(1, 200)]
    return b"\n".join(rows) + b"\n" + STEPS + STEP


def _many(row: bytes, head: bytes = b"", tail: bytes = b"") -> Callable[[], bytes]:
    """Repeat a row until the file is as large as it may be."""
    return lambda: head + row * ((MAX_BYTES - len(head) - len(tail)) // len(row)) + tail


def _numbered(row: bytes, head: bytes, tail: bytes = b"") -> Callable[[], bytes]:
    """The same with a number in each row."""
    return lambda: (
        head
        + b"".join(row % n for n in range((MAX_BYTES - len(head) - len(tail)) // len(row % 10**6)))
        + tail
    )


def _fixed(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _text(text: str, encoding: str = "utf-8") -> Callable[[], bytes]:
    return lambda: text.encode(encoding)


PLAN = "version: 1\nsteps:\n  - run: make\n"

SMALL: dict[str, Hostile] = {
    "billion-laughs": Hostile(_laughs, "E017", 6, 31),
    "quadratic-aliases": Hostile(
        lambda: b"x-a: &a [%s]\nx-b: [%s]\n" % (b"x," * 5000, b"*a," * 5000) + STEPS + STEP, "E017", 2, 244
    ),
    "merge-chain": Hostile(_merges, "E017", 201, 13),
    "chain-of-merges": Hostile(_chain, "E012", 64, 17),
    "nested-30000-flow": Hostile(_fixed(b"x: " + b"[" * 30000 + b"]" * 30000), "E012", 1, 67),
    "nested-30000-block": Hostile(_fixed(b"x:\n  " + b"- " * 30000 + b"a\n"), "E012", 2, 129),
    "nested-30000-question": Hostile(_fixed(b"? " * 30000 + b"a\n"), "E012", 1, 129),
    "utf-16-le": Hostile(_text("\ufeff" + PLAN, "utf-16-le"), "E004", 1, 1),
    "utf-16-be": Hostile(_text("\ufeff" + PLAN, "utf-16-be"), "E004", 1, 1),
    "utf-32-le": Hostile(_text("\ufeff" + PLAN, "utf-32-le"), "E004", 1, 1),
    "utf-32-be": Hostile(_text("\ufeff" + PLAN, "utf-32-be"), "E004", 1, 1),
    "utf-16-without-mark": Hostile(_text(PLAN, "utf-16-le"), "E005", 1, 2),
    "latin-1": Hostile(_text("version: 1\nname: Z\u00fcrich\nsteps: []\n", "latin-1"), "E004", 2, 8),
    "utf-7-mark": Hostile(_fixed(b"version: 1\nname: a\xc0\xafb\n"), "E004", 2, 8),
    "cut-in-a-character": Hostile(_fixed("version: 1\nname: \u20ac".encode()[:-1]), "E004", 2, 7),
    "encoded-surrogate": Hostile(_fixed(b"version: 1\nname: \xed\xa0\x80\n"), "E004", 2, 7),
    "beyond-unicode": Hostile(_fixed(b"version: 1\nname: \xf4\x90\x80\x80\n"), "E004", 2, 7),
    "nul": Hostile(_fixed(b"version: 1\nname: a\0b\nsteps: []\n"), "E005", 2, 8),
    "escape-character": Hostile(_fixed(b"version: 1\nname: \x1b[31mred\n"), "E005", 2, 7),
    "backspace": Hostile(_fixed(b"version: 1\nname: a\bb\n"), "E005", 2, 8),
    "delete": Hostile(_fixed(b"version: 1\nname: a\x7fb\n"), "E005", 2, 8),
    "form-feed": Hostile(_fixed(b"version: 1\n\x0cname: a\n"), "E005", 2, 1),
    "vertical-tab": Hostile(_fixed(b"version: 1\nname: a\x0bb\n"), "E005", 2, 8),
    "c1-csi": Hostile(_text("version: 1\nname: \x9b31m\n"), "E005", 2, 7),
    "next-line": Hostile(_text("version: 1\nname: a\x85b\n"), "E005", 2, 8),
    "line-separator": Hostile(_text("version: 1\nname: a\u2028b\n"), "E005", 2, 8),
    "bidi-override": Hostile(_text("version: 1\nname: a\u202eb\n"), "E005", 2, 8),
    "bidi-isolate": Hostile(_text("version: 1\nsteps:\n  - run: a \u2066 b\n"), "E005", 3, 12),
    "byte-order-mark-inside": Hostile(_text("version: 1\n\ufeffname: a\n"), "E005", 2, 1),
    "two-byte-order-marks": Hostile(_text("\ufeff\ufeff" + PLAN), "E005", 1, 1),
    "non-character": Hostile(_text("version: 1\nname: \uffff\n"), "E005", 2, 7),
    "empty": Hostile(_fixed(b""), "E006", 1, 1),
    "only-byte-order-mark": Hostile(_text("\ufeff"), "E006", 1, 1),
    "only-comment": Hostile(_fixed(b"# nothing\n"), "E006", 1, 1),
    "only-document-start": Hostile(_fixed(b"...\n"), "E010", 1, 1),
    "only-document-end": Hostile(_fixed(b"...\n"), "E010", 1, 1),
    "gzip": Hostile(_fixed(b"\x1f\x8b\x08\x00\x00\x00\x00\x00"), "E004", 1, 2),
    "elf": Hostile(_fixed(b"\x7fELF\x02\x01\x01\x00"), "E005", 1, 1),
    "png": Hostile(_fixed(b"\x89PNG\r\n\x1a\n"), "E004", 1, 1),
    "environment-of-a-process": Hostile(_fixed(b"HOME=/root\0TOKEN=hunter2\0"), "E005", 1, 11),
    "passwords": Hostile(_fixed(b"root:x:0:0:root:/root:/bin/sh\nu:x:1:1::/:/bin/sh\n"), "E101", 1, 1),
}
LARGE: dict[str, Hostile] = {
    "aliases-of-text": Hostile(_many(b"*a,", b"x-a: &a 1\nx-b: [", b"]\n"), "E021", 2, 0),
    "nested-30000-flow-mapping": Hostile(_fixed(b"x: " + b"{a: " * 30000 + b"}" * 30000), "E012", 1, 256),
    "nested-4-million": Hostile(_many(b"[", b"x: "), "E012", 1, 67),
    "question-marks-in-flow": Hostile(_many(b"? ", b"x: {"), "E010", 1, 7),
    "colons-in-flow": Hostile(_many(b":", b"x: {"), "E010", 1, 5),
    "too-large-by-one": Hostile(
        lambda: STEPS + STEP + b"#" * (MAX_BYTES - len(STEPS + STEP) + 1), "E003", 1, 1
    ),
    "empty-lists": Hostile(_many(b"[],", b"version: 1\nsteps: [", b"]\n"), "E021", 2, 0),
    "dashes": Hostile(_many(b"- a\n", STEPS), "E021", 0, 3),
    "keys": Hostile(_numbered(b"k%07d: 1\n", b"version: 1\n"), "E021", 0, 1),
    "quotes": Hostile(_many(b"'',", b"x-a: [", b"]\n"), "E021", 1, 0),
    "anchors": Hostile(_numbered(b"&a%07d 1,", b"x-a: [", b"]\n"), "E021", 1, 0),
    "single-pairs": Hostile(_many(b"? a,", b"x-a: [", b"]\n"), "E021", 1, 0),
    "short-steps": Hostile(_many(b"- run: x\n", STEPS), "E021", 0, 3),
    "equal-keys": Hostile(_many(b"a: 1\n"), "E199", 1002, 1),
    "tag-directives": Hostile(_numbered(b"%%TAG !a%07d! x\n", b"", b"---\na: b\n"), "E020", 1, 1),
    "tag-directives-behind": Hostile(_numbered(b"%%TAG !a%07d! x\n", b"a: b\n...\n"), "E013", 3, 1),
    "percent-signs": Hostile(_many(b"%", b"a: b\n"), "E010", 2, 2),
    "exclamation-marks": Hostile(_many(b"!", b"a: "), "E014", 1, 4),
    "tabs": Hostile(_many(b"\t", b"a:\n"), "E011", 2, 1),
    "spaces": Hostile(_many(b" "), "E006", 1, 1),
    "newlines": Hostile(_many(b"\n"), "E006", 1, 1),
    "comments": Hostile(_many(b"#\n"), "E006", 1, 1),
    "long-quoted": Hostile(_many(b"x", b'name: "'), "E010", 1, 7),
    "long-root-text": Hostile(_many(b"x"), "E101", 1, 1),
    "long-name-of-anchor": Hostile(_many(b"a", b"x-a: &"), "E102", 1, 1),
    "escapes": Hostile(_many(b"\\x41", b'name: "', b'"\n'), "E102", 1, 1),
    "one-line-of-8-mib": Hostile(_many(b"x", b"version: 1\nname: "), "E102", 1, 1),
    "lines-in-plain-text": Hostile(_many(b"x\n  ", b"version: 1\nname: "), "E102", 1, 1),
    "lines-in-block-text": Hostile(_many(b"  x\n", b"version: 1\ngoal: |\n"), "E102", 1, 1),
    "carriage-returns": Hostile(_many(b"a: b\r"), "E199", 1002, 1),
}
HOSTILE = SMALL | LARGE
"""A line or column of 0: where reading stops is nobody's promise, only that it does."""

assert document.MAX_DEPTH == 64, "the places above say where level 65 begins"


def special_files(folder: Path) -> dict[str, tuple[str, str]]:
    """Make everything a path can name that is no plan; returns path and expected code by kind."""
    os.mkfifo(folder / "fifo")
    (folder / "loop-a").symlink_to("loop-b")
    (folder / "loop-b").symlink_to("loop-a")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "to-fifo").symlink_to("fifo")
    with open(folder / "sparse", "wb") as sparse:
        sparse.truncate(100 * 1024 * 1024)
    short = os.path.relpath(folder)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(min(f"{short}/socket", f"{folder}/socket", key=len))
    found = {
        "missing": (f"{folder}/missing.yml", "E001"),
        "dangling-link": (f"{folder}/dangling", "E001"),
        "link-loop": (f"{folder}/loop-a", "E001"),
        "below-a-file": (f"{folder}/sparse/plan.yml", "E001"),
        "name-too-long": (f"{folder}/{'x' * 300}.yml", "E001"),
        "nul-in-name": (f"{folder}/a\0b.yml", "E001"),
        "empty-name": ("", "E001"),
        "directory": (str(folder), "E002"),
        "fifo": (f"{folder}/fifo", "E002"),
        "link-to-fifo": (f"{folder}/to-fifo", "E002"),
        "socket": (f"{folder}/socket", "E002"),
        "zeroes": ("/dev/zero", "E002"),
        "null": ("/dev/null", "E002"),
        "random": ("/dev/urandom", "E002"),
        "sparse-100-mib": (f"{folder}/sparse", "E003"),
    }
    if os.geteuid():  # the superuser may read everything
        (folder / "secret.yml").write_text(PLAN)
        (folder / "secret.yml").chmod(0)
        found["unreadable"] = (f"{folder}/secret.yml", "E001")
    return found


class Ended(NamedTuple):
    """How a process ended, what it printed and how much memory it took at most (MiB)."""

    code: int
    text: str
    memory: float


# A process between this one and planrun: a child begins with the size of its parent, and ours is large.
BETWEEN = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
if sys.platform == "linux":
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
pid = os.fork()
if not pid:
    os.dup2(2, 1)
    os.execv(sys.executable, [sys.executable, "-m", "planrun", *sys.argv[1:]])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def run(folder: Path, *words: str) -> Ended:
    """Run planrun in a process of its own, with the kernel's limits as a net under it: 10 s of processor, 1 GiB."""
    done = subprocess.run(
        [sys.executable, "-c", BETWEEN, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    code, memory = map(int, done.stdout.split())
    return Ended(code, done.stderr, memory * (1 if sys.platform == "darwin" else 1024) / 2**20)


def little(folder: Path, name: str) -> list[str]:
    """Execute a hostile file in a folder; returns what is wrong: exit code, text, memory, or what was left behind."""
    (folder / "plan.yml").write_bytes(HOSTILE[name].data)
    ended = run(folder, "execute", "plan.yml")
    rules = {
        f"exit {ended.code}: {ended.text[:400]}": ended.code == 2,
        f"no place: {ended.text[:400]}": bool(re.match(r"plan\.yml:\d+:\d+: error\[E\d{3}\]: ", ended.text)),
        "not printable": ended.text.replace("\n", "").isprintable(),
        f"{len(ended.text)} characters": len(ended.text) < 20_000,
        "a traceback": "Traceback" not in ended.text,
        f"{ended.memory:.0f} MiB": ended.memory <= MOST_MEMORY,
        "files": [path.name for path in folder.iterdir()] == ["plan.yml"],
    }
    return [f"{name}: {what}" for what, holds in rules.items() if not holds]


def wrong(name: str) -> list[str]:
    """Read a hostile file in this process; returns what is wrong with what was found."""
    hostile = HOSTILE[name]
    data = hostile.data
    problems = load.check_bytes(data, name).problems
    found = [
        each
        for each in problems
        if each.code == hostile.code and hostile.line in {0, each.line} and hostile.col in {0, each.col}
    ]
    rules = {
        f"found {[(each.code, each.line, each.col) for each in problems[:5]]}": bool(found),
        f"{len(problems)} problems": len(problems) <= MAX_PROBLEMS + 2,
        "a problem without a place": all(each.line >= 1 and each.col >= 1 for each in problems),
        "much text": len(render_text(problems, {name: data})) < 20_000,
    }
    return [f"{name}: {what}" for what, holds in rules.items() if not holds]
