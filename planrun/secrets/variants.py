"""Every form of a secret that a step may print, by accident or by a tool that quotes and encodes."""

from __future__ import annotations

from binascii import hexlify

from planrun.secrets.bits import after_break, base64s, dumps, inner_base64s, numbers
from planrun.secrets.escapes import addresses, is_inert, texts
from planrun.secrets.plain import SHORTEST, is_plain
from planrun.secrets.text import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTES = ('"', "'")
_FOLDED = 14  # bytes; what is left of a shorter value behind a break is slow to look for, see needles.py
_MOST_BLANKS = 12


def variants(value: str) -> frozenset[bytes]:
    """Return the forms of a secret: none when it is too short or too common to be masked.

    `value` is as `os.environ` gives it: bytes that are no UTF-8 are lone surrogates. Encodings of encodings are
    not among the forms, but for JSON in JSON; neither are parts of a value other than its lines.
    """
    bare = _bare(value)
    if is_plain(bare):
        return frozenset()
    decoded = bare.replace("\\r", "").replace("\\n", "\n")
    found: set[bytes] = set()
    for whole in {value.strip(), bare, decoded}:
        found.update(_encodings(whole))
        found.update(_wide_encodings(whole))
    for whole in (value, value + "\n"):
        found.update(dumps(to_bytes(whole)))
    for line in {_bare(line) for text in (bare, decoded) for line in text.splitlines()}:
        # The lines around a key in PEM are the same for everybody.
        if not is_plain(line) and not (line.startswith("-----") and line.endswith("-----")):
            found.update(_encodings(line))
    return frozenset(variant for variant in found if len(variant) >= SHORTEST)


def _bare(text: str) -> str:
    text = text.strip()
    while len(text) > 1 and text[0] in _QUOTES and text[0] == text[-1]:
        text = text[1:-1].strip()
    return text


def _encodings(text: str) -> Iterator[bytes]:
    data = to_bytes(text)
    yield data
    yield from after_break(data, _FOLDED)
    yield from _wrapped(data)
    yield from inner_base64s(data)
    yield hexlify(data)
    if not is_inert(text):
        yield from addresses(data)
        for escaped in texts(text):
            yield to_bytes(escaped)


def _wrapped(data: bytes) -> Iterator[bytes]:
    """Yield a line of several words as text wrapped to a width has it: breaks in place of one blank, or of all."""
    words = data.split(b" ")
    if 1 < len(words) <= _MOST_BLANKS + 1 and len(data) >= _FOLDED and b"\n" not in data:
        for at in range(1, len(words)):
            yield b" ".join(words[:at]) + b" ".join(words[at:])
        yield b"".join(words)


def _wide_encodings(text: str) -> Iterator[bytes]:
    """Yield what only a whole value is worth."""
    data = to_bytes(text)
    yield to_bytes(text[::-1])  # `rev` puts out characters, so bytes of one character keep their order
    yield from (b"".join(form % byte for byte in data) for form in (b"\\u%04x", b"\\u%04X"))
    yield from base64s(data)
    yield from numbers(data)
    wide = text.encode("utf-16-le", "surrogatepass")
    yield wide
    yield from inner_base64s(wide)  # PowerShell's -EncodedCommand
