"""Changes to the bytes of a file: blind ones, and ones that know what YAML is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofs.fuzzing import formulas

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    Change = Callable[[Random, bytes], bytes]

_WORDS = (
    "'", '"', "|", "|2", "|-\n", ">+\n", ">", "&a ", "*a", "<<: *a", "<<: {a: b}", "<<: [*a, {b: c}]",
    "!!str ", "!x ",
    "!<x> ", "? ", "? a\n: b", ": ", "- ", "[", "]", "{", "}", "#", " #", ",", "---\n", "...\n",
    "%YAML 1.2\n---\n",
    "%TAG ! x\n", "\t", "\r\n", "\r", "\n", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\ufeff", "\0",
    "\x1b[31m",
    "\x7f", "\x9b", "~", "null", "yes", "No", "on", "true", "True", "0755", "0o17", "0x1F", "1_000",
    "1:30", "3.10", "-0",
    "+1", "1e3", "1e999", "-1", ".inf", ".nan", "2024-99-99", "2024-01-01", "9" * 19, "9" * 5000,
    "1" * 400 + ".5", "=",
    "<<", "é", "é", "日本", "\U0001f600", "\ufffd", "\uffff", "\ud7ff", '"\\u0000"', '"\\ud800"',
    '"\\U00110000"',
    '"\\x85"', '"\\L"', '"\\q"', '"\\\n"', "''", '""', "a\n\nb", "${{ ", " }}", "$${{", "${{ 'a' }}",
    "a" * 101, "A" * 3000,
    "500ms", "1h30m", "99999999h", "0s", "1.5.5s", "./x", "../x", "/etc/passwd", "::error::x", "##[group]",
    "<<<<<<< HEAD\n",
    "id: a\n", "x-a: &a {b: c}\n", "on: push\n", "needs: [a]\n", "@", "`", "%", "\\",
)  # fmt: skip
WORDS = tuple(word.encode() for word in _WORDS)


def flip(chance: Random, data: bytes) -> bytes:
    """Change one bit."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def insert(chance: Random, data: bytes) -> bytes:
    """Put in some random bytes, or one word of YAML."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + (chance.randbytes(chance.choice((1, 1, 2, 8)))) + data[at:]


def delete(chance: Random, data: bytes) -> bytes:
    """Take some bytes away."""
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.choice((1, 1, 2, 5, 40)) :]


def truncate(chance: Random, data: bytes) -> bytes:
    """Take everything behind a place away."""
    return data[: chance.randrange(len(data))]


def word(chance: Random, data: bytes) -> bytes:
    """Put a word of YAML in, anywhere."""
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(WORDS) + data[at + chance.choice((0, 0, 0, 1, 3)) :]


def value(chance: Random, data: bytes) -> bytes:
    """Put a word in place of a value, or before it."""
    places = [at for at in range(len(data)) if data[at : at + 2] in (b": ", b"- ")]
    if not places:
        return word(chance, data)
    at = chance.choice(places) + 2
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end
    return data[:at] + chance.choice(WORDS) + (data[at:] if chance.random() < 0.4 else data[end:])


def _lines(change: Callable[[Random, list[bytes]], None]) -> Change:
    def changed(chance: Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        change(chance, lines)
        return b"\n".join(lines)

    changed.__doc__ = change.__doc__
    return changed


@_lines
def indent(chance: Random, lines: list[bytes]) -> None:
    """Move some lines to the right or to the left."""
    at = chance.randrange(len(lines))
    for number in range(at, min(len(lines), at + chance.choice((1, 1, 3, 10)))):
        lines[number] = chance.choice(
            (b" " + lines[number], b"  " + lines[number], lines[number][1:], b"\t" + lines[number])
        )


@_lines
def repeat(chance: Random, lines: list[bytes]) -> None:
    """Write some lines twice, or many times."""
    at = chance.randrange(len(lines))
    some = lines[at : at + chance.choice((1, 1, 2, 6))]
    lines[at:at] = some * chance.choice((1, 1, 1, 3, 60))


@_lines
def move(chance: Random, lines: list[bytes]) -> None:
    """Take some lines to another place."""
    at = chance.randrange(len(lines))
    size = chance.choice((1, 1, 3))
    some = lines[at : at + size]
    del lines[at : at + size]
    to = chance.randrange(len(lines) + 1)
    lines[to:to] = some


@_lines
def drop(chance: Random, lines: list[bytes]) -> None:
    """Take a line away."""
    del lines[chance.randrange(len(lines))]


def nest(chance: Random, data: bytes) -> bytes:
    """Put many brackets, dashes or question marks before a value, as deep as is allowed or deeper."""
    times = chance.choice((3, 61, 62, 63, 64, 65, 300, 2000, 30_000))
    opening, closing = chance.choice(
        ((b"[", b"]"), (b"{a: ", b"}"), (b"- ", b""), (b"? ", b""), (b"[a, ", b"]"))
    )
    line = chance.choice(data.split(b"\n"))
    name = line[: line.find(b":") + 1] or b"x-a:"
    value = b" " + opening * times + b"a" + closing * times + b"\n"
    if chance.random() < 0.5:  # where data of any form may stand
        return b"version: 1\nsteps: [run: x]\nparams:\n n:\n  default:" + value
    return data + b"\n" + name + value


def line_ends(chance: Random, data: bytes) -> bytes:
    """End lines in another way: all of them, or some."""
    end = chance.choice(
        (b"\r\n", b"\r", b"\n\n", b" \n", b"\t\n", b"\n\r", "\x85".encode(), "\u2028".encode())
    )
    return data.replace(b"\n", end, chance.choice((-1, -1, 1, 5)))


def formula(chance: Random, data: bytes) -> bytes:
    """Put an expression in place of a value, or a text with interpolations."""
    made = formulas.text(chance) if chance.random() < 0.5 else formulas.template(chance)
    style = chance.randrange(4)
    if style == 0:
        made = "'" + made.replace("'", "''") + "'"
    elif style == 1:
        made = '"' + made.replace("\\", "\\\\").replace('"', '\\"') + '"'
    places = [at for at in range(len(data)) if data[at : at + 2] in (b": ", b"- ")]
    at = chance.choice(places) + 2 if places else len(data)
    end = data.find(b"\n", at)
    return data[:at] + made.encode("utf-8", "replace") + data[end if end >= 0 else len(data) :]


def encode(chance: Random, data: bytes) -> bytes:
    """Write the file in another encoding."""
    name = chance.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7"))
    return data.decode("utf-8", "replace").encode(name, "replace")


CHANGES: Sequence[tuple[Change, int]] = (
    (flip, 3), (insert, 2), (delete, 4), (truncate, 2), (word, 10), (value, 14), (indent, 6), (repeat, 4),
    (move, 4),
    (drop, 4), (nest, 2), (line_ends, 1), (formula, 8), (encode, 1),
)  # fmt: skip
_NAMES, _WEIGHTS = zip(*CHANGES, strict=True)


def splice(chance: Random, first: bytes, second: bytes) -> bytes:
    """Return the beginning of one file with the end of another, cut between lines."""
    before, after = first.split(b"\n"), second.split(b"\n")
    return b"\n".join(before[: chance.randrange(len(before) + 1)] + after[chance.randrange(len(after)) :])


def changed(chance: Random, data: bytes, most: int = 4) -> bytes:
    """Return a file with one change or a few."""
    for change in chance.choices(_NAMES, _WEIGHTS, k=chance.randint(1, most)):
        data = change(chance, data) if data else chance.choice(WORDS)
    return data
